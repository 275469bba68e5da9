/*
 * live.c: the funnels that are furthest from full, and how the slots are used.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <stdlib.h>

#include "command.h"

/* The longest time to full first; ties in an order that is the same each time. */
static int compare(const void *left, const void *right)
{
	const struct shmlimit_slot *a = left, *b = right;

	if (a->reset_after_ns != b->reset_after_ns)
		return a->reset_after_ns > b->reset_after_ns ? -1 : 1;
	if (a->rule != b->rule)
		return a->rule < b->rule ? -1 : 1;
	return (a->fingerprint > b->fingerprint) - (a->fingerprint < b->fingerprint);
}

/* Sort what there is, and forget what is beyond the limit. */
static void settle(struct live *live)
{
	if (live->count > 1)
		qsort(live->slot, live->count, sizeof(*live->slot), compare);
	if (live->count > live->limit)
		live->count = (size_t)live->limit;
}

/*
 * Twice the limit is room enough: when that is full, half of it goes. So the
 * memory depends on the limit and not on the table, and a slot costs a sort's
 * logarithm.
 */
static int keep(struct live *live, size_t *room, const struct shmlimit_slot *slot)
{
	struct shmlimit_slot *bigger;

	if (live->count == 2 * live->limit)
		settle(live);
	if (live->count == *room) {
		*room = *room > 0 ? 2 * *room : 64;
		bigger = reallocarray(live->slot, *room, sizeof(*bigger));
		if (bigger == NULL)
			return fail_memory();
		live->slot = bigger;
	}
	live->slot[live->count++] = *slot;
	return STATUS_OK;
}

int live_scan(struct shmlimit *limiter, uint64_t slots, struct live *live)
{
	struct shmlimit_slot slot = { .struct_size = sizeof(slot) };
	uint64_t now_ns = shmlimit_now(limiter);
	size_t room = 0;
	int status = STATUS_OK;

	if (live->limit > slots)
		live->limit = slots;
	for (uint64_t i = 0; i < slots && status == STATUS_OK; i++) {
		if (shmlimit_slot(limiter, i, now_ns, &slot) < 0 || slot.state > SHMLIMIT_SLOT_STALE)
			continue;
		live->states[slot.state]++;
		if (slot.state != SHMLIMIT_SLOT_LIVE || (live->rule >= 0 && slot.rule != live->rule))
			continue;
		live->found++;
		if (live->limit > 0)
			status = keep(live, &room, &slot);
	}
	settle(live);
	return status;
}
