/*
 * funnel: the arithmetic of one funnel. Numbers in, numbers out: no shared
 * memory, no clock, no errors. Every function is total: whatever the bits of
 * parameters and word, it returns something, and never more than the capacity.
 *
 * A funnel is (quota, timestamp) in one 64-bit word: whole tokens in the
 * quota, Q bits; the fraction in the timestamp, which counts in the rule's own
 * ticks, 2^f ticks a token, modulo 2^(64 - Q). It stays where the word has it,
 * Q bits up ("a stamp"), so that all arithmetic on it is modulo 2^64 by itself.
 * Refilling is a shift and an addition, and no rounding adds up (I2):
 *
 *	whole = (now - timestamp) >> f      tokens refilled since
 *	quota' = quota + whole              timestamp' = timestamp + (whole << f)
 *	... or, where that reaches the capacity: quota' = capacity, timestamp' = now
 *
 * Where the quota's bits leave too few for the time (10 MB at 125 MB a second), Q
 * is 0. The word is then only a time: the one at which the funnel is empty. The
 * funnel holds what refills in the time from there to now, up to the capacity.
 * (GCRA's theoretical arrival time is one time to full later.) Read as above, such
 * a word is a quota of 0 at that time, so funnel_refill() finds the right funnel in
 * it. Only funnel_pack() asks which form to write; taking, borrowing, refunding and
 * converting are the same for both. WHY NOT for every rule: a process whose clock
 * is behind another's sees fewer tokens by the difference, and a clock that steps
 * back further than the funnel reaches finds it empty. A quota stays what it was.
 *
 * It unites the classic funnel (quota left, time of the last refill), Guava's
 * (stored permits, next free ticket) and GCRA's arrival time. Setting the time
 * to now on each refill instead would throw the fraction away, so that a funnel
 * that is asked often refills too slowly.
 *
 * The range of the timestamp is split unevenly: `back` ticks of it are the
 * past (a year and the time to full), the rest is the future. A
 * timestamp in the future is a debt, where the quota is 0, or another process's
 * clock read. Further ahead than the longest debt and a slack for clock reads it
 * is a clock that stepped, or damage, and counts as the longest debt. Nothing is
 * forgiven by that: the quota stays what it was (I8).
 *
 * A reservation takes the quota to 0 and moves the timestamp into the future by
 * what was missing: at that time all that was borrowed is back.
 *
 * Nanoseconds become ticks by floor(now * num / den), exactly, so an interval
 * that is a whole number of tokens is never a tick short. The multiplication
 * by a reciprocal is exact for every 64-bit time (I12): see funnel_compile().
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_FUNNEL_H
#define SHMLIMIT_LIB_FUNNEL_H

#include "layout.h"

#define FUNNEL_NEVER UINT64_MAX
#define FUNNEL_BACK_NS ((uint64_t)366 * 86400 * 1000000000)
#define FUNNEL_SCALE_BITS 118 /* fraction bits of params.scale: 64 + 54, see funnel_compile() */

/* A point in time, for one rule. */
struct funnel_time {
	uint64_t now_ns;
	uint64_t ticks; /* modulo 2^64 */
	uint64_t stamp; /* ticks << Q */
};

/* A funnel at some time, refilled up to then. */
struct funnel {
	uint64_t quota; /* 0 to capacity */
	uint64_t stamp; /* the low Q bits are zero */
	int stepped;    /* the word's timestamp was impossible and was replaced by now */
};

/*
 * Fill *params from a rule's capacity, rate, longest wait and flags: with a quota in
 * the word if there is room for it. Returns 0, or -ERANGE when no tick gives the
 * required range or the exact conversion would not fit 64 bits; -EDOM when
 * capacity, count or period is 0. On error *params is undefined.
 */
int funnel_compile(const struct shmlimit_rule *rule, struct layout_params *params);

/*
 * The same, or -ERANGE where there is no room for the quota. A word is known to be full for
 * `back_ns` after it is: by then it is swept.
 */
int funnel_compile_quota(const struct shmlimit_rule *rule, uint64_t back_ns, struct layout_params *params);

/*
 * The word that says under `to` what `word` says under `from`, refilled up to
 * now: as many tokens, clamped to the new capacity, the same fraction of a
 * token (rounded down to a tick), the same debt in tokens (rounded up, clamped
 * to the new longest). WHY NOT full for what was full: lowering a capacity and
 * raising it again would give tokens away.
 */
uint64_t funnel_convert(const struct layout_params *from, uint64_t word, const struct layout_params *to,
                        uint64_t now_ns);

/*
 * Resolution and range of compiled parameters: for shmlimit_rule_range(). Leaves struct_size alone.
 */
