/*
 * count: the rare half of the arithmetic, see count.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>

#include "count.h"
#include "whole.h"

#define SECOND ((uint64_t)1000000000)
#define YEAR_NS (366 * 86400 * SECOND)
#define DEFAULT_CAPACITY 2147483647u
/* A reading of the clock that is older than another process's, by so much at the most, sees that one's count. */
#define SLACK_NS SECOND
/* 36 years: the longest period, and time to live. */
#define PERIOD_MAX_NS ((uint64_t)1 << 60)
/* The longest time to live and the slack are a quarter of the word's range. */
#define RANGE_SHIFT 2

/* Bits of the finest tick with which a time of `longest_ns` fits beside a count of `quota_bits` bits. */
static unsigned tick_bits_for(uint64_t longest_ns, unsigned quota_bits)
{
	unsigned bits = bit_length(longest_ns + SLACK_NS) + RANGE_SHIFT + quota_bits;

	return bits > 64 ? bits - 64 : 0;
}

/* The longest time with such ticks. */
static uint64_t longest_for(unsigned tick_bits, unsigned quota_bits)
{
	unsigned range_bits = 64 - quota_bits + tick_bits;
	uint64_t ns = ((uint64_t)1 << (range_bits - RANGE_SHIFT)) - 1 - SLACK_NS;

	return ns < PERIOD_MAX_NS ? ns : PERIOD_MAX_NS;
}

int count_compile(const struct shmlimit_rule *rule, struct layout_params *params)
{
	uint64_t capacity = rule->capacity != 0 ? rule->capacity : DEFAULT_CAPACITY;
	unsigned quota_bits = bit_length(capacity), tick_bits;

	if (rule->flags != 0 || rule->max_wait_ns != 0 || (rule->count != 0 && rule->count != capacity))
		return -EINVAL;
	if (capacity > SHMLIMIT_CAPACITY_MAX || rule->period_ns > PERIOD_MAX_NS)
		return -ERANGE;
	tick_bits = tick_bits_for(YEAR_NS, quota_bits);
	if (tick_bits > COUNT_TICK_BITS) {
		tick_bits = tick_bits_for(rule->period_ns, quota_bits);
		if (tick_bits < COUNT_TICK_BITS)
			tick_bits = COUNT_TICK_BITS;
	} else if (tick_bits < tick_bits_for(rule->period_ns, quota_bits)) {
		tick_bits = tick_bits_for(rule->period_ns, quota_bits);
	}
	params->debt = longest_for(tick_bits, quota_bits);
	params->capacity = params->count = capacity;
	params->period_ns = params->back = rule->period_ns != 0 ? rule->period_ns : params->debt;
	params->ahead = params->debt + SLACK_NS + ((uint64_t)1 << tick_bits);
	params->scale[1] = (uint64_t)1 << 54; /* a tick of funnel_time() is a nanosecond: 2^118 */
	params->num = params->den = 1;
	params->shape = params_shape(quota_bits, tick_bits, SHMLIMIT_COUNTER, 0);
	return 0;
}

void count_range(const struct layout_params *params, struct shmlimit_range *out)
{
	out->resolution_ps = 1000 * count_tick_ns(params);
	out->refill_ns = params->back;
	out->ahead_ns = params->debt;
	out->back_ns = 3 * (params->debt + 1 + SLACK_NS) - SLACK_NS - count_tick_ns(params);
}

uint64_t count_convert(const struct layout_params *from, uint64_t word, const struct layout_params *to, uint64_t now_ns)
{
	struct count count = count_read(from, word, now_ns);

	if (count.n > to->capacity)
		count.n = to->capacity;
	count_begin(to, &count, count.left_ns, now_ns);
	return count_pack(to, count);
}
