/*
 * lease: the arithmetic of one lease: tokens of a funnel elsewhere, that may be
 * spent here until some time. Numbers in, numbers out: no shared memory, no clock,
 * no errors. Every function is total.
 *
 *	[ until : 56 - Q           ] [ size : 6 ] [ state : 2 ] [ quota : Q ]
 *
 *	until  in ticks of 2^(Q - 1) nanoseconds; so the word, shifted right by 9, is
 *	       a number of nanoseconds modulo 2^55, except for the low Q - 1 bits
 *	size   how many tokens the claim asks for, or the lease began with, as a small
 *	       float: what the next one's size is found from, and what refunds may restore
 *	state  TOKENS   quota tokens may be spent until then
 *	       DENIED   the backend denies requests of quota or more until then
 *	       ASKED    one process asks the backend; it may until then, and until then may
 *	                quota tokens be spent, that were left when it began
 *
 * After its time, and with no tokens in it, a word is equivalent to an empty slot. 2^55
 * nanoseconds are 417 days: 26 of them are the future, so that a lease that was over for
 * a year is known to be so; by then it is swept (sweep.h). WHY NOT ticks of the same
 * length for all, or larger capacities: ticks would be too long for leases, or the
 * table would be swept all the time.
 *
 * No token outlives the time that it was given: where tokens of two leases meet in
 * one word, all end with the first, or those that end first expire at once.
 *
 * INVARIANT In state TOKENS, the backend counts at least lease_size_least()
 * tokens as lent until then, and quota is never more than what it counts. A refund
 * restores no more than that. WHY NOT up to the capacity: a token that was spent from
 * an earlier lease has been filled again elsewhere, and would be there twice.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_LEASE_H
#define SHMLIMIT_LIB_LEASE_H

#include "layout.h"
#include "request.h"

#define LEASE_TIME_BITS 55
#define LEASE_SIZE_BITS 6
#define LEASE_STATE_BITS 2
#define LEASE_TIME_SHIFT (64 - LEASE_TIME_BITS)
#define LEASE_AHEAD_NS ((uint64_t)1 << 51) /* the longest lease, claim or denial */
#define LEASE_QUOTA_BITS_MAX 21u           /* a tick of a millisecond: no coarser ones for leases */

enum lease_state { LEASE_TOKENS, LEASE_DENIED, LEASE_ASKED };

struct lease {
	uint64_t until_ns; /* modulo 2^55 */
	uint64_t quota;    /* 0 to capacity; 0 once the time is over */
	uint64_t left_ns;  /* until then, 0 if it is over */
	uint64_t expired;  /* tokens that were in the word when its time was over */
	enum lease_state state;
	unsigned size;
};

/*
 * Fill *params from a LEASE rule. Returns 0, or -EDOM capacity, count or period is 0;
 * -ERANGE the capacity is above SHMLIMIT_LEASE_CAPACITY_MAX, or a backend could
 * not count the rule exactly; -EINVAL a flag or
 * max_wait_ns is set, or the credit is above the capacity. On error *params is undefined.
 */
int lease_compile(const struct shmlimit_rule *rule, struct layout_params *params);

/* Resolution and range of compiled parameters: for shmlimit_rule_range(). */
void lease_range(const struct layout_params *params, struct shmlimit_range *out);

/*
 * The size of `tokens` tokens: 0 for none, else within an eighth or, where that is more, 1 / 65536
 * of the capacity.
 */
unsigned lease_size(const struct layout_params *params, uint64_t tokens);
uint64_t lease_size_tokens(const struct layout_params *params, unsigned size);

/* The fewest tokens that have this size. */
uint64_t lease_size_least(const struct layout_params *params, unsigned size);

/*
 * How many tokens to lease next, so that they are spent in three quarters of a lease if the key
 * goes on as it did; few, which last longer, in all of `lease_ns`. 0 if nothing is known, at most
 * `times` as many as last.
 */
uint64_t lease_next(const struct layout_params *params, const struct lease *lease, uint64_t now_ns,
                    const struct lease_pace *pace, uint64_t times);

/*
 * How many tokens the backend leases at most beyond what a request needs, as global/redis/script.c
 * has it. Of a small limit that is what comes back in a quarter of a lease; of others UINT64_MAX.
 * Small are capacities below 8,192 where less than 8 come back in that time.
 */
uint64_t lease_spare(const struct layout_params *params, uint64_t lease_ns);

/*
 * How many requests of a key that asks now will come in a lease of a quarter of the time to full,
 * 20 s at most, if they go on as they did: up to 8, 0 if that is not known, or they come so fast
 * that shorter leases serve several. WHY NOT more for those: tokens that are held do not come back
 * until they are spent, and a burst would meet a limit that lags behind.
 */
unsigned lease_steady(const struct layout_params *params, const struct lease *lease, uint64_t now_ns,
                      const struct lease_pace *pace);

