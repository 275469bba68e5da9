/*
 * policy: how long things last, by numbers alone.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <inttypes.h>

#include "backoff.h"
#include "policy.h"
#include "failed_keys.h"
#include "lease.h"
#include "rng.h"

#define MS UINT64_C(1000000)
#define S (1000 * MS)

static void leases(struct rng *rng)
{
	int short_of = 0, long_of = 0;

	is(policy_lease_ns(100000, 100000, S, 100 * MS, 5 * MS), 100 * MS, "a lease lasts as wished");
	is(policy_lease_ns(400, 1000, S, 100 * MS, 5 * MS), 50 * MS, "no longer than an eighth of the time to fill");
	is(policy_lease_ns(100000, 1000, S, 100 * MS, 80 * MS), 160 * MS, "at least twice as long as a call may take");
	is(policy_lease_ns(400, 1000, S, 100 * MS, 40 * MS), 50 * MS,
	   "even then no longer than an eighth of the time to fill");
	is(policy_lease_ns(1, 1000000, S, 100 * MS, 5 * MS), 5 * MS, "no shorter than a call may take");
	is(policy_lease_ns(UINT64_MAX, 1, UINT64_MAX, 100 * MS, 5 * MS), 100 * MS, "whatever the numbers");
	for (int i = 0; i < 100000; i++) {
		uint64_t count = rng_draw(rng) >> rng_below(rng, 64) | 1, period_ns = rng_draw(rng) | 1;
		uint64_t capacity = rng_draw(rng) >> rng_below(rng, 64) | 1;
		uint64_t ns = policy_lease_ns(capacity, count, period_ns, 100 * MS, 5 * MS);

		short_of += ns < 5 * MS;
		long_of += ns > 100 * MS;
	}
	is(short_of + long_of, 0, "a lease is never out of these");
}

static void wants(void)
{
	struct script_params large = { .full = 1e6, .token = 100, .lease_us = 100000 };
	struct script_params small = { .full = 60e6, .token = 1e6, .lease_us = 100000 };

	is(policy_want(&large, 5, 0), 5, "where no answer came yet, a key is asked for as it wants");
	is(policy_want(&large, 4, 66 * MS), 4, "the same where answers take two thirds of a lease");
	is(policy_want(&large, 4, 67 * MS), 6, "where they take longer, half as much again is asked for");
	is(policy_want(&large, 1, 20 * MS), 1, "a key that wants one token is asked for one");
	is(policy_want(&large, 1, 21 * MS), 2, "it is asked for two where answers take more than a fifth of a lease");
	large.full = 700000;
	is(policy_want(&large, 5, 51 * MS), 10,
	   "twice as much from half of a lease on, where leases are long for the limit");
	is(policy_want(&large, 50, 66 * MS), 50, "of many tokens no more until two thirds of a lease");
	is(policy_want(&large, 50, 67 * MS), 75, "of many tokens half as much again from then on");
	is(policy_want(&small, 1, 99 * MS), 1, "of a small limit no more is asked for");
}

/*
 * However long the backend takes, less than a lease: a key that spends its leases as soon as they come gets
 * larger ones, until the limit holds it up. Small limits are leased as they are needed.
 */
