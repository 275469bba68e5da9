/*
 * ping: what an engine is, and whether it is asked at all.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <string.h>

#include "../export.h"
#include "../sized.h"
#include "handle.h"

EXPORT int shmlimit_global_ping(struct shmlimit_global *g, struct shmlimit_global_info *out)
{
	struct shmlimit_global_info info = { .struct_size = sizeof(info) };
	const char *words[] = { "PING" };
	struct trouble trouble;
	redisReply *reply;
	uint64_t begin_ns;

	if (g == NULL)
		return -EINVAL;
	if (engine_ready(&g->fleet.home, wire_now_ns() + g->options.deadline_ns, &trouble) != 0)
		return handle_fail(g, &trouble, NULL);
	begin_ns = wire_now_ns();
	if (engine_command(&g->fleet.home, 1, words, NULL, begin_ns + g->options.deadline_ns, &reply, &trouble) != 0)
		return handle_fail(g, &trouble, NULL);
	freeReplyObject(reply);
	handle_well(g);
	info.round_trip_ns = wire_now_ns() - begin_ns;
	strcpy(info.version, g->fleet.home.version);
	strcpy(info.mode, g->fleet.home.mode);
	strcpy(info.role, g->fleet.home.role);
	return out != NULL ? sized_out(out, &info, sizeof(info)) : 0;
}

EXPORT uint64_t shmlimit_global_breaker_ns(struct shmlimit_global *g)
{
	return g != NULL ? breaker_open_for_ns(&g->breaker) : 0;
}
