/*
 * ring: reading and writing cells. See ring.h for the protocol.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "ring.h"

/*
 * BOUND: a swap of a cell fails only when another process wrote this very cell:
 * somebody completes the same admission, or is late with one of before, once.
 */
#define CELL_TRIES 64

struct ring ring_read(const struct shmlimit *l, const struct layout_slot *slot, const struct layout_terms *terms,
                      uint64_t word, uint64_t now_ns)
{
	struct ring ring = ring_empty(now_ns);
	uint64_t newest_ns;

	if (l->window_max == 0)
		return ring;
	ring.w = window_unpack(terms, word, l->window_max, now_ns);
	if (ring.w.n == 0)
		return ring_empty(now_ns);
	newest_ns = load_acquire(ring_cells(l, slot) + window_cell(ring.w.n, 0, l->window_max));
	ring.complete = window_agrees(terms, word, newest_ns);
	if (ring.complete)
		ring.w.last_ns = newest_ns;
	if (window_is_impossible(terms, ring.w.last_ns, now_ns)) {
		ring.w.last_ns = now_ns;
		ring.stepped = 1;
	}
	if (window_wait(terms, ring.w.last_ns, now_ns) != 0)
		ring.valid = window_valid(ring.w.n, l->window_max);
	return ring;
}

uint64_t ring_time(const struct shmlimit *l, const struct layout_slot *slot, const struct ring *ring, uint64_t newer)
{
	uint64_t ns;

	if (newer == 0 || (!ring->complete && newer < ring->w.k))
		return ring->w.last_ns;
	ns = load_acquire(ring_cells(l, slot) + window_cell(ring->w.n, newer, l->window_max));
	/* Later than the latest: from before the clock stepped back, or damage. */
	return (int64_t)(ring->w.last_ns - ns) < 0 ? ring->w.last_ns : ns;
}

uint64_t ring_used(const struct shmlimit *l, const struct layout_slot *slot, const struct layout_terms *terms,
                   const struct ring *ring, uint64_t but, uint64_t now_ns)
{
	uint64_t left = ring->valid - (but < ring->valid ? but : ring->valid);
	uint64_t low = 0, high = left < terms->capacity ? left : terms->capacity;

	/* The first that has left: all older ones have, all newer ones have not. */
	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		if (window_wait(terms, ring_time(l, slot, ring, but + middle), now_ns) == 0)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

void ring_complete(const struct shmlimit *l, struct layout_slot *slot, const struct layout_terms *terms,
                   struct slot_seen seen, uint64_t time_ns, int exact)
{
	struct window w = window_unpack(terms, seen.word, l->window_max, time_ns);

	if (w.k > w.n)
		w.k = w.n;
	for (uint64_t newer = w.k; newer-- > 0;) {
		uint64_t *cell = ring_cells(l, slot) + window_cell(w.n, newer, l->window_max);

		for (int i = 0; i < CELL_TRIES; i++) {
			uint64_t there_ns = load_acquire(cell);

			if (there_ns == time_ns || (!exact && window_agrees(terms, seen.word, there_ns)))
				break;
			if (!slot_unchanged(slot, seen))
				return;
			if (cell_cas(cell, there_ns, time_ns))
				break;
		}
	}
}

void ring_level(const struct shmlimit *l, struct layout_slot *slot, struct slot_seen seen, const struct ring *ring,
                uint64_t since_ns)
{
	for (uint64_t newer = 1; newer < ring->valid; newer++) {
		uint64_t *cell = ring_cells(l, slot) + window_cell(ring->w.n, newer, l->window_max);

		for (int i = 0; i < CELL_TRIES; i++) {
			uint64_t there_ns = load_acquire(cell);

			if ((int64_t)(there_ns - since_ns) < 0)
				return;
			if ((int64_t)(there_ns - ring->w.last_ns) >= 0)
				break;
			if (!slot_unchanged(slot, seen))
				return;
			if (cell_cas(cell, there_ns, ring->w.last_ns))
				break;
		}
	}
}
