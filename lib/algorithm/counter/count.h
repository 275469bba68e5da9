/*
 * count: the arithmetic of a count that expires (COUNTER). Numbers in, numbers out:
 * no shared memory, no clock, no errors. Every function is total.
 *
 *	[ until : 64 - Q           ] [ count : Q ]
 *
 *	until  when the count ends, in ticks of 2^S nanoseconds, rounded up
 *	count  what was added since it began, 0 to 2^Q - 1
 *
 * Q is 26, or as many bits as the capacity needs. So the word of a rule with a capacity
 * below 2^26 does not depend on the capacity: a count that is above a lowered capacity
 * stays in the word, and a capacity that is raised again finds it there. Where the
 * capacity shrinks across 2^26, a count that does not fit becomes 2^Q - 1, which means "as
 * much as any capacity": see count_convert().
 *
 * The word tells the time modulo 2^(64 - Q + S) nanoseconds. Half of that is the past. Of
 * the other half, what the rule can mean is the longest time to live and a slack for clock
 * readings. An end beyond that is impossible: the clock stepped back, or the word is
 * damaged. Then the count lives for the longest time from now, and no longer (I8). A count
 * that has ended and no slot are the same thing.
 *
 * The meaning is that of INCREX with ENX in Redis 8.8 and Valkey 9.2: the first addition
 * starts the time, later ones leave it alone. WHY NOT times to live above the period:
 * the word would have to tell them, with longer ticks for all, and a clock that stepped
 * back could lock a key out for longer than its rule says.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_COUNT_H
#define SHMLIMIT_LIB_COUNT_H

#include "layout.h"

struct count {
	/* 0 to 2^Q - 1, above a capacity that was lowered; 0 once the time is over */
	uint64_t n;
	uint64_t left_ns;  /* of its time; 0 if it is over */
	uint64_t until_ns; /* a whole number of ticks; modulo the word's range */
	/* the word's time was impossible and was replaced by the longest from now */
	int stepped;
};

/*
 * Fill *params from a COUNTER rule, `debt` with the longest time to live: a capacity of 0 is 2^31 -
 * 1, a period of 0 is 366 days. Returns 0, or -EINVAL a flag, max_wait_ns or a count other than the
 * capacity is set; -ERANGE the capacity is above 2^48 or the period above 36 years, or the word has
 * too few bits for a period below a millisecond beside the capacity. On error *params is undefined.
 */
int count_compile(const struct shmlimit_rule *rule, struct layout_params *params);

/*
 * Resolution and range of compiled parameters: for shmlimit_rule_range(). Leaves struct_size alone.
 */
void count_range(const struct layout_params *params, struct shmlimit_range *out);

static inline uint64_t count_tick_ns(const struct layout_params *params)
{
	return (uint64_t)1 << params_token_bits(params);
}

/* Nanoseconds that a word can tell apart, less one. */
static inline uint64_t count_range_ns(const struct layout_params *params)
{
	return UINT64_MAX >> ((params_quota_bits(params) - params_token_bits(params)) & 63);
}

/* The largest count that a word can hold. */
static inline uint64_t count_largest(const struct layout_params *params)
{
	return ((uint64_t)1 << params_quota_bits(params)) - 1;
}

/* Begin the time that the count has left: ttl_ns, at most the longest. */
static inline void count_begin(const struct layout_params *params, struct count *count, uint64_t ttl_ns,
                               uint64_t now_ns)
{
	uint64_t tick = count_tick_ns(params);

	if (ttl_ns > params->debt)
		ttl_ns = params->debt;
	count->until_ns = (now_ns + ttl_ns + tick - 1) & ~(tick - 1);
	count->left_ns = count->until_ns - now_ns;
}

/* What a word says at now_ns. */
static inline struct count count_read(const struct layout_params *params, uint64_t word, uint64_t now_ns)
{
	struct count count = { .until_ns = word >> params_quota_bits(params) << params_token_bits(params) };

	count.left_ns = (count.until_ns - now_ns) & count_range_ns(params);
	if (count.left_ns == 0)
		return count;
	if (count.left_ns > params->ahead) {
		if (count.left_ns > count_range_ns(params) / 2) {
			count.left_ns = 0;
			return count;
		}
		count_begin(params, &count, params->debt, now_ns);
		count.stepped = 1;
	}
	count.n = word & count_largest(params);
	return count;
}

static inline uint64_t count_pack(const struct layout_params *params, struct count count)
{
	return count.until_ns >> params_token_bits(params) << params_quota_bits(params) | count.n;
}

/* Does the word hold less than was counted? See count_convert(). */
static inline int count_is_more(const struct layout_params *params, const struct count *count)
{
	return count->n == count_largest(params) && count->n > params->capacity;
}

/* The count, as far as the capacity goes. */
static inline uint64_t count_used(const struct layout_params *params, const struct count *count)
{
	return count->n < params->capacity ? count->n : params->capacity;
}

/*
 * The word that says under `to` what `word` says under `from`: the count, until the same time, or
 * for as long as `to` lets a count live. What has ended stays ended.
 *
 * A count that no word of `to` holds becomes the largest one. Where that is above the capacity of
 * `from`, the count was larger: then it is at least the capacity of `to`. WHY NOT as it stands: a
 * capacity of 10^12 that is lowered to 100 and raised again would forget most of what was counted.
 * The price is that it may count more than there was, until it ends.
 */
uint64_t count_convert(const struct layout_params *from, uint64_t word, const struct layout_params *to,
                       uint64_t now_ns);

#endif