static void growing(struct rng *rng)
{
	unsigned tried = 0, stuck = 0;

	for (unsigned i = 0; i < 20000; i++) {
		struct shmlimit_rule rule = { .struct_size = sizeof(rule),
			                      .algorithm = SHMLIMIT_LEASE,
			                      .capacity = 8192 + (rng_below(rng, SHMLIMIT_LEASE_CAPACITY_MAX - 8192) >>
			                                          rng_below(rng, 8)),
			                      .refill = 1 + rng_below(rng, 100000),
			                      .period_ns = S };
		uint64_t deadline_ns = MS + rng_below(rng, S), took_ns, lease_ns, tokens = 1;
		struct script_params params;
		struct layout_params compiled;
		struct lease_pace pace;
		unsigned rounds = 0;

		lease_ns = policy_lease_ns(rule.capacity, rule.refill, S, 100 * MS, deadline_ns);
		if (lease_compile(&rule, &compiled) != 0 ||
		    script_params(&params, rule.capacity, rule.refill, S, lease_ns / 1000) != 0)
			continue;
		lease_ns = params.lease_us * 1000;
		pace = (struct lease_pace){ lease_ns,
			                    script_lease_us(&params, 1) > params.lease_us ? SCRIPT_FEW_TIMES : 0 };
		took_ns = MS / 2 + rng_below(rng, lease_ns / 100 * 99 - MS / 2);
		for (tried++; tokens < rule.capacity / 2 && rounds < 200; rounds++) {
			struct lease spent = { .left_ns = script_lease_us(&params, tokens) * 1000 - took_ns,
				               .state = LEASE_TOKENS,
				               .size = lease_size(&compiled, tokens) };

			tokens = policy_want(&params, lease_next(&compiled, &spent, 0, &pace, 2), took_ns);
		}
		if (rounds == 200 && stuck++ == 0)
			diag("capacity %llu, %llu a second, lease %llu, answers after %llu ns: at %llu tokens",
			     (unsigned long long)rule.capacity, (unsigned long long)rule.refill,
			     (unsigned long long)lease_ns, (unsigned long long)took_ns, (unsigned long long)tokens);
	}
	ok(tried > 10000, "most limits can be leased");
	is(stuck, 0, "a key that spends each lease as soon as it comes gets larger ones, however late that is");
}

/*
 * A host of n requests in a lease wants n tokens, or three quarters of that many beyond 28. If they
 * are denied, as many requests are.
 */
#define MIDDLE (UINT64_C(1) << 63) /* of the random numbers */

static void denials(struct rng *rng)
{
	struct script_params params = { .lease_us = 100000 };
	uint64_t least_ns = UINT64_MAX, most_ns = 0, sum_ns = 0;
	unsigned uneven = 0;

	is(policy_denied_ns(&params, 1, 1, 7, 0, 0), 7000, "a denial holds until tokens come back");
	is(policy_denied_ns(&params, 1, 100, 7, 0, UINT64_MAX), 7000,
	   "the same of a host that wants more than it needs");
	is(policy_denied_ns(&params, 1, 1, UINT64_MAX, 0, 0), UINT64_MAX,
	   "a host that can never have what it needs never comes back");
	is(policy_denied_ns(&params, 1, 9, UINT64_MAX - 1, 0, 0), UINT64_MAX, "a time too long to tell is never, too");
	is(policy_denied_ns(&params, 1, 1, SCRIPT_BY_CHANCE, 0, UINT64_MAX), 1000,
	   "a host that wants one token, and is denied by chance, asks again with its next request");
	is(policy_denied_ns(&params, 1, 20, SCRIPT_BY_CHANCE, 0, MIDDLE), 95 * MS,
	   "a host that wants twenty tokens denies for the time of the next nineteen requests");
	for (int i = 0; i < 100000; i++) {
		uint64_t want = 2 + rng_below(rng, 10000), since_ns = rng_below(rng, 10 * MS);
		uint64_t ns = policy_denied_ns(&params, 1, want, SCRIPT_BY_CHANCE, since_ns, MIDDLE);
		double between_ns = (want > 28 ? 75e6 : 100e6) / (double)want, denied;

		denied = 1 + (double)(ns + since_ns) / between_ns;
		uneven += ns > 10000 && (denied < (double)want * 0.999 || denied > (double)want * 1.001);
		ns = policy_denied_ns(&params, 1, 20, SCRIPT_BY_CHANCE, 0, rng_draw(rng));
		least_ns = ns < least_ns ? ns : least_ns;
		most_ns = ns > most_ns ? ns : most_ns;
		sum_ns += ns;
	}
	is(uneven, 0,
	   "a denial by chance meets as many requests as a grant would have, the time of the answer included");
	ok(least_ns >= 95 * MS / 2 && least_ns < 50 * MS && most_ns > 140 * MS && most_ns <= 95 * MS * 3 / 2,
	   "denials by chance last from half of that time to half as long again, so that hosts do not ask in step (%" PRIu64
	   " to %" PRIu64 ")",
	   least_ns, most_ns);
	ok(sum_ns / 100000 > 94 * MS && sum_ns / 100000 < 96 * MS, "their mean is that time (%" PRIu64 ")",
	   sum_ns / 100000);
}

