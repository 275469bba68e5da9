/*
 * info, switch, now: a segment as a whole.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <time.h>

#include "atomic.h"
#include "clock.h"
#include "export.h"
#include "limiter.h"
#include "sized.h"

EXPORT int shmlimit_info(struct shmlimit *l, struct shmlimit_info *out)
{
	struct shmlimit_info info = { 0 };

	if (l == NULL)
		return -EINVAL;
	info.layout_version = LAYOUT_VERSION;
	info.size = l->size;
	info.slots = l->lines * SLOTS_PER_LINE;
	info.rules = l->rule_count;
	for (uint32_t i = 0; i < l->rule_count; i++)
		info.rules_used += (uint32_t)published_in_use(load_acquire(&l->rules[i].published));
	info.window_max = l->window_max;
	info.names = l->names_max;
	info.on_full = l->on_full;
	info.clock = l->clock_id == CLOCK_MONOTONIC ? SHMLIMIT_CLOCK_PRECISE : SHMLIMIT_CLOCK_COARSE;
	info.enabled = load_relaxed32(&l->header->switched_off) == 0;
	info.mode = l->mode;
	info.uid = l->uid;
	info.gid = l->gid;
	info.created_unix_ns = l->created_unix_ns;
	return sized_out(out, &info, sizeof(info));
}

EXPORT int shmlimit_switch(struct shmlimit *l, uint32_t on)
{
	if (l == NULL)
		return -EINVAL;
	if (l->read_only)
		return -EROFS;
	store_relaxed32(&l->header->switched_off, on == 0);
	return 0;
}

EXPORT uint64_t shmlimit_now(struct shmlimit *l)
{
	return clock_read(l == NULL ? CLOCK_MONOTONIC : l->clock_id);
}
