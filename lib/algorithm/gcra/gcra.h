/*
 * gcra: the arithmetic of a limit that comes with the call (GCRA). Numbers in, numbers out: no
 * shared memory, no clock, no errors. Every function is total.
 *
 * The generic cell rate algorithm (ITU-T I.371, virtual scheduling), counted from the other end.
 * The word has one time, at which the bucket was empty, in ticks of 1/4 ns modulo 2^59. Nothing of
 * the limit is in it. What came back since is the time that went by, up to the time that the whole
 * capacity costs, and a request is allowed if that pays for its tokens:
 *
 *	room  = min(now - empty, capacity * interval)     below 0: a debt
 *	room' = room - tokens * interval                  allowed if that is 0 or more
 *	empty' = now - room'
 *
 * The interval is rounded up to a whole number of ticks. So all sums are exact: just `capacity`
 * tokens pass at one instant, and the rate is lower by less than 1/4 ns a token, and never higher
 * (I1). Where the interval is so short that this would matter (above 61,000 a second, if it is no
 * whole number), the time that the whole capacity costs is rounded up instead, and then what each
 * call costs.
 *
 * Limits that change. With whatever limit a key is asked, its bucket was empty at that time. So it
 * never owes more than one time to full of the limit that it is asked with; what reservations and
 * charges owe, for which the time is in the future, comes on top. What is allowed moves the time
 * forward, by what it costs at least. So over limits that alternate on a key
 *
 *	- each limit alone is admitted at most its capacity and rate * time,
 *	- the costs of all that was allowed, each in time by its own limit, are together at most
 *	  that time and the time to full of the limit that has the longest.
 *
 * WHY NOT the time at which the key is full (the theoretical arrival time, as in redis-cell): 5 a
 * day, used up, would be a day of debt to 5 an hour. The price: where a short limit finds its
 * bucket full, it moves the time to its own time to full before now. It may not move it less, or it
 * would be admitted more than its capacity. To a longer limit the bucket then looks nearly empty,
 * until all limits that the key was asked with would be full.
 *
 * That is the other number of the word: 5 bits say after how long the key is full by each limit
 * that it was asked with since it was full last. See gcra_place(). A key that is full is like a new
 * one, whatever limit it is asked with.
 *
 * Half of the range is the past, 2.3 years. Of the other half, words are as far ahead as the
 * longest debt that the segment's keys have had, see gcra_row.h, and at most GCRA_AHEAD. A time
 * beyond that is impossible: the clock stepped back, or the word is damaged. It then counts as an
 * empty bucket of the limit that is asked (I8).
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_GCRA_H
#define SHMLIMIT_LIB_GCRA_H

#include "layout.h"

#define GCRA_TICK_BITS 2 /* 4 ticks a nanosecond */
#define GCRA_PLACE_BITS 5
#define GCRA_PLACES_MASK (GCRA_PLACES - 1)
#define GCRA_LONGEST_NS ((uint64_t)366 * 86400 * 1000000000)
#define GCRA_LONGEST (GCRA_LONGEST_NS << GCRA_TICK_BITS)
/* A debt, with NEXT_PAYS a time to full, and a slack for clock readings. */
#define GCRA_SLACK ((uint64_t)1000000000 << GCRA_TICK_BITS)
#define GCRA_AHEAD (2 * GCRA_LONGEST + GCRA_SLACK)
/* The oldest that a word can say, in ticks. */
#define GCRA_OLDEST (((int64_t)1 << 58) - 1)

/* A limit, as decisions need it. */
struct gcra {
	uint64_t capacity;  /* tokens */
	uint64_t interval;  /* ticks of `tokens`; 0: unlimited */
	uint64_t tokens;    /* 1, or the capacity */
	uint64_t tolerance; /* ticks: what the capacity costs */
	uint64_t max_wait_ns;
	int blocks;    /* nothing is ever allowed */
	int is_places; /* a number of places for HOLD, the capacity; all else says nothing */
};

/* What a word says. */
struct gcra_state {
	int64_t age;    /* ticks since the bucket was empty; below 0: until it is, of a debt */
	uint64_t span;  /* when it is as old as that, in ticks, it is full, whatever the limit */
	unsigned place; /* of the span */
	int stepped;    /* the time is impossible; `age` says nothing */
};

/*
 * Fill *g. Returns 0, or -EDOM capacity, refill or period_ns is 0; -ERANGE the capacity is above
 * 2^48, the time to full or max_wait_ns above 366 days, or a token takes no time that ticks can
 * tell.
 */
int gcra_make(uint64_t capacity, uint64_t refill, uint64_t period_ns, uint64_t max_wait_ns, struct gcra *g);

/* An interval of fewer ticks, if it is no whole number of them, is set by all of the capacity. */
#define GCRA_INTERVAL_MIN ((uint64_t)1 << 16)

