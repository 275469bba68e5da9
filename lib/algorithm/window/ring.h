/*
 * ring: the cells behind a slot of a WINDOW rule, one for each admitted token.
 *
 * A decision swaps the slot's word first: that alone admits. Then it writes its
 * time into the cells that the word now covers. If it is killed in between, or
 * slow, the next process that wants to move the word on writes them first:
 * so at any time only the latest admission's cells can be missing, and what
 * belongs into them is in the word.
 *
 * A cell is written by a compare-and-swap from what was seen in it, the slot
 * having been looked at again after that. WHY NOT a plain store: a process that
 * was stopped just before it could wake up when the slot is another key's, and
 * write its old time over that key's. From what it saw to what it writes a cell
 * only ever went to later times, so its swap fails once another process wrote.
 *
 * All tokens of the latest admission have its time, which the word tells: their
 * cells are not read, and before the word is moved on each of them is looked at.
 * WHY NOT the last one for all: after a reset it may agree with the word by chance.
 *
 * What is not covered: a process that is stopped before it swaps a cell, while the
 * clock steps back, and until it shows again, to the nanosecond, what it saw there
 * (tests/model/ring, SAME_NANOSECOND). Nor one that is stopped before it swaps a word
 * while a refund empties the ring and, within the same tick, just as many tokens are
 * admitted as were in it before: the word is the same, and the times are later.
 *
 * Readers look at the slot again after they have looked at cells; while the
 * word stands, the cells that it covers do not change, except for missing ones.
 *
 * A missing cell's time is rebuilt from the word, which has but its low bits. That
 * is right against a clock that was read after the word, and only then: to a
 * process that was stopped in between, the time of a minute ago is that of next minute or,
 * if the bits do not reach so far, of last year.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_RING_H
#define SHMLIMIT_LIB_RING_H

#include "atomic.h"
#include "cells.h"
#include "look.h"
#include "window.h"

/* A window at some time. */
struct ring {
	struct window w;
	/* cells that hold something; 0: nothing was admitted for a period and a tick */
	uint64_t valid;
	uint64_t length; /* cells */
	uint64_t *cells; /* NULL: this process does not see them, and each may be as late as the latest */
	/* the newest cell agrees with the word: last_ns is right whatever the clock */
	int complete;
	int stepped; /* its time was impossible and was replaced by now */
};

/* The cells of the look's slot. */
static inline uint64_t *ring_cells(const struct look *k)
{
	return cells_at(k->l, k->t, k->slot, k->params);
}

/* A window of which nothing is known. */
static inline struct ring ring_empty(const struct layout_params *params, uint64_t now_ns)
{
	struct ring ring = { .w = { 0, 1, now_ns }, .length = window_cells(params), .complete = 1 };

	return ring;
}

/*
 * What a word that was seen in the slot says. Where that is not complete, the look's
 * time must have been read after the word.
 */
static inline struct ring ring_read_in(const struct look *k, uint64_t word, uint64_t *cells)
{
	const struct layout_params *params = k->params;
	uint64_t now_ns = k->at.now_ns;
	struct ring ring = ring_empty(params, now_ns);
	uint64_t newest_ns = 0;

	ring.w = window_unpack_at(params, word, now_ns);
	if (ring.w.n == 0)
		return ring_empty(params, now_ns);
	ring.cells = cells;
	ring.complete = 0;
	if (__builtin_expect(ring.cells != NULL, 1)) {
		newest_ns = load_acquire(ring.cells + window_cell(ring.w.n, 0, ring.length));
		ring.complete = window_agrees(params, word, newest_ns);
	}
	/* WHY NOT from the word at first: it is not needed where the newest cell agrees. */
	ring.w.last_ns = ring.complete ? window_end_of_tick(params, newest_ns) : window_last_ns(params, word, now_ns);
	if (window_is_impossible(params, ring.w.last_ns, now_ns)) {
		ring.w.last_ns = now_ns;
		ring.stepped = 1;
	}
	if (!window_was_over(params, ring.w.last_ns, now_ns))
		ring.valid = window_valid(ring.w.n, ring.length);
	return ring;
}

static inline struct ring ring_read(const struct look *k, uint64_t word)
{
	return ring_read_in(k, word, ring_cells(k));
}

/*
 * The time of the admitted token that has `newer` newer ones, once the latest admission is at
 * latest_ns; newer < ring->valid.
 */
