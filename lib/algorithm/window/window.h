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
 *	n    how many cells hold something, 0 to 2R - 1 for a ring of R: from R on
 *	     all do, and it goes on counting, from 2R - 1 to R, for n mod R is
 *	     where the next one stands
 *	k    tokens of the latest admission, whose cells may not be written yet
 *	timestamp  of the latest admission, in ticks of 2^s nanoseconds, modulo 2^T
 *
 * A ring that has not been asked for a whole period is equivalent to an empty one: then
 * n begins at 0 again, but not before the tick has ended in which the period did. Else a
 * word could come again in its tick, after tokens were given back, and say so of a
 * ring that holds other times (tests/model/ring, LAP_IN_TICK).
 *
 * A rule has a size (cells.h): cells for N tokens, its capacity or somewhat more, and its rings
 * have R = 2N cells. Decisions look at the newest N. The other N are older entries, which become
 * the oldest of the newest N when tokens are given back. So a window is exact while no more than N
 * tokens were given back since its ring ended furthest. WHY NOT N cells: an admission then
 * overwrites an entry that is needed again if its tokens are given back. The entry had left the
 * window, but the cell would say that it is the newest. WHY NOT a bit of each cell that says in
 * which lap it was written: a process that is late with writing a cell could make an entry seem
 * gone.
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
	uint64_t n;       /* 0 to 2R - 1 */
	uint64_t k;       /* 1 to N */
	uint64_t last_ns; /* the latest admission's time, as far as the word tells: never earlier */
};

/*
 * Fill *params from a WINDOW rule, whose keys have cells of this size at least. Returns 0, or -EDOM
 * capacity or period is 0; -EFBIG the capacity is above SHMLIMIT_WINDOW_MAX; -EINVAL
 * count is neither 0 nor the capacity, or flags exclude one another; -ERANGE the period and the
 * longest wait are too long. On error *params is undefined.
 */
int window_compile(const struct shmlimit_rule *rule, unsigned size, struct layout_params *params);

/* Resolution and range of compiled parameters: for shmlimit_rule_range(). */
void window_range(const struct layout_params *params, struct shmlimit_range *out);

static inline uint64_t window_tick(const struct layout_params *params, uint64_t ns)
{
	return (ns >> params_token_bits(params)) & (UINT64_MAX >> params_quota_bits(params));
}

/* What a time counts as: never earlier than it was. */
static inline uint64_t window_end_of_tick(const struct layout_params *params, uint64_t ns)
{
	return ns | (((uint64_t)1 << params_token_bits(params)) - 1);
}

static inline uint64_t window_tick_begin(const struct layout_params *params, uint64_t ns)
{
	return ns >> params_token_bits(params) << params_token_bits(params);
}

/* Does a cell hold what the word says of the latest admission? */
static inline int window_agrees(const struct layout_params *params, uint64_t word, uint64_t cell_ns)
{
	return window_tick(params, cell_ns) == word >> params_quota_bits(params);
}

/* `n`, `k` and `last_ns` in one word. */
static inline uint64_t window_pack(const struct layout_params *params, struct window w)
{
	return window_tick(params, w.last_ns) << params_quota_bits(params) | (w.k - 1) << params_cell_bits(params) |
	       w.n;
}

/* The cells of a ring. */
static inline uint64_t window_cells(const struct layout_params *params)
{
	return 2 * params_tokens(params);
}

/* The latest admission's time, as far as the word tells: the tick that is nearest to now. */
static inline uint64_t window_last_ns(const struct layout_params *params, uint64_t word, uint64_t now_ns)
{
	unsigned tick_bits = params_token_bits(params), low = params_quota_bits(params);
	uint64_t ticks = UINT64_MAX >> low, ahead = (params->ahead >> tick_bits) + 1;
	uint64_t later = ((word >> low) - (now_ns >> tick_bits)) & ticks, tick;

	/* At most `ahead` later, else earlier. */
	tick = (now_ns >> tick_bits) + later - (later > ahead ? ticks + 1 : 0);
	return window_end_of_tick(params, tick << tick_bits);
}

/* A word with the latest admission at last_ns. Total: any bits give numbers in their ranges. */
static inline struct window window_unpack_at(const struct layout_params *params, uint64_t word, uint64_t last_ns)
{
	unsigned low = params_quota_bits(params), n_bits = params_cell_bits(params);
	struct window w = { .last_ns = last_ns };

	w.n = word & (((uint64_t)1 << n_bits) - 1);
	if (w.n >= 2 * window_cells(params))
		w.n = 2 * window_cells(params) - 1;
	w.k = (word >> n_bits & (((uint64_t)1 << ((low - n_bits) & 63)) - 1)) + 1;
	if (w.k > params_tokens(params))
		w.k = params_tokens(params);
	return w;
}

static inline struct window window_unpack(const struct layout_params *params, uint64_t word, uint64_t now_ns)
{
	return window_unpack_at(params, word, window_last_ns(params, word, now_ns));
}

/*
 * Nanoseconds from now until what happened at `then_ns` is a whole period ago; 0 if it is. Later
 * times add.
 */
static inline uint64_t window_wait(const struct layout_params *params, uint64_t then_ns, uint64_t now_ns)
{
	int64_t age = (int64_t)(now_ns - then_ns);

	return age >= (int64_t)params->back ? 0 : params->back - (uint64_t)age;
}

/* Had it been a period ago when this tick began? */
static inline int window_was_over(const struct layout_params *params, uint64_t then_ns, uint64_t now_ns)
{
	return window_wait(params, then_ns, window_tick_begin(params, now_ns)) == 0;
}

/*
 * A time further ahead than another process's clock or a reservation can be: the clock stepped, or
 * damage.
 */
static inline int window_is_impossible(const struct layout_params *params, uint64_t then_ns, uint64_t now_ns)
{
	return (int64_t)(then_ns - now_ns) > (int64_t)params->ahead;
}

/* How many of a ring's cells hold something. */
static inline uint64_t window_valid(uint64_t n, uint64_t cells)
{
	return n < cells ? n : cells;
}

/* Where the cell stands that has `newer` newer ones, newer < window_valid(). */
static inline uint64_t window_cell(uint64_t n, uint64_t newer, uint64_t cells)
{
	uint64_t i = n - 1 - newer;

	return i < cells ? i : i - cells;
}

/* n after k more, k at most half of the cells */
static inline uint64_t window_advance(uint64_t n, uint64_t k, uint64_t cells)
{
	n += k;
	return n < 2 * cells ? n : n - cells;
}

/*
 * n after k less, k < window_valid(). A ring all of whose cells hold something continues to say so.
 */
static inline uint64_t window_withdraw(uint64_t n, uint64_t k, uint64_t cells)
{
	return n >= cells && n - k < cells ? n - k + cells : n - k;
}

#endif
