/*
 * grow: append a larger table, and leave the old one when nothing is in it.
 *
 * A process that grows the table is alone by the segment's lock, as writers of rules are. The new
 * table is reserved, described beside the present one, and published by one swap
 * of the header's state; killed before it, the process leaves what the next one uses again.
 * Keys then move as they are asked for: see carry.h. WHY NOT move them all here:
 * the homes of a key come from its whole hash, of which a slot has 47 bits.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>

#include "algorithm.h"
#include "carry.h"
#include "clock.h"
#include "export.h"
#include "grow.h"
#include "segment.h"

/* Does a frozen slot say more than none does? */
static int says_something(const struct shmlimit *l, const struct table *t, const struct layout_slot *slot,
                          struct slot_seen seen, struct when when)
{
	struct rule_view view;
	struct look k;

	if (rule_load_tag(l, seen.tag & ~TAG_FROZEN, &view) != 0 || algorithm_of(&view.params)->stays)
		return 0;
	k = look_make(l, t, slot, &view.params, when_again(l, when));
	return algorithm_wait(&k, seen.word) != 0;
}

/* Freeze a table, all of it, and forget what has refilled. Is there a key left in it? */
static int holds_keys(const struct shmlimit *l, const struct table *t, struct when when)
{
	int held = 0;

	for (uint64_t i = 0; i < t->lines * SLOTS_PER_LINE; i++) {
		struct slot_seen seen;

		if (!carry_freeze_slot(&t->slots[i], &seen) ||
		    (seen.tag != TAG_FROZEN && says_something(l, t, &t->slots[i], seen, when)))
			held = 1;
		else if (seen.tag != TAG_FROZEN)
			/* Left for as long as its time reaches back, it would seem to be of the future. */
			(void)slot_cas(&t->slots[i], seen, TAG_FROZEN, 0);
	}
	return held;
}

/* The lock is held, so no other process changes the state except to switch it off and on. */
static int put_state(const struct shmlimit *l, uint64_t state)
{
	uint64_t *p = &l->header->state;

	/* BOUND: each round but the last means that the segment was switched in between; GENERATION_RETRIES of them are damage. */
	for (int round = 0; round < GENERATION_RETRIES; round++) {
		uint64_t before = load_acquire(p);

		/* I4. ORDER the table was described before; pairs with load_acquire() in generation_read(). */
		if (word_cas(p, before, state | (before & STATE_OFF)))
			return 0;
	}
	return -EUCLEAN;
}

/* Leave the old table, if there is one, when it holds no key. */
static int finish(const struct shmlimit *l, struct generation *tables, struct when when)
{
	if (tables->old.slots == NULL)
		return 0;
	if (holds_keys(l, &tables->old, when))
		return -EALREADY;
	return put_state(l, tables->state & ~STATE_MOVING);
}

/* `fd` -1: by the segment's name. */
static int append(const struct shmlimit *l, const struct generation *tables, uint64_t lines, int fd)
{
	uint64_t generation = state_generation(tables->state) + 1;
	uint64_t offset = layout_next_page(generation_end(l, &tables->now));
	uint64_t size = layout_parts(lines, l->window_max, l->names_max).size;
	struct layout_table *described = &l->header->tables[generation % 2];
	int error;

	if (generation > GENERATIONS_MAX || offset > l->size || size > l->size - offset)
		return -EFBIG;
	error = fd >= 0 ? segment_reserve_in(fd, offset, size)
	                : segment_reserve(l->name, l->device, l->inode, offset, size);
	if (error != 0)
		return error;
	store_relaxed(&described->offset, offset);
	store_relaxed(&described->lines, lines);
	return put_state(l, state_pack(generation, 1));
}

/* The lock is held. */
static int grow_locked(const struct shmlimit *l, uint64_t lines, struct when when)
{
	struct generation tables;
	int error;

	if (!generation_read(l, &tables))
		return -EUCLEAN;
	if (lines != 0 && lines < 2 * tables.now.lines)
		return -EINVAL;
	error = finish(l, &tables, when);
	return error != 0 || lines == 0 ? error : append(l, &tables, lines, -1);
}

int grow_unlinked(const struct shmlimit *l, int fd, uint64_t lines)
{
	struct generation tables;

	if (!generation_read(l, &tables))
		return -EUCLEAN;
	return lines < 2 * tables.now.lines ? -EINVAL : append(l, &tables, lines, fd);
}

static int grow(struct shmlimit *l, uint64_t slots, struct when when)
{
	int error, lock;

	if (l == NULL)
		return -EINVAL;
	if (l->read_only)
		return -EROFS;
	if (slots > l->lines_max * SLOTS_PER_LINE)
		return -EFBIG;
	error = segment_lock(l->name, l->device, l->inode, SEGMENT_LOCK_WAIT_NS, &lock);
	if (error != 0)
		return error;
	error = grow_locked(l, (slots + SLOTS_PER_LINE - 1) / SLOTS_PER_LINE, when);
	segment_unlock(lock);
	return error;
}

EXPORT int shmlimit_grow(struct shmlimit *l, uint64_t slots)
{
	return grow(l, slots, when_clock());
}

EXPORT int shmlimit_grow_at(struct shmlimit *l, uint64_t slots, uint64_t now_ns)
{
	return grow(l, slots, when_given(now_ns));
}
