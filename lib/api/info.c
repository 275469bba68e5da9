/*
 * info: what a segment was made with, and how much of it is used.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <time.h>

#include "atomic.h"
#include "clock.h"
#include "export.h"
#include "generation.h"
#include "limiter.h"
#include "sized.h"

EXPORT int shmlimit_info(struct shmlimit *l, struct shmlimit_info *out)
{
	struct shmlimit_info info = { 0 };
	struct generation tables;

	if (l == NULL)
		return -EINVAL;
	info.layout_version = LAYOUT_VERSION;
	generation_read(l, &tables);
	info.size = generation_end(l, &tables.now);
	info.slots = tables.now.lines * SLOTS_PER_LINE;
	info.old_slots = tables.old.lines * SLOTS_PER_LINE;
	info.slots_max = l->lines_max * SLOTS_PER_LINE;
	info.rules = l->rule_count;
	for (uint32_t i = 0; i < l->rule_count; i++)
		info.rules_used += (uint32_t)published_in_use(load_acquire(&l->rules[i].published));
	info.window_max = l->window_max;
	info.store_keys = l->names_max;
	info.on_full = l->on_full;
	info.clock = l->clock_id == CLOCK_MONOTONIC ? SHMLIMIT_CLOCK_PRECISE : SHMLIMIT_CLOCK_COARSE;
	info.enabled = (load_relaxed(&l->header->state) & STATE_OFF) == 0;
	info.mode = l->mode;
	info.uid = l->uid;
	info.gid = l->gid;
	info.created_unix_ns = l->created_unix_ns;
	info.undecided_passed = load_relaxed(&l->header->undecided[0]);
	info.undecided_refused = load_relaxed(&l->header->undecided[1]);
	return sized_out(out, &info, sizeof(info));
}