/*
 * How many tokens to lease ahead, after a take of `spent` tokens: 0, or as lease_next() if that
 * take went below a quarter of what the lease began with. Between deposits and refunds only one
 * take of a lease does. WHY NOT for leases of less than 32 units of a size: their keys are slow,
 * and what is leased ahead would expire.
 */
uint64_t lease_ahead(const struct layout_params *params, const struct lease *lease, uint64_t spent, uint64_t now_ns,
                     const struct lease_pace *pace);

/*
 * May lease_ahead() be other than 0? A quarter of a size has only its upper three bits set, so it
 * was not crossed if those are the same before and after.
 */
static inline int lease_may_run_low(uint64_t quota, uint64_t spent)
{
	return (quota ^ (quota + spent)) > (quota + spent) >> 3;
}

/* The word that says under `to` what `word` says under `from`. */
uint64_t lease_convert(const struct layout_params *from, uint64_t word, const struct layout_params *to);

/* Nanoseconds in which one token comes back to the funnel on the backend, 1 or more. */
uint64_t lease_token_ns(const struct layout_params *params);

static inline uint64_t lease_tick_ns(const struct layout_params *params)
{
	return (uint64_t)1 << ((params_quota_bits(params) - 1) & 63);
}

/* What stands in the low bits of a word, below its time. */
static inline uint64_t lease_low(const struct layout_params *params)
{
	return ((uint64_t)1 << ((params_quota_bits(params) + LEASE_STATE_BITS + LEASE_SIZE_BITS) & 63)) - 1;
}

/* The tokens in a word, whatever its state and time. */
static inline uint64_t lease_quota(const struct layout_params *params, uint64_t word)
{
	return word & (((uint64_t)1 << params_quota_bits(params)) - 1);
}

static inline uint64_t lease_pack(const struct layout_params *params, struct lease lease)
{
	unsigned bits = params_quota_bits(params);

	return (lease.until_ns << LEASE_TIME_SHIFT & ~lease_low(params)) |
	       (uint64_t)lease.size << ((bits + LEASE_STATE_BITS) & 63) | (uint64_t)lease.state << bits | lease.quota;
}

/*
 * Nanoseconds from now until a time of a word: 0 if it is over, or so far ahead that no lease
 * reaches it.
 */
static inline uint64_t lease_left_ns(uint64_t until_ns, uint64_t now_ns)
{
	uint64_t left = (until_ns - now_ns) & (UINT64_MAX >> LEASE_TIME_SHIFT);

	return left <= LEASE_AHEAD_NS ? left : 0;
}

/* A time from now, rounded down to a tick, as far as a word reaches. */
static inline uint64_t lease_until(const struct layout_params *params, uint64_t now_ns, uint64_t ns)
{
	ns = ns < LEASE_AHEAD_NS ? ns : LEASE_AHEAD_NS;
	return (now_ns + ns) & (UINT64_MAX >> LEASE_TIME_SHIFT) & ~(lease_tick_ns(params) - 1);
}

static inline struct lease lease_none(void)
{
	struct lease none = { 0, 0, 0, 0, LEASE_TOKENS, 0 };

	return none;
}

/* A word as it stands at some time. */
static inline struct lease lease_read(const struct layout_params *params, uint64_t word, uint64_t now_ns)
{
	unsigned bits = params_quota_bits(params);
	struct lease lease = lease_none();

	lease.until_ns = (word & ~lease_low(params)) >> LEASE_TIME_SHIFT;
	lease.size = word >> ((bits + LEASE_STATE_BITS) & 63) & ((1u << LEASE_SIZE_BITS) - 1);
	lease.left_ns = lease_left_ns(lease.until_ns, now_ns);
	lease.quota = lease_quota(params, word);
	switch (word >> bits & 3) {
	case LEASE_TOKENS:
		break;
	case LEASE_DENIED:
		lease.state = LEASE_DENIED;
		break;
	case LEASE_ASKED:
		lease.state = LEASE_ASKED;
		break;
	default:
		return lease_none(); /* damage */
	}
	if (__builtin_expect(lease.quota > params->capacity, 0))
		lease.quota = params->capacity; /* damage */
	if (__builtin_expect(lease.left_ns == 0, 0)) {
		lease.expired = lease.state == LEASE_DENIED ? 0 : lease.quota;
		lease.quota = 0;
	}
	return lease;
}

/* Tokens that may be spent. */
static inline uint64_t lease_held(const struct lease *lease)
{
	return lease->state == LEASE_DENIED ? 0 : lease->quota;
}

/* Nanoseconds until it is equivalent to an empty slot: 0 if it is. */
static inline uint64_t lease_wait(const struct lease *lease)
{
	return lease->state == LEASE_TOKENS && lease->quota == 0 ? 0 : lease->left_ns;
}

/* What is counted of a lease once it is done. */
struct lease_tally {
	uint64_t leases, leased, spent, expired, denied;
};

#endif