void funnel_range(const struct layout_params *params, struct shmlimit_range *out);

static inline struct funnel_time funnel_time(const struct layout_params *params, uint64_t now_ns)
{
	unsigned __int128 low = (unsigned __int128)now_ns * params->scale[0];
	unsigned __int128 high = (unsigned __int128)now_ns * params->scale[1] + (uint64_t)(low >> 64);
	struct funnel_time at;

	at.now_ns = now_ns;
	at.ticks = (uint64_t)(high >> (FUNNEL_SCALE_BITS - 64));
	at.stamp = at.ticks << params_quota_bits(params);
	return at;
}

static inline uint64_t funnel_pack(const struct layout_params *params, struct funnel funnel)
{
	if (__builtin_expect(params_quota_bits(params) == 0, 0))
		return funnel.stamp - (funnel.quota << params_token_bits(params));
	return funnel.stamp | funnel.quota;
}

static inline struct funnel funnel_full(const struct layout_params *params, struct funnel_time at)
{
	struct funnel full = { params->capacity, at.stamp, 0 };

	return full;
}

static inline int funnel_is_full(const struct layout_params *params, struct funnel funnel)
{
	return funnel.quota >= params->capacity;
}

/* The word's timestamp is not in the future. */
static inline int funnel_is_past(const struct layout_params *params, uint64_t word, struct funnel_time at)
{
	return at.stamp - (word & ~(((uint64_t)1 << params_quota_bits(params)) - 1)) <= params->back;
}

/* Unpack a word and refill it up to `at`. */
static inline struct funnel funnel_refill(const struct layout_params *params, uint64_t word, struct funnel_time at)
{
	uint64_t mask = ((uint64_t)1 << params_quota_bits(params)) - 1;
	uint64_t capacity = params->capacity;
	struct funnel funnel = { word & mask, word & ~mask, 0 };
	uint64_t elapsed = at.stamp - funnel.stamp;

	if (__builtin_expect(funnel.quota > capacity, 0))
		funnel.quota = capacity; /* a damaged word gives no more than a full funnel */
	if (__builtin_expect(elapsed <= params->back, 1)) {
		uint64_t whole = elapsed >> params_token_bits(params);

		if (whole >= capacity - funnel.quota) {
			funnel.quota = capacity;
			funnel.stamp = at.stamp;
		} else {
			funnel.quota += whole;
			funnel.stamp += whole << params_token_bits(params);
		}
	} else if (funnel.stamp - at.stamp > params->ahead) {
		funnel.stamp = at.stamp + (funnel.quota == 0 ? params->debt : 0);
		funnel.stepped = 1;
	}
	return funnel;
}

/*
 * The debt of a funnel refilled up to `at`, as a stamp: how far in the future all that was borrowed
 * is back.
 */
static inline uint64_t funnel_debt(const struct layout_params *params, struct funnel funnel, struct funnel_time at)
{
	return funnel.quota == 0 && at.stamp - funnel.stamp > params->back ? funnel.stamp - at.stamp : 0;
}

/*
 * Take `tokens`, of which the funnel may lack some: those are borrowed. Returns
 * false, changing nothing, if the debt would be longer than the longest. *debt is
 * a stamp: how long the debt is, 0 for none; where it is refused, by how much it
 * would be longer than the longest (saturated).
 */
static inline int funnel_borrow(const struct layout_params *params, struct funnel *funnel, uint64_t tokens,
                                struct funnel_time at, uint64_t *debt)
{
	uint64_t elapsed = at.stamp - funnel->stamp;
	unsigned __int128 length;

	*debt = 0;
	if (tokens <= funnel->quota) {
		funnel->quota -= tokens;
		return 1;
	}
	length = (unsigned __int128)(tokens - funnel->quota) << params_token_bits(params);
	/*
	 * Where the stamp is in the past, by less than a token, what has refilled counts; in the
	 * future it adds.
	 */
	if (elapsed <= params->back)
		length -= elapsed;
	else
		length += 0 - elapsed;
	if (length > params->debt) {
		length -= params->debt;
		*debt = length >> 64 != 0 ? UINT64_MAX : (uint64_t)length;
		return 0;
	}
	*debt = (uint64_t)length;
	funnel->quota = 0;
	funnel->stamp = at.stamp + *debt;
	return 1;
}

/*
 * Take `tokens` whatever it costs, down to the longest debt and no further. Returns 1 if that was
 * all of them.
 */
static inline int funnel_charge(const struct layout_params *params, struct funnel *funnel, uint64_t tokens,
                                struct funnel_time at)
{
	uint64_t debt;

