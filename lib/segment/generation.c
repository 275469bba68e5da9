/*
 * generation: see generation.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "generation.h"
#include "segment.h"

uint64_t generation_end(const struct shmlimit *l, const struct table *table)
{
	return (uint64_t)((const char *)table->slots - (const char *)l->header) +
	       layout_parts(table->lines, l->window_max, l->names_max).size;
}

static int is_good(const struct shmlimit *l, uint64_t offset, uint64_t lines)
{
	return lines <= l->lines_max && lines > l->tables[0].lines && offset % 4096 == 0 &&
	       offset >= l->tables_offset && offset <= l->size &&
	       layout_parts(lines, l->window_max, l->names_max).size <= l->size - offset;
}

/* What is known of a generation. */
static int known(const struct shmlimit *l, uint64_t generation, struct table *out)
{
	const struct table *table = &l->tables[generation];

	/* Both are there if one is. */
	out->slots = (struct layout_slot *)(uintptr_t)load_acquire((const uint64_t *)(const void *)&table->slots);
	out->lines = out->slots == NULL ? 0 : load_relaxed(&table->lines);
	return out->slots != NULL;
}

/*
 * Learn a generation that the header describes while its state is `state`. Returns 0 if that does
 * not help.
 */
static int learn(const struct shmlimit *l, uint64_t generation, uint64_t state, struct table *out)
{
	const struct layout_table *described = &l->header->tables[generation % 2];
	uint64_t offset = load_word(&described->offset), lines = load_word(&described->lines);
	uint64_t none[2] = { 0, 0 }, found[2] = { 0, lines };
	unsigned char *slots;

	if ((load_again(&l->header->state) & ~STATE_OFF) != state || !is_good(l, offset, lines))
		return 0;
	slots = (unsigned char *)l->self->header + offset;
	/*
	 * INVARIANT I7. ORDER: the file got this long before `state` was published; it never gets
	 * shorter.
	 */
	if (!segment_has(slots + layout_parts(lines, l->window_max, l->names_max).size - sizeof(uint64_t)))
		return 0;
	found[0] = (uint64_t)(uintptr_t)slots;
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
		out->old = (struct table){ NULL, 0 };
		if (generation <= GENERATIONS_MAX && (generation != 0 || !moving) &&
		    find(l, generation, state, &out->now) && (!moving || find(l, generation - 1, state, &out->old))) {
			if (load_relaxed(&l->state) != present)
				publish(&l->self->state, present);
			return 1;
		}
		if (generation_holds(l, out))
			break;
	}
	out->old = (struct table){ NULL, 0 };
	(void)known(l, state_generation(load_acquire(&l->state)), &out->now);
	return 0;
}
