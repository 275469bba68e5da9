/*
 * generation: which tables of slots a segment has. It begins with one; growing
 * appends a larger one and publishes that by swapping one word of the header,
 * `state`. Until each key of the old table has migrated or refilled, the old table is
 * looked at too: see migrate.h. No process looks at those before it.
 *
 * Every handle maps the file as far as it can ever grow, so the larger table is
 * there, at its place of the same mapping, as soon as it is published: to find it
 * a decision needs no descriptor and no permission, in forked children and signal
 * handlers too. Behind the last table is a hole, and a damaged header may describe a table
 * there, where an access is a SIGBUS if memory has run out. So a process that meets a table asks
 * the kernel for the word behind it, which says where the table is.
 *
 * What a process learnt of a generation it keeps: offset and length were checked
 * against the mapping and the file, and stand in the handle, put there by one compare-and-swap
 * of both. So no thread waits for another one that is about to learn the same,
 * and no two readings of the header are ever mixed.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_GENERATION_H
#define SHMLIMIT_LIB_GENERATION_H

#include <stddef.h>

#include "atomic.h"
#include "limiter.h"

/*
 * BOUND: a reader starts over only when the table grew during the read; this many in one read is
 * damage.
 */
#define GENERATION_RETRIES 1000

struct generation {
	uint64_t state; /* the header's while these were its tables, STATE_OFF apart */
	struct table now;
	struct table old; /* slots NULL: none holds keys but `now` */
};

/* Where the parts of a table begin. */
static inline struct layout_parts table_parts(const struct shmlimit *l, const struct table *table)
{
	return layout_parts(table->lines, l->names_max);
}

/* A slot as it was seen, and the table that it is in. */
struct table_slot {
	const struct table *t;
	struct layout_slot *slot; /* NULL: none */
	struct slot_seen seen;
};

/*
 * The tables that there are. If the header is damaged it is the last one met.
 * Returns whether the header is good.
 */
int generation_read(const struct shmlimit *l, struct generation *out);

/*
 * Are they those that there are still? To be asked after a slot was read, or placed. ORDER pairs
 * with put_state().
 */
static inline int generation_holds(const struct shmlimit *l, const struct generation *tables)
{
	return (load_again(&l->header->state) & ~STATE_OFF) == tables->state;
}

/*
 * The present table, as this process knows it, which may be an old one: what it
 * says of a key that it has is right in any case.
 */
static inline const struct table *generation_known(const struct shmlimit *l, uint64_t state)
{
	/* WHY NOT by state_generation(): two shifts, in every decision. */
	_Static_assert(sizeof(struct table) == (size_t)4 << STATE_SHIFT, "a state is a quarter of its table's place");
	return (const struct table *)(const void *)((const char *)l->tables + (state << 2));
}

/*
 * The same for a decision at the first try: NULL if there is a larger one, the segment is switched
 * off, or a sweep is due (sweep.h); or, where that makes a difference, keys are on the way.
 */
static inline const struct table *generation_glance(const struct shmlimit *l, int moving_too, uint64_t now_ns)
{
	uint64_t state = load_acquire(&l->state);
	const struct layout_header *header = l->header;

	if (__builtin_expect((load_relaxed(&header->state) & (moving_too ? ~STATE_MOVING : ~(uint64_t)0)) != state, 0))
		return NULL;
	if (__builtin_expect(load_is_older(now_ns, &header->swept.ns, &header->sweep_after_ns), 0))
		return NULL;
	return generation_known(l, state);
}

/*
 * The slot of an index, which goes on from one table to the other; NULL: there is none. *t is its
 * table.
 */
static inline struct layout_slot *generation_slot(const struct generation *tables, uint64_t index,
                                                  const struct table **t)
{
	*t = &tables->now;
	if (index >= tables->now.lines * SLOTS_PER_LINE) {
		index -= tables->now.lines * SLOTS_PER_LINE;
		*t = &tables->old;
	}
	return index < (*t)->lines * SLOTS_PER_LINE ? &(*t)->slots[index] : NULL;
}

/* Which of the tables a slot is in; NULL: in neither. */
static inline const struct table *generation_table(const struct generation *tables, const struct layout_slot *slot)
{
	uint64_t offset = (uint64_t)((uintptr_t)slot - (uintptr_t)tables->now.slots);

	if (offset < tables->now.lines * LINE)
		return &tables->now;
	offset = (uint64_t)((uintptr_t)slot - (uintptr_t)tables->old.slots);
	return tables->old.slots != NULL && offset < tables->old.lines * LINE ? &tables->old : NULL;
}

/* The end of a table, in bytes from the segment's beginning. */
uint64_t generation_end(const struct shmlimit *l, const struct table *table);

/* The word behind it: see layout_table_mark(). */
static inline uint64_t *generation_mark(const struct shmlimit *l, const struct table *table)
{
	return (uint64_t *)(void *)((char *)table->slots + table_parts(l, table).size);
}

/* Where the table that follows it may begin. */
static inline uint64_t generation_next(const struct shmlimit *l, const struct table *table)
{
	return layout_next_page(generation_end(l, table) + sizeof(uint64_t));
}

#endif