	if (funnel_borrow(params, funnel, tokens, at, &debt))
		return 1;
	funnel->quota = 0;
	/*
	 * Never back: where the stamp is a later clock reading by another process, what refilled
	 * until then counts once.
	 */
	if (at.stamp - funnel->stamp <= params->back || funnel->stamp - at.stamp < params->debt)
		funnel->stamp = at.stamp + params->debt;
	return 0;
}

/* Give `tokens` back: what was borrowed first, then up to the capacity. */
static inline void funnel_refund(const struct layout_params *params, struct funnel *funnel, uint64_t tokens,
                                 struct funnel_time at)
{
	uint64_t debt = funnel_debt(params, *funnel, at);
	uint64_t token = (uint64_t)1 << params_token_bits(params);
	uint64_t owed = (debt >> params_token_bits(params)) + ((debt & (token - 1)) != 0);

	if (tokens >= params->capacity - funnel->quota && tokens - (params->capacity - funnel->quota) >= owed) {
		/* the fraction of a token that had refilled is void */
		*funnel = funnel_full(params, at);
		return;
	}
	if (tokens < owed) {
		funnel->stamp -= tokens << params_token_bits(params);
		return;
	}
	/* The last token of a debt was owed in part: the rest of it has refilled by now. */
	funnel->stamp -= owed << params_token_bits(params);
	funnel->quota += tokens - owed;
}

/*
 * Nanoseconds until the tick that is `ticks` (1 or more) after that of `at` begins.
 *
 * With rho = now * num mod den, the part of a tick that has passed at `at` in
 * units of 1 / den: d nanoseconds on, the number of the tick is
 * floor((now + d) * num / den), and the least d that lifts it by `ticks` is
 *
 *	d = ceil((ticks * den - rho) / num)
 *
 * The quotient of (ticks - 1) * den is guessed by the inverse: never too high,
 * and for less than 2^63 nanoseconds at most 2 too low; the small rest is
 * counted out. Rest and products are exact modulo 2^64, and the rest is below
 * den + 3 * num < 2^63.
 */
__attribute__((always_inline)) static inline uint64_t funnel_ticks_to_ns(const struct layout_params *params,
                                                                         struct funnel_time at, uint64_t ticks)
{
	uint64_t num = params->num | (params->num == 0);
	uint64_t rho = at.now_ns * num - at.ticks * params->den;
	uint64_t guess = (uint64_t)((unsigned __int128)(ticks - 1) * params->inverse >> params_inverse_shift(params));
	uint64_t rest = ticks * params->den - rho - guess * num;

	if (__builtin_expect(rest > 3 * num, 0))
		return guess + (rest + num - 1) / num; /* ticks longer than a nanosecond */
	return guess + (rest != 0) + (rest > num) + (rest > 2 * num);
}

/*
 * The same for two lengths of time together, which are stamps: 0 for none. Their sum need not be a
 * stamp.
 */
static inline uint64_t funnel_stamps_to_ns(const struct layout_params *params, struct funnel_time at, uint64_t first,
                                           uint64_t second)
{
	uint64_t ticks = (first >> params_quota_bits(params)) + (second >> params_quota_bits(params));

	return ticks == 0 ? 0 : funnel_ticks_to_ns(params, at, ticks);
}

/* The time of a funnel that is ns, which is not 0, rounded up to a tick: it refills no earlier. */
static inline uint64_t funnel_stamp_at(const struct layout_params *params, uint64_t ns)
{
	return funnel_time(params, ns - 1).stamp + ((uint64_t)1 << params_quota_bits(params));
}

static inline uint64_t funnel_stamp_to_ns(const struct layout_params *params, struct funnel_time at, uint64_t stamp)
{
	return funnel_stamps_to_ns(params, at, stamp, 0);
}

/*
 * Nanoseconds from `at` until the funnel, refilled up to `at`, holds `quota`
 * tokens: 0 if it does, UINT64_MAX if that is above the capacity. Exact: one
 * nanosecond earlier it does not.
 */
__attribute__((always_inline)) static inline uint64_t
funnel_ns_until(const struct layout_params *params, struct funnel funnel, uint64_t quota, struct funnel_time at)
{
	uint64_t missing, elapsed;

	if (quota <= funnel.quota)
		return 0;
	if (quota > params->capacity)
		return FUNNEL_NEVER;
	/*
	 * Elapsed is less than a token or, where the stamp is in the future, negative: then it
	 * adds.
	 */
	missing = (quota - funnel.quota) << params_token_bits(params);
	elapsed = at.stamp - funnel.stamp;
	return funnel_ticks_to_ns(params, at, (missing - elapsed) >> params_quota_bits(params));
}

#endif