/*
 * The same for what is asked most, in registers: whole ticks a token, or an interval that is long
 * enough to be rounded up to them. Returns false, and *g is undefined, for whatever else there is.
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
	return !__builtin_mul_overflow(capacity, interval, &g->tolerance) && g->tolerance <= GCRA_LONGEST;
}

static inline struct gcra gcra_block(void)
{
	return (struct gcra){ .tokens = 1, .blocks = 1 };
}

static inline struct gcra gcra_unlimited(void)
{
	return (struct gcra){ .capacity = UINT64_MAX, .tokens = 1 };
}

static inline struct gcra gcra_places(uint64_t places)
{
	return (struct gcra){ .capacity = places, .tokens = 1, .is_places = 1 };
}

/* Has it no rate and no places? Then every algorithm that takes limits can obey it. */
static inline int gcra_is_fixed(const struct gcra *g)
{
	return g->interval == 0 && !g->is_places;
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

/*
 * Where the segment keeps the time to full of a limit: longest[gcra_place()] is the longest, in
 * ticks, of the limits whose time to full has as many bits. WHY NOT the number of bits alone: a key
 * whose only token is back after a second of an hour would keep its slot for up to another hour.
 */
static inline unsigned gcra_place(uint64_t tolerance)
{
	unsigned bits = 63 - (unsigned)__builtin_clzll(tolerance | 1);

	return bits < 25 ? 0 : bits - 25 < GCRA_PLACES ? bits - 25 : GCRA_PLACES - 1;
}

static inline unsigned gcra_word_place(uint64_t word)
{
	return word & GCRA_PLACES_MASK;
}

/* Ticks since the bucket was empty: -2^58 to GCRA_OLDEST. The place is shifted out. */
static inline int64_t gcra_word_age(uint64_t word, uint64_t now_ns)
{
	uint64_t now = now_ns << (GCRA_TICK_BITS + GCRA_PLACE_BITS);

	return (int64_t)((now | GCRA_PLACES_MASK) - word) >> GCRA_PLACE_BITS;
}

static inline uint64_t gcra_pack(int64_t room, unsigned place, uint64_t now_ns)
{
	uint64_t now = now_ns << (GCRA_TICK_BITS + GCRA_PLACE_BITS);

	return now - ((uint64_t)room << GCRA_PLACE_BITS) + place;
}

/* The word of the same place, where a bucket of `age` has this room left. */
static inline uint64_t gcra_word_with(uint64_t word, int64_t age, int64_t room)
{
	return word + ((uint64_t)(age - room) << GCRA_PLACE_BITS);
}

/*
 * How far ahead of the clock words can be where `owed` is the longest debt that there was, in
 * ticks: see gcra_row.h.
 */
static inline uint64_t gcra_ahead(uint64_t owed)
{
	return owed < GCRA_AHEAD - GCRA_SLACK ? owed + GCRA_SLACK : GCRA_AHEAD;
}

/* `longest`: of the word's place. `ahead`: the longest debt that a word can say, in ticks. */
static inline struct gcra_state gcra_read(uint64_t word, uint64_t now_ns, uint64_t longest, uint64_t ahead)
{
	struct gcra_state state = { gcra_word_age(word, now_ns), longest, gcra_word_place(word), 0 };

	if (state.span > GCRA_LONGEST)
		state.span = GCRA_LONGEST;
	state.stepped = state.age < 0 && 0 - (uint64_t)state.age > ahead;
	return state;
}

/* Is it full by each limit? */
static inline int gcra_is_over(const struct gcra_state *state)
{
	return !state->stepped && state->age >= (int64_t)state->span;
}

/* Ticks until it is. */
static inline uint64_t gcra_until_over(const struct gcra_state *state)
{
	if (state->stepped)
		return state->span;
	return gcra_is_over(state) ? 0 : state->span - (uint64_t)state->age;
}

/* Ticks that a bucket has by a limit, of one that is not over. */
static inline int64_t gcra_room(const struct gcra *g, int64_t age)
{
	return age < (int64_t)g->tolerance ? age : (int64_t)g->tolerance;
}

/* The same of whatever a word says. */
static inline int64_t gcra_state_room(const struct gcra *g, const struct gcra_state *state)
{
	if (state->stepped)
		return 0;
	return gcra_is_over(state) ? (int64_t)g->tolerance : gcra_room(g, state->age);
}

/* Ticks that tokens cost, at most 2^62. */
static inline uint64_t gcra_cost(const struct gcra *g, uint64_t tokens)
{
	unsigned __int128 cost = (unsigned __int128)tokens * g->interval;

	if (__builtin_expect(g->tokens != 1, 0))
		cost = (cost + g->tokens - 1) / g->tokens;
	return cost >> 62 != 0 ? (uint64_t)1 << 62 : (uint64_t)cost;
}

/* The same of no more than the capacity: at most the tolerance. */
static inline uint64_t gcra_cost_within(const struct gcra *g, uint64_t tokens)
{
	return __builtin_expect(g->tokens == 1, 1) ? tokens * g->interval : gcra_cost(g, tokens);
}

static inline uint64_t gcra_ns(uint64_t ticks)
{
	return (ticks >> GCRA_TICK_BITS) + ((ticks & ((1 << GCRA_TICK_BITS) - 1)) != 0);
}

/* Whole tokens that are left. */
static inline uint64_t gcra_remaining(const struct gcra *g, int64_t room)
{
	if (g->interval == 0)
		return g->capacity;
	if (room <= 0)
		return 0;
	if (__builtin_expect(g->tokens == 1, 1))
		return (uint64_t)room / g->interval;
	if ((uint64_t)room == g->tolerance)
		return g->capacity;
	return (uint64_t)((unsigned __int128)(uint64_t)room * g->tokens / g->interval);
}

#endif
