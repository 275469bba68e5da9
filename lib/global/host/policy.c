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

/* An answer takes at most this part of a lease, unless the time to full is short. */
#define ANSWER_PARTS 2u

#define FAR_TRIPS 4u

/* As in lease.c. */
#define SMALL_CAPACITY 8192
#define SMALL_SPARE 8

/*
 * As in lease.c: how many tokens are wanted for all of a lease, and when a key is alone.
 */
#define FEW 28u
#define ALONE_PARTS 5u

/*
 * Half as much again is another size (lease.c) from this number of tokens on, and below
 * this capacity.
 */
#define MANY 8
#define COARSE_CAPACITY 131072

#define NAP_MIN_NS 20000u
#define NAP_MAX_NS 500000u
#define LOOK_MIN_NS UINT64_C(100000)
#define LOOK_MAX_NS UINT64_C(16000000)

static uint64_t clamp(u128 x)
{
	return x > UINT64_MAX ? UINT64_MAX : (uint64_t)x;
}

uint64_t policy_answer_ns(uint64_t deadline_ns, uint64_t far_ns)
{
	uint64_t trips_ns = FAR_TRIPS * far_ns;

	return trips_ns > deadline_ns ? trips_ns : deadline_ns;
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
	int is_longer = script_lease_us(params, 1) > params->lease_us; /* with few tokens */
	uint64_t took_us = round_trip_ns / 1000 + (round_trip_ns % 1000 != 0);

	if (is_small)
		return want;
	if (params->full >= COARSE_CAPACITY * params->token || (want < MANY && !is_longer))
		return took_us > params->lease_us / ANSWER_PARTS ? 2 * want : want;
	if (want == 1 && is_longer)
		return took_us > params->lease_us / ALONE_PARTS ? 2 : 1;
	return took_us > params->lease_us / 3 * 2 ? want + (want + 1) / 2 : want;
}

/* The extra quarter covers the work before and after the call. */
uint64_t policy_claim_ns(uint64_t deadline_ns)
{
	return deadline_ns + deadline_ns / 4;
}

uint64_t policy_denied_ns(const struct script_params *params, uint64_t need, uint64_t want, uint64_t retry_us,
                          uint64_t since_ns, uint64_t random)
{
	uint64_t wanted_ns = want > FEW ? params->lease_us * 750 : params->lease_us * 1000;
	uint64_t rest_ns = want > need ? clamp((u128)wanted_ns * (want - need) / want) : 0;

	if (retry_us != SCRIPT_BY_CHANCE)
		return retry_us > UINT64_MAX / 1000 ? UINT64_MAX : retry_us * 1000;
	if (rest_ns <= since_ns + 1000)
		return 1000;
	rest_ns -= since_ns;
	return rest_ns / 2 + (uint64_t)((u128)random * rest_ns >> 64);
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
