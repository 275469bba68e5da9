/*
 * gcra: the arithmetic of a limit that comes with the call (GCRA). Numbers in, numbers out: no
 * shared memory, no clock, no errors. Every function is total.
 *
 * The generic cell rate algorithm (ITU-T I.371, virtual scheduling). The word is one time, at which
 * the key is full again: the theoretical arrival time, in ticks of 1/16 ns modulo 2^64. Nothing of
 * the limit is in it. A token costs a time, and a request is allowed if the key is then full again
 * within the time that the whole capacity costs:
 *
 *	left  = max(word - now, 0)              what is not paid yet
 *	left' = left + tokens * interval        allowed if left' <= capacity * interval
 *	word' = now + left'
 *
 * The interval is rounded up to a whole number of ticks. So all sums are exact: just `capacity`
 * tokens pass at one instant, and the rate is lower by less than 1/16 ns a token, and never higher
 * (I1). Where the interval is so short that this would matter (above 244,000 a second, if it is no
 * whole number), the time that the whole capacity costs is rounded up instead, and then what each
 * call costs.
 *
 * A key that is asked with another limit keeps its time. So in any stretch of time the costs of all
 * that was allowed, each in time by its own limit, are together at most that time and the time to
 * full of the limit that has the longest.
 *
 * Half of the range is the past, 18 years. Of the other half, words are as far ahead as the longest
 * time to full and debt of the limits that the segment's keys were asked with, see gcra_row.h, and at
 * most GCRA_AHEAD. A time beyond that is impossible: the clock stepped back, or the word is damaged.
 * It then counts as an empty bucket of the limit that is asked (I8).
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_GCRA_H
#define SHMLIMIT_LIB_GCRA_H

#include "layout.h"

#define GCRA_TICK_BITS 4 /* 16 ticks a nanosecond */
#define GCRA_LONGEST_NS ((uint64_t)366 * 86400 * 1000000000)
/* A time to full, a debt, with NEXT_PAYS another time to full, and a slack for clock readings. */
#define GCRA_SLACK ((uint64_t)1000000000 << GCRA_TICK_BITS)
#define GCRA_AHEAD ((3 * GCRA_LONGEST_NS << GCRA_TICK_BITS) + GCRA_SLACK)

/* A limit, as decisions need it. */
struct gcra {
	uint64_t capacity;  /* tokens */
	uint64_t interval;  /* ticks of `tokens`; 0: unlimited */
	uint64_t tokens;    /* 1, or the capacity */
	uint64_t tolerance; /* ticks: what the capacity costs */
	uint64_t max_wait_ns;
	int blocks; /* nothing is ever allowed */
};

/* What a key has: ticks until it is full. */
struct gcra_state {
	uint64_t left;
	int stepped; /* the word's time was impossible; `left` says nothing */
};

/*
 * Fill *g. Returns 0, or -EDOM capacity, refill or period_ns is 0; -ERANGE the capacity is above 2^48, the
 * time to full or max_wait_ns above 366 days, or a token takes no time that ticks can tell.
 */
int gcra_make(uint64_t capacity, uint64_t refill, uint64_t period_ns, uint64_t max_wait_ns, struct gcra *g);

/* An interval of fewer ticks, if it is no whole number of them, is set by all of the capacity. */
#define GCRA_INTERVAL_MIN ((uint64_t)1 << 16)

/*
 * The same for what is asked most, in registers: whole ticks a token, or an interval that is long enough to
 * be rounded up to them. Returns false, and *g is undefined, for whatever else there is.
 */
static inline int gcra_make_whole(uint64_t capacity, uint64_t refill, uint64_t period_ns, uint64_t max_wait_ns,
                                  struct gcra *g)
{
	uint64_t ticks = period_ns << GCRA_TICK_BITS, interval, rest;

	if (__builtin_expect(capacity - 1 >= SHMLIMIT_CAPACITY_MAX || refill == 0 ||
	                             period_ns - 1 >= UINT64_MAX >> GCRA_TICK_BITS || max_wait_ns > GCRA_LONGEST_NS,
	                     0))
		return 0;
	interval = ticks / refill;
	rest = ticks % refill;
	if (__builtin_expect(rest != 0 ? interval < GCRA_INTERVAL_MIN : interval == 0, 0))
		return 0;
	interval += rest != 0;
	*g = (struct gcra){ .capacity = capacity, .interval = interval, .tokens = 1, .max_wait_ns = max_wait_ns };
	return !__builtin_mul_overflow(capacity, interval, &g->tolerance) && g->tolerance <= GCRA_LONGEST_NS
	                                                                                             << GCRA_TICK_BITS;
}

static inline struct gcra gcra_block(void)
{
	return (struct gcra){ .tokens = 1, .blocks = 1 };
}

static inline struct gcra gcra_unlimited(void)
{
	return (struct gcra){ .capacity = UINT64_MAX, .tokens = 1, .tolerance = GCRA_AHEAD };
}

/* A rule's own limit. Its capacity is 0 if it has none. */
static inline struct gcra gcra_of(const struct layout_params *params)
{
	return (struct gcra){
		.capacity = params->capacity,
		.interval = params->inverse,
		.tokens = params->den | (params->den == 0),
		.tolerance = params->back,
		.max_wait_ns = params->max_wait_ns,
	};
}

/* How far ahead of the clock words can be where `reach` is the most that a limit left, in ticks: see gcra_row.h. */
static inline uint64_t gcra_ahead(uint64_t reach)
{
	return reach < GCRA_AHEAD - GCRA_SLACK ? reach + GCRA_SLACK : GCRA_AHEAD;
}

/* `ahead`: the longest time to full that a word can say, in ticks: at most GCRA_AHEAD. */
static inline struct gcra_state gcra_read(uint64_t word, uint64_t now_ns, uint64_t ahead)
{
	struct gcra_state state = { word - (now_ns << GCRA_TICK_BITS), 0 };

	if ((int64_t)state.left < 0)
		state.left = 0;
	else if (__builtin_expect(state.left > ahead, 0))
		state.stepped = 1;
	return state;
}

static inline uint64_t gcra_pack(struct gcra_state state, uint64_t now_ns)
{
	return (now_ns << GCRA_TICK_BITS) + state.left;
}

/* Ticks that tokens cost, at most 2^63. */
static inline uint64_t gcra_cost(const struct gcra *g, uint64_t tokens)
{
	unsigned __int128 cost = (unsigned __int128)tokens * g->interval;

	if (__builtin_expect(g->tokens != 1, 0))
		cost = (cost + g->tokens - 1) / g->tokens;
	return cost >> 63 != 0 ? (uint64_t)1 << 63 : (uint64_t)cost;
}

static inline uint64_t gcra_ns(uint64_t ticks)
{
	return (ticks >> GCRA_TICK_BITS) + ((ticks & ((1 << GCRA_TICK_BITS) - 1)) != 0);
}

/* Whole tokens that are left. */
static inline uint64_t gcra_remaining(const struct gcra *g, struct gcra_state state)
{
	uint64_t room = state.left < g->tolerance ? g->tolerance - state.left : 0;

	if (g->interval == 0)
		return g->capacity;
	if (state.left == 0)
		return g->capacity;
	if (__builtin_expect(g->tokens == 1, 1))
		return room / g->interval;
	return (uint64_t)((unsigned __int128)room * g->tokens / g->interval);
}

#endif
