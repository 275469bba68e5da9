/*
 * cells: see cells.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "cells.h"
#include "segment.h"

#define PAGE ((uintptr_t)4096)

__attribute__((cold, noinline)) char *cells_map(const struct shmlimit *l, unsigned size)
{
	uint64_t *known = &l->self->regions[size], bytes = layout_region_bytes(l->lines_max, size);
	uint64_t ahead = layout_region(l->lines_max, size);
	char *first = (char *)l->self->header + l->size, *region;

	if (size > CELLS_SIZE_MAX)
		return NULL;
	region = segment_map_ahead(first, ahead, bytes);
	/*
	 * Valgrind and qemu-user do not duplicate mappings; and a duplicate is larger for a
	 * moment.
	 */
	if (region == NULL && l->unlinked != 0)
		region = segment_map_part(l->unlinked - 1, 0, l->size + ahead, bytes);
	else if (region == NULL)
		region = segment_map_again(l->name, l->device, l->inode, l->read_only, l->size + ahead, bytes);
	if (region == NULL)
		return NULL;
	/* ORDER pairs with load_acquire() in cells_mapped(). */
	if (!word_cas(known, 0, (uintptr_t)region)) {
		segment_unmap(region, bytes);
		region = (char *)(uintptr_t)load_acquire(known);
	}
	return region;
}

void cells_unmap(struct shmlimit *l)
{
	for (unsigned size = 0; size <= CELLS_SIZE_MAX; size++)
		if (l->regions[size] != 0)
			segment_unmap((void *)(uintptr_t)l->regions[size], layout_region_bytes(l->lines_max, size));
}

/*
 * Where this process notes a page that it has reserved. Others that are noted there make it ask
 * again.
 */
static uint64_t *note_of(const struct shmlimit *l, uintptr_t page)
{
	return &l->self->reserved[page / PAGE % LIMITER_RESERVED];
}

int cells_reserve(const struct shmlimit *l, const struct table *t, const struct layout_slot *slot,
                  const struct layout_params *params)
{
	uintptr_t cells = (uintptr_t)cells_at(l, t, slot, params), first, last;

	if (cells == 0)
		return 0;
	first = cells & ~(PAGE - 1);
	last = (cells + CELLS_BYTES * params_tokens(params) - 1) & ~(PAGE - 1);
	if (last - first <= PAGE && load_relaxed(note_of(l, first)) == first && load_relaxed(note_of(l, last)) == last)
		return 1;
	if (!segment_populate((char *)first, last - first + PAGE))
		return 0;
	store_relaxed(note_of(l, first), first);
	store_relaxed(note_of(l, last), last);
	return 1;
}
