/*
 * count: the arithmetic of a count that expires (COUNTER). Numbers in, numbers out:
 * no shared memory, no clock, no errors. Every function is total.
 *
 *	[ until : 64 - Q           ] [ count : Q ]
 *
 *	until  when the count ends, in ticks of 2^S nanoseconds, rounded up
 *	count  what was added since it began, 0 to capacity; Q bits hold the capacity
 *
 * The word tells the time modulo 2^(64 - Q + S) nanoseconds. A quarter of that is
 * the longest time to live: a count that has ended is known to have ended for
 * three quarters. A count that has ended and no slot are the same thing.
 *
 * The meaning is that of INCREX with ENX in Redis 8.8 and Valkey 9.2: the first addition
 * starts the time, later ones leave it alone.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_COUNT_H
#define SHMLIMIT_LIB_COUNT_H

#include "layout.h"

#define COUNT_TICK_BITS 19u /* half a millisecond: ticks are no finer unless a year still fits */

struct count {
	uint64_t n;        /* 0 to capacity; 0 once the time is over */
	uint64_t left_ns;  /* of its time; 0 if it is over */
	uint64_t until_ns; /* a whole number of ticks; modulo the word's range */
};

/*
 * Fill *params from a COUNTER rule, `debt` with the longest time to live: a capacity of 0 is 2^31 - 1, a period of 0 the
 * longest. Returns 0, or -EINVAL a flag, max_wait_ns or a count other than the
 * capacity is set; -ERANGE the capacity is above 2^48 or the period above 36 years. On error
 * *params is undefined.
 */
int count_compile(const struct shmlimit_rule *rule, struct layout_params *params);

/* Resolution and range of compiled parameters: for shmlimit_rule_range(). struct_size is left alone. */
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

/* What a word says at now_ns. */
static inline struct count count_read(const struct layout_params *params, uint64_t word, uint64_t now_ns)
{
	unsigned quota_bits = params_quota_bits(params);
	struct count count = { .until_ns = word >> quota_bits << params_token_bits(params) };

	count.left_ns = (count.until_ns - now_ns) & count_range_ns(params);
	if (count.left_ns > params->ahead)
		count.left_ns = 0;
	if (count.left_ns == 0)
		return count;
	count.n = word & (((uint64_t)1 << quota_bits) - 1);
	if (count.n > params->capacity)
		count.n = params->capacity;
	return count;
}

static inline uint64_t count_pack(const struct layout_params *params, struct count count)
{
	return count.until_ns >> params_token_bits(params) << params_quota_bits(params) | count.n;
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

/* The word that says under `to` what `word` says under `from`: the count, clamped, until the same time. */
uint64_t count_convert(const struct layout_params *from, uint64_t word, const struct layout_params *to,
                       uint64_t now_ns);

#endif
