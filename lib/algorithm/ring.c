/*
 * ring: writing cells, and counting them. See ring.h for the protocol.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "ring.h"

/*
 * BOUND: a swap of a cell fails only when another process wrote this very cell:
 * it completes the same admission, or is late with an earlier one, once.
 */
#define CELL_TRIES 64

uint64_t ring_used(const struct look *k, const struct ring *ring, uint64_t but)
{
	uint64_t left = ring->valid - (but < ring->valid ? but : ring->valid);
	uint64_t low = 0, high = left < k->params->capacity ? left : k->params->capacity;

	/* A full window, which is asked most: its oldest has not left. */
	if (high > 0 && window_wait(k->params, ring_time(k, ring, but + high - 1), k->at.now_ns) != 0)
		return high;
	/* The first that has left: all older ones have, all newer ones have not. */
	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		if (window_wait(k->params, ring_time(k, ring, but + middle), k->at.now_ns) == 0)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

void ring_complete(const struct look *k, struct slot_seen seen, const struct window *w, int exact)
{
	for (uint64_t newer = w->k < w->n ? w->k : w->n; newer-- > 0;) {
		uint64_t *cell = ring_cells(k->t, k->slot) + window_cell(w->n, newer, k->t->window_max);

		for (int i = 0; i < CELL_TRIES; i++) {
			uint64_t there_ns = load_acquire(cell);

			if (there_ns == w->last_ns || (!exact && window_agrees(k->params, seen.word, there_ns)))
				break;
			if (!slot_unchanged(k->slot, seen))
				return;
			/*
			 * ORDER the slot was looked at after the cell: a swap by a process that was
			 * stopped since then fails.
			 */
			if (cell_cas(cell, there_ns, w->last_ns))
				break;
		}
	}
}

void ring_level(const struct look *k, struct slot_seen seen, const struct ring *ring, uint64_t since_ns)
{
	for (uint64_t newer = 1; newer < ring->valid; newer++) {
		uint64_t *cell = ring_cells(k->t, k->slot) + window_cell(ring->w.n, newer, k->t->window_max);

		for (int i = 0; i < CELL_TRIES; i++) {
			uint64_t there_ns = load_acquire(cell);

			if ((int64_t)(there_ns - since_ns) < 0)
				return;
			if ((int64_t)(there_ns - ring->w.last_ns) >= 0)
				break;
			if (!slot_unchanged(k->slot, seen))
				return;
			/* ORDER as in ring_complete(). */
			if (cell_cas(cell, there_ns, ring->w.last_ns))
				break;
		}
	}
}

/*
 * What a cell holds on its way to an earlier time: later than any admission for the next hundred
 * years, so that until then it counts as the latest; and a number that no cell ever held before or
 * will again.
 */
static uint64_t mark_of(uint64_t ns, uint64_t nonce)
{
	return ((ns >> 60) + 4) << 60 | (nonce & (((uint64_t)1 << 60) - 1));
}

int ring_migrate(const struct look *k, uint64_t word, const struct look *to, struct slot_seen seen, uint64_t *carried)
{
	struct ring ring = ring_read(k, word);
	uint64_t n = window_valid(window_unpack(k->params, word, k->t->window_max, k->at.now_ns).n, k->t->window_max);

	for (uint64_t newer = ring.valid; newer-- > 0;) {
		uint64_t *cell = ring_cells(to->t, to->slot) + window_cell(n, newer, to->t->window_max);
		uint64_t ns = ring_time(k, &ring, newer), mark = mark_of(ns, seen.word);
		int i = 0;

		for (; i < CELL_TRIES; i++) {
			uint64_t there_ns = load_acquire(cell);

			if (there_ns == ns)
				break;
			if (!slot_unchanged(to->slot, seen))
				return 0;
			if ((int64_t)(there_ns - ns) > 0 && there_ns != mark)
				(void)cell_cas(cell, there_ns, mark);
			else if (cell_cas(cell, there_ns, ns))
				break;
		}
		if (i == CELL_TRIES)
			return 0;
	}
	*carried = window_with(k->params, word, n);
	return 1;
}