/* The segment and the backend agree on how long leases last: else keys look more or less busy than they are. */
static void lasting(struct rng *rng)
{
	unsigned wrong = 0, few = 0;

	for (unsigned i = 0; i < 20000; i++) {
		struct shmlimit_rule rule = { .struct_size = sizeof(rule),
			                      .algorithm = SHMLIMIT_LEASE,
			                      .capacity = 1000 + rng_below(rng, 200000),
			                      .refill = 1 + rng_below(rng, 100000),
			                      .period_ns = S };
		uint64_t tokens = 4 + rng_below(rng, 60), lease_ns, next, size;
		struct script_params params;
		struct layout_params compiled;
		struct lease spent = { .state = LEASE_TOKENS };
		struct lease_pace pace;

		lease_ns =
			policy_lease_ns(rule.capacity, rule.refill, S, 100 * MS, MS + rng_below(rng, 100 * MS)) / 1000;
		if (lease_compile(&rule, &compiled) != 0 ||
		    script_params(&params, rule.capacity, rule.refill, S, lease_ns) != 0)
			continue;
		spent.size = lease_size(&compiled, tokens);
		size = lease_size_tokens(&compiled, spent.size);
		spent.left_ns = script_lease_us(&params, tokens) * 1000 - params.lease_us * 800;
		pace = (struct lease_pace){ params.lease_us * 1000,
			                    script_lease_us(&params, 1) > params.lease_us ? SCRIPT_FEW_TIMES : 0 };
		next = lease_next(&compiled, &spent, 0, &pace, 2);
		few += script_lease_us(&params, tokens) > params.lease_us;
		/* In four fifths of a lease: five quarters of it, or three quarters of them. */
		wrong += next * 100 < size * 85 || (next > size * 150 / 100 && next > 32);
	}
	is(wrong, 0, "what was spent in four fifths of a lease is followed by about as much");
	ok(few > 1000 && few < 19000, "of these leases some last three times as long: %u", few);
}

static void shares(void)
{
	uint64_t capacity = 1000, count = 7, period_ns = S;

	policy_share(250, &capacity, &count, &period_ns);
	ok(capacity == 250 && count == 1750 && period_ns == 1000 * S, "a quarter of a limit is exact");
	policy_share(1000, &capacity, &count, &period_ns);
	ok(capacity == 250 && count == 1750 && period_ns == 1000 * S, "all of it is it");
	capacity = 3;
	policy_share(1, &capacity, &count, &period_ns);
	is(capacity, 1, "a share is a token at least");
	count = UINT64_MAX;
	period_ns = 1;
	policy_share(500, &capacity, &count, &period_ns);
	ok(count == UINT64_MAX / 2 && period_ns == 1, "a share never wraps");
}

static void naps(void)
{
	uint64_t sum = 0;
	unsigned n = 0;

	while (sum < 5 * MS)
		sum += policy_nap_ns(n++, 5 * MS - sum);
	is(sum, 5 * MS, "naps end with the deadline");
	ok(n >= 10 && n <= 100, "naps are few: %u", n);
	ok(backoff_ns(200 * MS, 0) == 150 * MS && backoff_ns(200 * MS, UINT64_MAX) == 250 * MS,
	   "a server that failed is left alone for three to five quarters of open_ns");
}

static void failed(struct rng *rng)
{
	struct failed_keys failed_keys = { .secret = rng_draw(rng) };

	ok(!failed_keys_have(&failed_keys, "a", 1, 0), "no key is failed_keys at first");
	failed_keys_add(&failed_keys, "a", 1, 100);
	ok(failed_keys_have(&failed_keys, "a", 1, 99), "a key that failed has failed until its time");
	ok(!failed_keys_have(&failed_keys, "a", 1, 100), "a key is let alone no longer than its time");
	ok(!failed_keys_have(&failed_keys, "b", 1, 99), "other keys have not failed");
	for (int i = 0; i < 1000; i++)
		failed_keys_add(&failed_keys, &i, sizeof(i), 100);
	ok(!failed_keys_have(&failed_keys, "a", 1, 99), "what has no room is forgotten");
}

int main(void)
{
	struct rng rng = { rng_seed() };

	leases(&rng);
	wants();
	growing(&rng);
	denials(&rng);
	lasting(&rng);
	shares();
	naps();
	failed(&rng);
	return tap_done();
}
