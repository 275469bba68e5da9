/*
 * ring: writing cells, and counting them. See ring.h for the protocol.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "ring.h"

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
	uint64_t *cells = ring_cells(k);

	for (uint64_t newer = w->k < w->n ? w->k : w->n; newer-- > 0 && cells != NULL;)
		if (!ring_write(k->params, k->slot, seen, cells + window_cell(w->n, newer, window_cells(k->params)),
		                w->last_ns, exact))
			return;
}

void ring_level(const struct look *k, struct slot_seen seen, const struct ring *ring, uint64_t since_ns)
{
	for (uint64_t newer = 1; newer < ring->valid && ring->cells != NULL; newer++) {
		uint64_t *cell = ring->cells + window_cell(ring->w.n, newer, ring->length);

		for (int i = 0; i < RING_TRIES; i++) {
			uint64_t there_ns = load_acquire(cell);

			if ((int64_t)(there_ns - since_ns) < 0)
				return;
			if ((int64_t)(there_ns - ring->w.last_ns) >= 0)
				break;
			if (!slot_unchanged(k->slot, seen))
				return;
			/* ORDER as in ring_write(). */
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
	uint64_t *cells = ring_cells(to);

	/* An admission that left the window long ago has no time that the word could tell. */
	if (window_wait(to->params, ring.w.last_ns, k->at.now_ns) == 0)
		ring = ring_empty(k->params, k->at.now_ns);
	for (uint64_t newer = ring.valid; newer-- > 0;) {
		uint64_t *cell = cells + window_cell(ring.valid, newer, window_cells(to->params));
		uint64_t ns = ring_time(k, &ring, newer), mark = mark_of(ns, seen.word);
		int i = 0;

		for (; i < RING_TRIES; i++) {
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
		if (i == RING_TRIES)
			return 0;
	}
	ring.w.n = ring.valid;
	*carried = window_pack(to->params, ring.w);
	return 1;
}
