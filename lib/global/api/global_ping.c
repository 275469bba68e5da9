/*
 * global_ping: what a backend is, and whether it is asked at all.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "via_agent.h"
#include "export.h"
#include "sized.h"
#include "handle.h"
#include "pool.h"

static uint64_t number_of(const char *text, const char *name)
{
	const char *value = backend_info(text, name);

	return value != NULL ? strtoull(value, NULL, 10) : 0;
}

/* A user without permission for INFO is no error. */
static int ask_info(struct shmlimit_global *g, const char *section, char **text, struct backend_error *failure)
{
	const char *words[] = { "INFO", section };
	redisReply *reply;

	*text = NULL;
	if (backend_command(&g->cluster.home, &(struct backend_words){ 2, words, NULL },
	                    monotonic_now_ns() + g->options.deadline_ns, &reply, failure) != 0)
		return failure->kind == ERROR_REFUSED ? 0 : 1;
	if (reply->type == REDIS_REPLY_STRING)
		*text = strdup(reply->str);
	freeReplyObject(reply);
	return 0;
}

static int ask_limits(struct shmlimit_global *g, struct shmlimit_global_info *info, struct backend_error *failure)
{
	const char *policy;
	char *text;

	if (ask_info(g, "memory", &text, failure) != 0)
		return 1;
	policy = text != NULL ? backend_info(text, "maxmemory_policy") : NULL;
	if (policy != NULL) {
		backend_error_copy(info->eviction, sizeof(info->eviction), policy, strcspn(policy, "\r\n"));
		info->memory_max = number_of(text, "maxmemory");
	}
	free(text);
	if (ask_info(g, "clients", &text, failure) != 0)
		return 1;
	if (text != NULL) {
		info->clients = number_of(text, "connected_clients");
		info->clients_max = number_of(text, "maxclients");
	}
	free(text);
	return 0;
}

static int ping(struct shmlimit_global *g, struct shmlimit_global_info *out)
{
	struct shmlimit_global_info info = { .struct_size = sizeof(info) };
	const char *words[] = { "PING" };
	struct backend_error failure;
	redisReply *reply;
	uint64_t begin_ns;

	if (backend_ready(&g->cluster.home, monotonic_now_ns() + g->options.deadline_ns, &failure) != 0)
		return handle_failed(g, &failure, NULL);
	begin_ns = monotonic_now_ns();
	if (backend_command(&g->cluster.home, &(struct backend_words){ 1, words, NULL },
	                    begin_ns + g->options.deadline_ns, &reply, &failure) != 0)
		return handle_failed(g, &failure, NULL);
	freeReplyObject(reply);
	info.round_trip_ns = monotonic_now_ns() - begin_ns;
	if (ask_limits(g, &info, &failure) != 0)
		return handle_failed(g, &failure, NULL);
	handle_recovered(g);
	strcpy(info.version, g->cluster.home.version);
	strcpy(info.mode, g->cluster.home.mode);
	strcpy(info.role, g->cluster.home.role);
	return out != NULL ? sized_out(out, &info, sizeof(info)) : 0;
}

EXPORT int shmlimit_global_ping(struct shmlimit_global *g, struct shmlimit_global_info *out)
{
	struct shmlimit_global *mine;
	int answer;

	if (g == NULL)
		return -EINVAL;
	mine = pool_borrow(g, &answer);
	if (mine == NULL)
		return answer;
	answer = ping(mine, out);
	pool_return(mine);
	return answer;
}

EXPORT uint64_t shmlimit_global_breaker_ns(struct shmlimit_global *g)
{
	struct shmlimit_global_status status = { .struct_size = sizeof(status) };

	if (g == NULL)
		return 0;
	if (via_agent_exists(g) && shmlimit_global_status(g->limiter, &status) == 0)
		return status.breaker_ns;
	return breaker_open_for_ns(&g->breaker);
}
