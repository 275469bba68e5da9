/*
 * leases: what is leased from a backend: take of it, deposit, deny, abandon, and count.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>

#include "clock.h"
#include "counter.h"
#include "export.h"
#include "fast_lease.h"
#include "sized.h"

/* *out is the caller's, perhaps of another release, and is written only when there is something to say. */
__attribute__((noinline, cold)) static int runs_low(struct shmlimit_lease *out, uint64_t want)
{
	struct shmlimit_lease found = { .want = want };

	return sized_out(out, &found, sizeof(found)) != 0 ? -EINVAL : SHMLIMIT_ALLOWED;
}

static int lease_take(const struct shmlimit *l, int rule, const void *key, size_t key_len, uint64_t cost,
                      uint64_t lease_ns, uint64_t claim_ns, struct shmlimit_lease *out, struct when when,
                      struct shmlimit_result *r)
{
	struct shmlimit_lease found;
	int answer = decide_check(l, key, key_len, OP_LEASE);
	uint32_t failed = 0;
	uint64_t hash, want = 0;

	if (out == NULL || out->struct_size < 2 * sizeof(out->struct_size))
		return -EINVAL;
	if (answer != 0)
		return answer;
	hash = hash_bytes(l->secret, (uint32_t)rule, key, key_len);
	if (!when.given)
		when = when_read(l);
	answer = fast_lease(l, OP_LEASE, (uint32_t)rule, hash, cost, when, lease_ns, &want, NULL, &failed, r);
	if (answer == FIRST_NOT) {
		struct lease_request leased = { 0, lease_ns, claim_ns, &found };

		found = (struct shmlimit_lease){ 0 };
		answer = decide_rest(l,
		                     &(struct request){ .op = OP_LEASE,
		                                        .rule = (uint32_t)rule,
		                                        .hash = hash,
		                                        .key = { key, key_len },
		                                        .amount = cost,
		                                        .when = when,
		                                        .lease = &leased },
		                     failed, r);
		want = found.want;
	}
	if (answer > SHMLIMIT_DENIED && sized_out(out, &found, sizeof(found)) != 0)
		return -EINVAL;
	if (__builtin_expect(answer == SHMLIMIT_ALLOWED && want != 0, 0))
		return runs_low(out, want);
	return answer;
}

EXPORT int shmlimit_lease_take(struct shmlimit *l, int rule, const void *key, size_t key_len, uint64_t cost,
                               uint64_t lease_ns, uint64_t claim_ns, struct shmlimit_lease *out,
                               struct shmlimit_result *r)
{
	return lease_take(l, rule, key, key_len, cost, lease_ns, claim_ns, out, when_clock(), r);
}

EXPORT int shmlimit_lease_take_at(struct shmlimit *l, int rule, const void *key, size_t key_len, uint64_t cost,
                                  uint64_t lease_ns, uint64_t claim_ns, struct shmlimit_lease *out, uint64_t now_ns,
                                  struct shmlimit_result *r)
{
	return lease_take(l, rule, key, key_len, cost, lease_ns, claim_ns, out, when_given(now_ns), r);
}

EXPORT int shmlimit_lease_deposit(struct shmlimit *l, int rule, const void *key, size_t key_len, uint64_t tokens,
                                  uint64_t cost, uint64_t lasts_ns, struct shmlimit_result *r)
{
	struct lease_request leased = { .tokens = tokens, .lease_ns = lasts_ns };
	struct request q = { .op = OP_DEPOSIT, .amount = cost, .lease = &leased };

	return decide_call(l, rule, key, key_len, &q, r);
}

EXPORT int shmlimit_lease_deposit_at(struct shmlimit *l, int rule, const void *key, size_t key_len, uint64_t tokens,
                                     uint64_t cost, uint64_t lasts_ns, uint64_t now_ns, struct shmlimit_result *r)
{
	struct lease_request leased = { .tokens = tokens, .lease_ns = lasts_ns };
	struct request q = { .op = OP_DEPOSIT, .amount = cost, .when = when_given(now_ns), .lease = &leased };

	return decide_call(l, rule, key, key_len, &q, r);
}

EXPORT int shmlimit_lease_deny(struct shmlimit *l, int rule, const void *key, size_t key_len, uint64_t cost,
                               uint64_t for_ns, struct shmlimit_result *r)
{
	struct lease_request leased = { .lease_ns = for_ns };
	struct request q = { .op = OP_DENY, .amount = cost, .lease = &leased };

	return decide_call(l, rule, key, key_len, &q, r);
}

EXPORT int shmlimit_lease_deny_at(struct shmlimit *l, int rule, const void *key, size_t key_len, uint64_t cost,
                                  uint64_t for_ns, uint64_t now_ns, struct shmlimit_result *r)
{
	struct lease_request leased = { .lease_ns = for_ns };
	struct request q = { .op = OP_DENY, .amount = cost, .when = when_given(now_ns), .lease = &leased };

	return decide_call(l, rule, key, key_len, &q, r);
}

EXPORT int shmlimit_lease_abandon(struct shmlimit *l, int rule, const void *key, size_t key_len)
{
	static const struct lease_request leased = { 0 };
	struct request q = { .op = OP_ABANDON, .lease = &leased };

	return decide_call(l, rule, key, key_len, &q, NULL);
}

EXPORT int shmlimit_lease_abandon_at(struct shmlimit *l, int rule, const void *key, size_t key_len, uint64_t now_ns)
{
	static const struct lease_request leased = { 0 };
	struct request q = { .op = OP_ABANDON, .when = when_given(now_ns), .lease = &leased };

	return decide_call(l, rule, key, key_len, &q, NULL);
}

EXPORT int shmlimit_lease_count(struct shmlimit *l, uint32_t which, uint64_t n)
{
	if (l == NULL || which > SHMLIMIT_LEASE_BREAKER_OPENINGS)
		return -EINVAL;
	if (l->read_only)
		return -EROFS;
	counter_add_lease(l, LEASE_BACKEND_ERRORS + which, n, clock_read(l->clock_id));
	return 0;
}

EXPORT int shmlimit_lease_counters(struct shmlimit *l, struct shmlimit_lease_counters *out)
{
	struct shmlimit_lease_counters counters = { 0 };
	uint64_t sums[LEASE_COUNTERS] = { 0 };

	if (l == NULL)
		return -EINVAL;
	for (uint32_t block = 0; block < l->cpus + l->stripes; block++) {
		const struct layout_block *head = (const void *)counter_line(l, block, -1);

		for (unsigned i = 0; i < LEASE_COUNTERS; i++)
			sums[i] += load_relaxed(&head->leases[i]);
	}
	counters.leases = sums[LEASE_LEASES];
	counters.leased = sums[LEASE_LEASED];
	counters.spent = sums[LEASE_SPENT];
	counters.expired = sums[LEASE_EXPIRED];
	counters.denied = sums[LEASE_KNOWN_DENIALS];
	counters.backend_errors = sums[LEASE_BACKEND_ERRORS];
	counters.breaker_openings = sums[LEASE_BREAKER_OPENINGS];
	return sized_out(out, &counters, sizeof(counters));
}
