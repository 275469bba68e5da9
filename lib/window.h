/*
 * window: the arithmetic of one sliding window: at most `capacity` admissions
 * in any `period`, exactly. Numbers in, numbers out: the cells that the window
 * is made of are ring's.
 *
 * Every admitted token's time stands in a ring of cells, oldest first. A
 * request of k tokens is allowed when the (capacity - k + 1)-th newest of them
 * is a period old or older: one look, however large the window. The word says
 * where the ring ends, and what stands in the cells of the latest admission:
 *
 *	[ timestamp : T                    ] [ k - 1 ] [ n ]
 *
 *	n    how many cells hold something, 0 to 2N - 1 for a ring of N: from N on
 *	     all do, and it goes on counting, from 2N - 1 to N, for n mod N is
 *	     where the next one stands
 *	k    tokens of the latest admission, whose cells may not be written yet
 *	timestamp  of the latest admission, in ticks of 2^s nanoseconds, modulo 2^T
 *
 * A ring that has not been asked for a whole period says the same as none: then
 * n begins anew.
 *
 * A tick is a nanosecond, unless N is large or the period long. Times in the cells
 * have all their bits, but are read as the last nanosecond of their tick: of two
 * times in one tick the word does not tell which it means, and a cell may still
 * hold the earlier one, from before a reset.
 *
 * The idea of a window is that of the sorted set of times in Redis; the memory
 * is 8 bytes an admission, and looking costs the same for one as for thousands.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_WINDOW_H
#define SHMLIMIT_LIB_WINDOW_H

#include "layout.h"

/* What a word says, at some time. */
struct window {
	uint64_t n;                       /* 0 to 2N - 1 */
	uint64_t k;                       /* 1 to N */
	uint64_t last_ns;                 /* the latest admission's time, as far as the word tells: never earlier */
};

/*
 * Fill *terms from a WINDOW rule, for rings of `ring` cells. Returns 0, or
 * -EDOM capacity or period is 0; -EFBIG the capacity is above `ring`; -EINVAL
 * count is neither 0 nor the capacity, or flags exclude one another; -ERANGE
 * the period and the longest wait are too long. On error *terms is undefined.
 */
int window_compile(const struct shmlimit_rule *rule, uint64_t ring, struct layout_terms *terms);

/* What compiled terms can tell: for shmlimit_rule_range(). */
void window_range(const struct layout_terms *terms, struct shmlimit_range *out);

static inline uint64_t window_tick(const struct layout_terms *terms, uint64_t ns)
{
	return (ns >> terms_token_bits(terms)) & (UINT64_MAX >> terms_quota_bits(terms));
}

/* What a time counts as: never earlier than it was. */
static inline uint64_t window_end_of_tick(const struct layout_terms *terms, uint64_t ns)
{
	return ns | (((uint64_t)1 << terms_token_bits(terms)) - 1);
}

/* Does a cell hold what the word says of the latest admission? */
static inline int window_agrees(const struct layout_terms *terms, uint64_t word, uint64_t cell_ns)
{
	return window_tick(terms, cell_ns) == word >> terms_quota_bits(terms);
}

/* `n`, `k` and `last_ns` in one word. */
static inline uint64_t window_pack(const struct layout_terms *terms, struct window w)
{
	return window_tick(terms, w.last_ns) << terms_quota_bits(terms) | (w.k - 1) << terms_cell_bits(terms) | w.n;
}

/* Total: any word of any bits gives numbers in their ranges, for a ring of `ring` cells, 1 or more. */
static inline struct window window_unpack(const struct layout_terms *terms, uint64_t word, uint64_t ring,
                                          uint64_t now_ns)
{
	unsigned tick_bits = terms_token_bits(terms), low = terms_quota_bits(terms), n_bits = terms_cell_bits(terms);
	uint64_t ticks = UINT64_MAX >> low, ahead = (terms->ahead >> tick_bits) + 1;
	uint64_t later = ((word >> low) - (now_ns >> tick_bits)) & ticks, tick;
	struct window w;

	w.n = word & (((uint64_t)1 << n_bits) - 1);
	if (w.n >= 2 * ring)
		w.n = 2 * ring - 1;
	w.k = (word >> n_bits & (((uint64_t)1 << ((low - n_bits) & 63)) - 1)) + 1;
	if (w.k > ring)
		w.k = ring;
	/* The tick that is nearest to now: at most `ahead` later, else earlier. */
	tick = (now_ns >> tick_bits) + later - (later > ahead ? ticks + 1 : 0);
	w.last_ns = window_end_of_tick(terms, tick << tick_bits);
	return w;
}

/* Nanoseconds from now until what happened at `then_ns` is a whole period ago; 0 if it is. Later times add. */
static inline uint64_t window_wait(const struct layout_terms *terms, uint64_t then_ns, uint64_t now_ns)
{
	int64_t age = (int64_t)(now_ns - then_ns);

	return age >= (int64_t)terms->back ? 0 : terms->back - (uint64_t)age;
}

/* A time further ahead than another process's clock or a reservation can be: the clock stepped, or damage. */
static inline int window_is_impossible(const struct layout_terms *terms, uint64_t then_ns, uint64_t now_ns)
{
	return (int64_t)(then_ns - now_ns) > (int64_t)terms->ahead;
}

/* How many cells hold something. */
static inline uint64_t window_valid(uint64_t n, uint64_t ring)
{
	return n < ring ? n : ring;
}

/* Where the cell stands that has `newer` newer ones, newer < window_valid(). */
static inline uint64_t window_cell(uint64_t n, uint64_t newer, uint64_t ring)
{
	uint64_t i = n - 1 - newer;

	return i < ring ? i : i - ring;
}

/* n after k more, k <= ring */
static inline uint64_t window_advance(uint64_t n, uint64_t k, uint64_t ring)
{
	n += k;
	return n < 2 * ring ? n : n - ring;
}

#endif
