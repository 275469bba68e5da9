/*
 * warmup: the arithmetic of a funnel that warms up. Numbers in, numbers out.
 *
 * The algorithm is that of SmoothWarmingUp in Guava's RateLimiter (Dimitris
 * Andreou, 2012), in integers. Tokens are stored while there are no requests, up to the
 * capacity; the more are stored, the colder is what they protect, and the more
 * time each of them costs. Above a threshold the cost of a token rises on a
 * straight line, from the stable interval to `cold factor` times as much:
 *
 *	time a token
 *	   cold |                  /
 *	        |                 / .      threshold = warm-up / stable / 2
 *	        |                /  .      capacity  = threshold + 2 warm-up / (stable + cold)
 *	 stable |---------------/   .
 *	        |              .    .      the area between threshold and capacity is the
 *	        +--------------+----+      warm-up period, that left of it half of one
 *	        0      threshold   capacity   stored tokens
 *
 * Taking k stored tokens costs the area over them, and those that are not
 * stored cost the stable interval each. As in Guava, a caller pays for the one
 * before it: it goes on at the next free time and moves that on by its own cost.
 *
 * The word is the funnel's, and the timestamp is the next free time. It must
 * say so exactly, so the fraction of a stored token cannot be in it too: the
 * quota counts *units*, 2^-g tokens, as small as the ticks allow; a unit is the
 * funnel's "token". The funnel refills within the warm-up period.
 *
 * At a high rate with a long warm-up a token takes a few ticks, and a tick is a few units. Costs
 * and what is stored are rounded up as often as their fractions say, so that sums are right: a wait
 * is off by less than a tick. WHY NOT always up: 10,000 a second with a minute to warm up would
 * become 7,500.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_WARMUP_H
#define SHMLIMIT_LIB_WARMUP_H

#include "funnel.h"

#define WARMUP_COLD_DEFAULT_MILLI 3000u
#define WARMUP_COLD_MIN_MILLI 1000u
#define WARMUP_COLD_MAX_MILLI 1000000u /* a thousand times slower when cold */

/*
 * Fill *params from a WARMUP rule. Returns 0, or -EDOM refill, period or warm-up is 0; -EINVAL the
 * cold factor is out of range, a flag is unknown, or the capacity is neither 0 nor what follows
 * from the rest; -ERANGE no token is stored within the warm-up period, or the times cannot be
 * represented so that the rate, warm or cold, is right to one part in a thousand. On error *params
 * is undefined.
 */
int warmup_compile(const struct shmlimit_rule *rule, struct layout_params *params);

/* The same as funnel_refill(), but that a debt may stand beside a quota. */
struct funnel warmup_refill(const struct layout_params *params, uint64_t word, struct funnel_time at);

/* How far in the future the next free time is, as a stamp. */
uint64_t warmup_debt(const struct layout_params *params, struct funnel funnel, struct funnel_time at);

/*
 * Nanoseconds until it is equivalent to an empty slot: full, and nothing owed. A
 * store that shrank below what was in it is full and may be in debt.
 */
uint64_t warmup_ns_until_full(const struct layout_params *params, struct funnel funnel, struct funnel_time at);

/*
 * Take `tokens`, whatever is owed; the debt grows by what they cost, down to
 * the longest and no further. Returns 1 if it grew by all of it.
 */
int warmup_take(const struct layout_params *params, struct funnel *funnel, uint64_t tokens, struct funnel_time at);

/* Give `tokens` back: the stable interval for each, first off the debt; the rest is stored. */
void warmup_refund(const struct layout_params *params, struct funnel *funnel, uint64_t tokens, struct funnel_time at);

/*
 * What `word` says under `from` as a word under `to`: the same part of the capacity, to the nearest
 * unit, and the same next free time, no later than the longest debt. So a key that was half cold is
 * half cold, as in Guava's setRate(). WHY NOT as many tokens: where the rate is raised, a cold key
 * would be warm at once.
 */
uint64_t warmup_convert(const struct layout_params *from, uint64_t word, const struct layout_params *to,
                        uint64_t now_ns);

/* Whole tokens. */
static inline uint64_t warmup_tokens(const struct layout_params *params, uint64_t units)
{
	return units >> params_unit_bits(params);
}

#endif
