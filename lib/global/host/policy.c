/*
 * policy: see policy.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "policy.h"

typedef unsigned __int128 u128;

/*
 * A lease lasts at most this part of the time to full. So at most the tokens of four thirds of a
 * lease are lent, a sixth of the capacity; the quota has the rest.
 */
#define FILL_PARTS 8u

/*
 * An answer takes at most this part of a lease, unless the time to full is short. So a lease that is spent as
 * soon as it comes is followed by a larger one (lease_next()).
 */
#define ANSWER_PARTS 2u

/* As in algorithm/lease.c. */
#define SMALL_CAPACITY 8192
#define SMALL_SPARE 8

#define NAP_MIN_NS 20000u
#define NAP_MAX_NS 500000u
#define LOOK_MIN_NS UINT64_C(100000)
#define LOOK_MAX_NS UINT64_C(16000000)

static uint64_t clamp(u128 x)
{
	return x > UINT64_MAX ? UINT64_MAX : (uint64_t)x;
}

uint64_t policy_lease_ns(uint64_t capacity, uint64_t count, uint64_t period_ns, uint64_t wanted_ns,
                         uint64_t deadline_ns)
{
	uint64_t part_ns = clamp((u128)capacity * period_ns / count / FILL_PARTS);
	uint64_t lease_ns =
		wanted_ns / ANSWER_PARTS > deadline_ns ? wanted_ns : clamp((u128)ANSWER_PARTS * deadline_ns);

	lease_ns = lease_ns < part_ns ? lease_ns : part_ns;
	return lease_ns > deadline_ns ? lease_ns : deadline_ns;
}

/* WHY NOT of small limits: what a host holds of them in vain, others are denied (lease_spare()). */
uint64_t policy_want(const struct script_params *params, uint64_t want, uint64_t round_trip_ns)
{
	double lease_us = (double)params->lease_us;
	int is_small = lease_us / 4 < SMALL_SPARE * params->token && params->full < SMALL_CAPACITY * params->token;

	return round_trip_ns / 1000 > params->lease_us / ANSWER_PARTS && !is_small ? 2 * want : want;
}

/* The extra quarter covers the work before and after the call. */
uint64_t policy_claim_ns(uint64_t deadline_ns)
{
	return deadline_ns + deadline_ns / 4;
}

uint64_t policy_denied_ns(const struct script_params *params, uint64_t need, uint64_t want, uint64_t retry_us,
                          uint64_t random)
{
	uint64_t retry_ns = clamp((u128)retry_us * 1000), lease_ns = params->lease_us * 1000, pause_ns;

	if (retry_us == UINT64_MAX || want <= need)
		return retry_us == UINT64_MAX ? UINT64_MAX : retry_ns;
	pause_ns = clamp((u128)lease_ns / 2 + (uint64_t)((u128)random * lease_ns >> 64));
	return retry_ns > pause_ns ? retry_ns : pause_ns;
}

uint64_t policy_nap_ns(unsigned n, uint64_t left_ns)
{
	uint64_t nap_ns = n < 5 ? (uint64_t)NAP_MIN_NS << n : NAP_MAX_NS;

	return nap_ns < left_ns ? nap_ns : left_ns;
}

/*
 * Half of the time so far: an answer is found at most half as late again as it came, with few
 * looks.
 */
uint64_t policy_look_ns(uint64_t waited_ns, uint64_t left_ns)
{
	uint64_t look_ns = waited_ns / 2;

	look_ns = look_ns < LOOK_MIN_NS ? LOOK_MIN_NS : look_ns > LOOK_MAX_NS ? LOOK_MAX_NS : look_ns;
	return look_ns < left_ns ? look_ns : left_ns;
}

void policy_share(uint64_t milli, uint64_t *capacity, uint64_t *count, uint64_t *period_ns)
{
	uint64_t share = clamp((u128)*capacity * milli / 1000);

	*capacity = share | (share == 0);
	if (milli == 1000)
		return;
	/* Numbers too large to be multiplied need no such precision. */
	if (*count <= UINT64_MAX / 1000 && *period_ns <= UINT64_MAX / 1000) {
		*count *= milli;
		*period_ns *= 1000;
	} else {
		*count = (uint64_t)((u128)*count * milli / 1000) | (*count < 1000);
	}
}
