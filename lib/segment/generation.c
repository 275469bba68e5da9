/*
 * generation: see generation.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <string.h>

#include "generation.h"
#include "segment.h"

uint64_t generation_end(const struct shmlimit *l, const struct table *table)
{
	return (uint64_t)((const char *)table->slots - (const char *)l->header) + table_parts(l, table).size;
}

static int is_good(const struct shmlimit *l, uint64_t offset, const struct table *table)
{
	const struct table *first = &l->tables[0];

	return table->lines <= l->lines_max && table->lines >= first->lines && offset % 4096 == 0 &&
	       offset >= l->tables_offset && offset <= l->size && table_parts(l, table).size < l->size - offset;
}

/* What is known of a generation. */
static int known(const struct shmlimit *l, uint64_t generation, struct table *out)
{
	const uint64_t *table = (const uint64_t *)(const void *)&l->tables[generation];
	uint64_t words[2] = { load_acquire(&table[0]), 0 };

	/* Both are there if one is. */
	if (words[0] != 0)
		words[1] = load_relaxed(&table[1]);
	memcpy(out, words, sizeof(*out));
	return out->slots != NULL;
}

/*
 * Learn a generation that the header describes while its state is `state`. Returns 0 if that does
 * not help.
 */
static int learn(const struct shmlimit *l, uint64_t generation, uint64_t state, struct table *out)
{
	const struct layout_table *described = &l->header->tables[generation % 2];
	uint64_t offset = load_word(&described->offset), none[2] = { 0, 0 }, found[2];
	struct table table = { .lines = load_word(&described->lines) };

	if ((load_again(&l->header->state) & ~STATE_OFF) != state || !is_good(l, offset, &table))
		return 0;
	table.slots = (struct layout_slot *)(void *)((unsigned char *)l->self->header + offset);
	/*
	 * INVARIANT I7. ORDER: the table was reserved, and its mark written, before `state` was
	 * published.
	 */
	if (!segment_has(generation_mark(l, &table)) ||
	    load_relaxed(generation_mark(l, &table)) != layout_table_mark(offset, table.lines))
		return 0;
	memcpy(found, &table, sizeof(found));
	/* ORDER pairs with load_acquire() in known(): slots and lines appear together. */
	(void)pair_cas(&l->self->tables[generation], none, found);
	return known(l, generation, out);
}

static int find(const struct shmlimit *l, uint64_t generation, uint64_t state, struct table *out)
{
	return known(l, generation, out) || learn(l, generation, state, out);
}

int generation_read(const struct shmlimit *l, struct generation *out)
{
	for (int i = 0; i < GENERATION_RETRIES; i++) {
		uint64_t state = load_acquire(&l->header->state) & ~STATE_OFF;
		uint64_t generation = state_generation(state), present = state_pack(generation, 0);
		int moving = (state & STATE_MOVING) != 0;

		out->state = state;
		out->old = (struct table){ .slots = NULL };
		if (generation <= GENERATIONS_MAX && (generation != 0 || !moving) &&
		    find(l, generation, state, &out->now) && (!moving || find(l, generation - 1, state, &out->old))) {
			if (load_relaxed(&l->state) != present)
				publish(&l->self->state, present);
			return 1;
		}
		if (generation_holds(l, out))
			break;
	}
	out->old = (struct table){ .slots = NULL };
	(void)known(l, state_generation(load_acquire(&l->state)), &out->now);
	return 0;
}
