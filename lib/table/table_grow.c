/*
 * table_grow: append a larger table, and leave the old one when
 * nothing is in it.
 *
 * A process that grows the table is alone by the segment's lock, as writers of rules are. The new
 * table is reserved, described beside the present one, and published by one swap
 * of the header's state; killed before it, the process leaves what the next one uses again.
 * Keys then move as they are asked for: see migrate.h. WHY NOT move them all here:
 * the homes of a key come from its whole hash, of which a slot has 47 bits.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>

#include "migrate.h"
#include "segment.h"
#include "table_grow.h"

/*
 * BOUND: a carrier that is killed leaves one key in both tables. Of more than this many some have
 * not moved.
 */
#define STRAYS 64

/* Keys that are left in the old table. */
struct strays {
	uint64_t n; /* there are; the first STRAYS of them are: */
	struct table_place place[STRAYS];
};

static void stray_bury(const struct table_place *place)
{
	(void)slot_cas(place->slot, place->seen, TAG_FROZEN, 0);
}

/* Freeze a table, all of it, and free what is equivalent to an empty slot. */
static void freeze(const struct shmlimit *l, const struct table *t, struct when when, struct strays *strays)
{
	strays->n = 0;
	for (uint64_t i = 0; i < t->lines * SLOTS_PER_LINE; i++) {
		struct table_place here = { .slot = &t->slots[i] };

		if (!migrate_freeze_slot(here.slot, &here.seen)) {
			strays->n = UINT64_MAX;
			return;
		}
		if (here.seen.tag == TAG_FROZEN)
			continue;
		if (!table_keeps_something(l, &(struct table_slot){ t, here.slot, here.seen }, when)) {
			/*
			 * A key that refilled has no slot: a reset finds none in the new table, nor
			 * in the old one.
			 */
			stray_bury(&here);
			continue;
		}
		if (strays->n < STRAYS)
			strays->place[strays->n] = here;
		strays->n++;
	}
}

/*
 * Bury the key of a slot of the new table, if it is in the old one too: a carrier was killed before
 * it did.
 */
static void bury_duplicate(const struct shmlimit *l, struct strays *strays, uint64_t tag)
{
	for (uint64_t i = 0; i < strays->n; i++) {
		struct table_place *place = &strays->place[i];

		if (!tag_same_key(rule_plain(l, tag), rule_plain(l, place->seen.tag)))
			continue;
		stray_bury(place);
		*place = strays->place[--strays->n];
		return;
	}
}

/*
 * Is a key left in the old table that is not in the new one? WHY NOT look for each of them in its
 * probe window: that comes from the whole hash. By what the slot has of it, another key of the rule
 * is taken for it once in 2^47.
 */
static int holds_keys(const struct shmlimit *l, const struct generation *tables, struct when when)
{
	const struct table *t = &tables->now;
	struct strays strays;

	freeze(l, &tables->old, when, &strays);
	if (strays.n > STRAYS)
		return 1;
	for (uint64_t i = 0; i < t->lines * SLOTS_PER_LINE && strays.n != 0; i++) {
		uint64_t tag = load_acquire(&t->slots[i].tag);

		if ((tag & (TAG_TENTATIVE | TAG_FROZEN)) == 0 && tag != 0)
			bury_duplicate(l, &strays, tag);
	}
	return strays.n != 0;
}

/* The lock is held, so no other process changes the state except to switch it off and on. */
static int put_state(const struct shmlimit *l, uint64_t state)
{
	uint64_t *p = &l->header->state;

	/*
	 * BOUND: each round but the last means that the segment was switched in between;
	 * GENERATION_RETRIES of them are damage.
	 */
	for (int round = 0; round < GENERATION_RETRIES; round++) {
		uint64_t before = load_acquire(p);

		/*
		 * I4. ORDER the table was described before; pairs with load_acquire() in
		 * generation_read().
		 */
		if (word_cas(p, before, state | (before & STATE_OFF)))
			return 0;
	}
	return -EUCLEAN;
}

/* Leave the old table, if there is one, when it holds no key. */
static int finish_growing(const struct shmlimit *l, struct generation *tables, struct when when)
{
	if (tables->old.slots == NULL)
		return 0;
	if (holds_keys(l, tables, when))
		return -EALREADY;
	return put_state(l, tables->state & ~STATE_MOVING);
}

/* `fd` -1: by the segment's name. */
static int append(const struct shmlimit *l, const struct generation *tables, uint64_t lines, int fd)
{
	uint64_t generation = state_generation(tables->state) + 1;
	uint64_t offset = generation_next(l, &tables->now);
	struct layout_table *described = &l->header->tables[generation % 2];
	struct table new = { (struct layout_slot *)(void *)((char *)l->self->header + offset), lines };
	struct layout_range range = { offset, table_parts(l, &new).size + sizeof(uint64_t), 0, 1 };
	int error;

	if (generation > GENERATIONS_MAX || offset > l->size || range.size > l->size - offset)
		return -EFBIG;
	error = fd >= 0 ? segment_reserve_in(fd, &range) : segment_reserve(l->name, l->device, l->inode, &range);
	if (error != 0)
		return error;
	store_relaxed(generation_mark(l, &new), layout_table_mark(offset, lines));
	store_relaxed(&described->offset, offset);
	store_relaxed(&described->lines, lines);
	return put_state(l, state_pack(generation, 1));
}

int table_grow(const struct shmlimit *l, uint64_t lines, struct when when)
{
	struct generation tables;
	int error;

	if (!generation_read(l, &tables))
		return -EUCLEAN;
	if (lines != 0 && lines < 2 * tables.now.lines)
		return -EINVAL;
	error = finish_growing(l, &tables, when);
	return error != 0 || lines == 0 ? error : append(l, &tables, lines, -1);
}

int table_grow_unlinked(const struct shmlimit *l, int fd, uint64_t lines)
{
	struct generation tables;

	if (!generation_read(l, &tables))
		return -EUCLEAN;
	return append(l, &tables, lines, fd);
}
