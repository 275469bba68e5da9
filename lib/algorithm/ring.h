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
#include "look.h"
#include "window.h"

/* A window at some time. */
struct ring {
	struct window w;
	/* cells that hold something; 0: nothing was admitted for a period and a tick */
	uint64_t valid;
	/* the newest cell agrees with the word: last_ns is right whatever the clock */
	int complete;
	int stepped; /* its time was impossible and was replaced by now */
};

/* The cells of a slot. */
static inline uint64_t *ring_cells(const struct table *t, const struct layout_slot *slot)
{
	return (uint64_t *)(void *)(t->slots + t->lines * SLOTS_PER_LINE) +
	       (uint64_t)(slot - t->slots) * layout_cells(t->window_max);
}

/* A window of which nothing is known. */
static inline struct ring ring_empty(uint64_t now_ns)
{
	struct ring ring = { { 0, 1, now_ns }, 0, 1, 0 };

	return ring;
}

/*
 * What a word that was seen in the slot says. Where that is not complete, the look's
 * time must have been read after the word.
 */
static inline struct ring ring_read(const struct look *k, uint64_t word)
{
	const struct layout_params *params = k->params;
	uint64_t now_ns = k->at.now_ns;
	struct ring ring = ring_empty(now_ns);
	uint64_t newest_ns;

	if (k->t->window_max == 0)
		return ring;
	ring.w = window_unpack(params, word, k->t->window_max, now_ns);
	if (ring.w.n == 0)
		return ring_empty(now_ns);
	newest_ns = load_acquire(ring_cells(k->t, k->slot) + window_cell(ring.w.n, 0, k->t->window_max));
	ring.complete = window_agrees(params, word, newest_ns);
	if (ring.complete)
		ring.w.last_ns = window_end_of_tick(params, newest_ns);
	if (window_is_impossible(params, ring.w.last_ns, now_ns)) {
		ring.w.last_ns = now_ns;
		ring.stepped = 1;
	}
	if (!window_was_over(params, ring.w.last_ns, now_ns))
		ring.valid = window_valid(ring.w.n, k->t->window_max);
	return ring;
}

/* The time of the admitted token that has `newer` newer ones; newer < ring->valid. */
static inline uint64_t ring_time(const struct look *k, const struct ring *ring, uint64_t newer)
{
	uint64_t ns;

	if (newer < ring->w.k)
		return ring->w.last_ns;
	ns = load_acquire(ring_cells(k->t, k->slot) + window_cell(ring->w.n, newer, k->t->window_max));
	ns = window_end_of_tick(k->params, ns);
	/* Later than the latest: from before the clock stepped back, or damage. */
	return (int64_t)(ring->w.last_ns - ns) < 0 ? ring->w.last_ns : ns;
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
		.n = ring->valid == 0 ? tokens : window_advance(ring->w.n, tokens, k->t->window_max),
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
 * Write the cells of the latest admission, which is *w, while the slot stands as
 * `seen`. Where `exact` is false, a cell that agrees with the word is left as it is.
 */
void ring_complete(const struct look *k, struct slot_seen seen, const struct window *w, int exact);

/*
 * The same of what a word says that was swapped in just now, whose time may be further ahead than
 * an honest one.
 */
static inline void ring_complete_word(const struct look *k, struct slot_seen mine)
{
	uint64_t half_ns = UINT64_MAX >> params_quota_bits(k->params) >> 1 << params_token_bits(k->params);
	struct window w = window_unpack(k->params, mine.word, k->t->window_max, k->at.now_ns + half_ns);

	ring_complete(k, mine, &w, 1);
}

/*
 * Write what `word` says of a slot of another table into the cells of `to`, while
 * that stands as it was seen: tentative, its word a nonce. Returns false if it does
 * not. *carried is the word that says it there, where the ring may be longer: it begins at
 * the ring's first cell. A cell that holds a later time, of a key that was evicted there or was not
 * carried to its end, goes through a mark: a number of this claim alone. So a swap
 * of a process that was stopped before it still fails, or makes the time later. WHY NOT at
 * once to the earlier time: two carriers of two keys, of which one was stopped just
 * before its swap, could make an entry older than it is, where both left one time.
 */
int ring_migrate(const struct look *k, uint64_t word, const struct look *to, struct slot_seen seen, uint64_t *carried);

/*
 * For what is about to be taken back: make all admissions from `since_ns` on as
 * late as the latest. Then it does not matter which of them is taken back.
 */
void ring_level(const struct look *k, struct slot_seen seen, const struct ring *ring, uint64_t since_ns);

#endif
