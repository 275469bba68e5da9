/*
 * count: the rare half of the arithmetic, see count.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>

#include "count.h"
#include "whole.h"

#define SECOND ((uint64_t)1000000000)
#define DAY (86400 * SECOND)
#define DEFAULT_CAPACITY 2147483647u
#define DEFAULT_PERIOD_NS (366 * DAY)
/* 36 years: the longest period. */
#define PERIOD_MAX_NS ((uint64_t)1 << 60)
/*
 * A reading of the clock that is older than another process's, by so much at the most, sees that
 * one's count.
 */
#define SLACK_NS SECOND
/* Capacities that need no more bits share one word. */
#define QUOTA_BITS_MIN 26u
/*
 * A tick is half a millisecond, or a thousandth of a short period. A longer one makes the range
 * longer, so that words are rarely swept, and a year fits beside 26 bits.
 */
#define TICK_BITS 19u
#define TICKS_SHIFT 10
/*
 * Half of the range is the past, and half the future. Each has room for the longest time to live,
 * and for a spare time beside it: seven times to live, so that a short period is not swept all the
 * time, but no more than a month.
 */
#define SPARE_LIVES 7
#define SPARE_MAX_NS (30 * DAY)
/* A table is not swept more often than once in two milliseconds: see sweep.c. */
#define RANGE_MIN_NS ((uint64_t)4000000)

static uint64_t shorter(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t slack_for(uint64_t longest_ns)
{
	return shorter(longest_ns / 2, SLACK_NS);
}

/* Bits of the tick beside a count of `quota_bits` bits that lives for up to longest_ns. */
static unsigned tick_bits_for(uint64_t longest_ns, unsigned quota_bits)
{
	uint64_t spare_ns = shorter(SPARE_LIVES * shorter(longest_ns, SPARE_MAX_NS), SPARE_MAX_NS);
	unsigned bits = quota_bits + bit_length(longest_ns + slack_for(longest_ns) + spare_ns) + 1;
	unsigned least = bits > 64 ? bits - 64 : 0, wanted = bit_length(longest_ns >> TICKS_SHIFT >> 1);

	if (wanted > TICK_BITS)
		wanted = TICK_BITS;
	return least > wanted ? least : wanted;
}

int count_compile(const struct shmlimit_rule *rule, struct layout_params *params)
{
	uint64_t capacity = rule->capacity != 0 ? rule->capacity : DEFAULT_CAPACITY;
	uint64_t longest_ns = rule->period_ns != 0 ? rule->period_ns : DEFAULT_PERIOD_NS;
	unsigned quota_bits = bit_length(capacity), tick_bits;

	if (rule->flags != 0 || rule->max_wait_ns != 0 || (rule->refill != 0 && rule->refill != capacity))
		return -EINVAL;
	if (capacity > SHMLIMIT_CAPACITY_MAX || rule->period_ns > PERIOD_MAX_NS)
		return -ERANGE;
	if (quota_bits < QUOTA_BITS_MIN)
		quota_bits = QUOTA_BITS_MIN;
	tick_bits = tick_bits_for(longest_ns, quota_bits);
	params->capacity = params->count = capacity;
	params->period_ns = params->back = params->debt = longest_ns;
	params->ahead = longest_ns + slack_for(longest_ns) + ((uint64_t)1 << tick_bits);
	params->scale[1] = (uint64_t)1 << 54; /* a tick of funnel_time() is a nanosecond: 2^118 */
	params->num = params->den = 1;
	params->shape = params_shape(quota_bits, tick_bits, SHMLIMIT_COUNTER, 0);
	return count_range_ns(params) / 2 < RANGE_MIN_NS ? -ERANGE : 0;
}

void count_range(const struct layout_params *params, struct shmlimit_range *out)
{
	out->resolution_ps = 1000 * count_tick_ns(params);
	out->refill_ns = params->back;
	out->ahead_ns = out->back_ns = count_range_ns(params) / 2 + 1 - count_tick_ns(params);
}

uint64_t count_convert(const struct layout_params *from, uint64_t word, const struct layout_params *to, uint64_t now_ns)
{
	struct count count = count_read(from, word, now_ns);
	uint64_t tick = count_tick_ns(to);

	if (count.left_ns == 0) {
		/* Rounded down: it is over at once. */
		count.until_ns = now_ns & ~(tick - 1);
		return count_pack(to, count);
	}
	if (count_is_more(from, &count) && count.n < to->capacity)
		count.n = to->capacity;
	if (count.n > count_largest(to))
		count.n = count_largest(to);
	if (count.left_ns > to->ahead - tick)
		count.left_ns = to->debt;
	count.until_ns = (now_ns + count.left_ns + tick - 1) & ~(tick - 1);
	return count_pack(to, count);
}