static inline uint64_t ring_time_before(const struct look *k, const struct ring *ring, uint64_t newer,
                                        uint64_t latest_ns)
{
	uint64_t ns;

	if (newer < ring->w.k || __builtin_expect(ring->cells == NULL, 0))
		return ring->w.last_ns;
	ns = load_acquire(ring->cells + window_cell(ring->w.n, newer, ring->length));
	ns = window_end_of_tick(k->params, ns);
	/* Later than the latest: from before the clock stepped back, or damage. */
	return (int64_t)(latest_ns - ns) < 0 ? latest_ns : ns;
}

/* The same as things are. */
static inline uint64_t ring_time(const struct look *k, const struct ring *ring, uint64_t newer)
{
	return ring_time_before(k, ring, newer, ring->w.last_ns);
}

/*
 * When an admission counts from that is granted now for `wait_ns` from now. What stands in the ring
 * stays in order.
 */
static inline uint64_t ring_latest_ns(const struct look *k, const struct ring *ring, uint64_t wait_ns)
{
	uint64_t ns = window_end_of_tick(k->params, k->at.now_ns + wait_ns);

	return ring->valid != 0 && (int64_t)(ring->w.last_ns - ns) > 0 ? ring->w.last_ns : ns;
}

/* The window after tokens are admitted, `wait_ns` from now. */
static inline struct window ring_admit(const struct look *k, const struct ring *ring, uint64_t tokens, uint64_t wait_ns)
{
	return (struct window){
		.n = ring->valid == 0 ? tokens : window_advance(ring->w.n, tokens, ring->length),
		.k = tokens,
		.last_ns = ring_latest_ns(k, ring, wait_ns),
	};
}

/*
 * Tokens admitted less than a period ago, the newest `but` left out, up to the
 * capacity. Cost: a look for each bit of the capacity.
 */
uint64_t ring_used(const struct look *k, const struct ring *ring, uint64_t but);

/*
 * BOUND: a swap of a cell fails only when another process wrote this very cell:
 * it completes the same admission, or is late with an earlier one, once.
 */
#define RING_TRIES 64

/*
 * Write one cell of the latest admission, whose time is ns, while the slot stands as `seen`. Where
 * `exact` is false, a cell that agrees with the word is left as it is. Returns false if the slot
 * has changed.
 */
static inline int ring_write(const struct layout_params *params, const struct layout_slot *slot, struct slot_seen seen,
                             uint64_t *cell, uint64_t ns, int exact)
{
	for (int i = 0; i < RING_TRIES; i++) {
		uint64_t there_ns = load_acquire(cell);

		if (there_ns == ns || (!exact && window_agrees(params, seen.word, there_ns)))
			break;
		if (!slot_unchanged(slot, seen))
			return 0;
		/*
		 * ORDER the slot was looked at after the cell: a swap by a process that was
		 * stopped since then fails.
		 */
		if (cell_cas(cell, there_ns, ns))
			break;
	}
	return 1;
}

/* Write all cells of the latest admission, which is *w, as ring_write() does. */
void ring_complete(const struct look *k, struct slot_seen seen, const struct window *w, int exact);

/*
 * The same of what a word says that was swapped in just now, whose time may be further ahead than
 * an honest one.
 */
static inline void ring_complete_word(const struct look *k, struct slot_seen mine)
{
	uint64_t half_ns = UINT64_MAX >> params_quota_bits(k->params) >> 1 << params_token_bits(k->params);
	struct window w = window_unpack(k->params, mine.word, k->at.now_ns + half_ns);

	ring_complete(k, mine, &w, 1);
}

/*
 * Write what `word` says to `k` into the cells of `to`, while the slot there stands as it was seen:
 * that of another table, tentative, its word a nonce; or the same slot, whose rule has a larger
 * size by now. Returns false if it does not. *carried is the word that says it there: the ring
 * begins at its first cell. A cell that holds a later time, of a key that was evicted there or was
 * not carried to its end, goes through a mark: a number of this claim, or of this word. So a swap
 * of a process that was stopped before it still fails, or makes the time later. WHY NOT at once to
 * the earlier time: two carriers of two keys, of which one was stopped just before its swap, could
 * make an entry older than it is, where both left one time.
 */
int ring_migrate(const struct look *k, uint64_t word, const struct look *to, struct slot_seen seen, uint64_t *carried);

/*
 * For what is about to be taken back: make all admissions from `since_ns` on as
 * late as the latest. Then it does not matter which of them is taken back.
 */
void ring_level(const struct look *k, struct slot_seen seen, const struct ring *ring, uint64_t since_ns);

#endif
