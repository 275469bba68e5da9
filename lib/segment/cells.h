/*
 * cells: the memory of logs and places. A rule whose keys have cells has a size: how many cells
 * each of them has, two for each token or place. The cells of all slots, of one size, stand side by
 * side in a region of the file, which is holes until they are used:
 *
 *	region of a size:  [ unused ][ cells of the slots of generation 0 ][ ... of generation 1 ] ...
 *
 * A table of n slots has the cells n to 2n of each region: the next one has at least twice as many
 * slots, so no two tables meet.
 *
 *  1. Reserve: any process that claims a slot for a key, moves a key to a larger table, or converts
 *     a slot to a larger size, first touches the pages of its cells through the kernel, which says
 *     if there is no memory for them. Then it goes on. Cells stay reserved as long as the segment
 *     exists.
 *  2. So a committed slot always has its cells, and a decision need not ask.
 *  3. Without memory the key gets no slot: the answer is by on_full, for this key alone.
 *
 * INVARIANT I7. No process dies of a hole: where a committed slot has a size, its cells are
 * reserved.
 *
 * A process maps a region when it first needs one: address space is limited for some programs, and
 * most rules have no cells. The kernel duplicates a page of the mapping that there is (mremap(2)),
 * so no descriptor is kept and no permission needed, in forked children and signal handlers too.
 * Where there are no addresses left, claims fail as without memory, and a slot that another process
 * filled is judged by its word alone, which is taken for the most that it can mean. A slot of an
 * older size is left for a process that can convert it, and no rule gets another size.
 *
 * WHY NOT a mark for each slot that says what is reserved: it could be overwritten. A process
 * remembers for itself which pages it has reserved last.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_CELLS_H
#define SHMLIMIT_LIB_CELLS_H

#include "atomic.h"
#include "limiter.h"
#include "whole.h"

/* The size of a rule of this capacity, 1 to SHMLIMIT_WINDOW_MAX. */
static inline unsigned cells_size(uint64_t capacity)
{
	unsigned shift = bit_length(capacity) > 3 ? bit_length(capacity) - 3 : 0;
	uint64_t tokens = (capacity + ((uint64_t)1 << shift) - 1) >> shift;

	return tokens < 4 ? 0 : 4 * shift + (unsigned)tokens - 4;
}

static inline unsigned cells_size_at_least(uint64_t capacity, unsigned size)
{
	return size > cells_size(capacity) ? size : cells_size(capacity);
}

/* Map the region of a size. Returns it, or NULL where there are no addresses for it. */
char *cells_map(const struct shmlimit *l, unsigned size);

/* The handle's end: unmap all regions. */
void cells_unmap(struct shmlimit *l);

/* The region of a size, or NULL where this process has not mapped it yet. */
static inline char *cells_mapped(const struct shmlimit *l, unsigned size)
{
	/* ORDER pairs with word_cas() in cells_map(). */
	return (char *)(uintptr_t)load_acquire(&l->regions[size]);
}

/* The cells of a slot, or NULL where this process has not mapped their region yet. */
static inline uint64_t *cells_glance(const struct shmlimit *l, const struct table *t, const struct layout_slot *slot,
                                     const struct layout_params *params)
{
	char *region = cells_mapped(l, params_cells_size(params));
	uint64_t slots = (uint64_t)((const char *)slot - (const char *)t->slots) + t->lines * LINE;

	return region == NULL ? NULL : (uint64_t *)(void *)(region + slots * params_tokens(params));
}

/* The cells of a slot, or NULL where this process has no addresses for them. */
static inline uint64_t *cells_at(const struct shmlimit *l, const struct table *t, const struct layout_slot *slot,
                                 const struct layout_params *params)
{
	uint64_t *cells = cells_glance(l, t, slot, params);

	if (__builtin_expect(cells == NULL, 0) && cells_map(l, params_cells_size(params)) != NULL)
		cells = cells_glance(l, t, slot, params);
	return cells;
}

/*
 * Reserve the cells of a slot. Returns whether they are. Cost: at most two system calls, of Linux
 * before 5.14 one for each page; none where this process reserved the page before.
 */
int cells_reserve(const struct shmlimit *l, const struct table *t, const struct layout_slot *slot,
                  const struct layout_params *params);

#endif
