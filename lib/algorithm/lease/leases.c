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
#include "shmlimit.h"
#include "sized.h"

/* Bytes in release 1.0, which has all that is used here. */
#define REQUEST_SIZE_1_0 32u

/*
 * *out is the caller's, perhaps of another release, and is written only when there is something to
 * say.
 */
__attribute__((noinline, cold)) static int runs_low(struct shmlimit_lease *out, uint64_t want)
{
	struct shmlimit_lease found = { .want = want };

	return sized_out(out, &found, sizeof(found)) != 0 ? -EINVAL : SHMLIMIT_ALLOWED;
}

FAST int lease_take(const struct shmlimit *l, const struct request *request, struct shmlimit_lease *out,
                    struct shmlimit_result *r)
{
	struct shmlimit_lease found;
	struct lease_request leased;
	uint32_t failed = 0;
	uint64_t want = 0;
	int answer = decide_check(l, request);
	struct request q;
	struct first f;

	if (out == NULL || out->struct_size < 2 * sizeof(out->struct_size))
		return -EINVAL;
	if (answer != 0)
		return answer;
	q = decide_complete(l, request);
	answer = first_find(l, &q, SHMLIMIT_LEASE, 0, &f) ? fast_lease(l, &f, &q, &want, &failed, r) : FIRST_NOT;
	if (answer == FIRST_NOT) {
		found = (struct shmlimit_lease){ 0 };
		leased = *q.lease;
		leased.out = &found;
		q.lease = &leased;
		answer = first_rest(l, &q, failed, r);
		want = found.want;
	}
	if (answer > SHMLIMIT_DENIED && sized_out(out, &found, sizeof(found)) != 0)
		return -EINVAL;
	if (__builtin_expect(answer == SHMLIMIT_ALLOWED && want != 0, 0))
		return runs_low(out, want);
	return answer;
}

/* Of q what the caller's structure has is missing. */
FAST int take_asked(const struct shmlimit *l, struct request q, const struct shmlimit_lease_request *from,
                    struct shmlimit_lease *out, struct shmlimit_result *r)
{
	struct shmlimit_lease_request known;
	struct lease_request leased;

	if (from == NULL || from->struct_size < REQUEST_SIZE_1_0)
		return -EINVAL;
	if (__builtin_expect(from->struct_size != sizeof(known), 0)) {
		int error = sized_in(&known, from, sizeof(known));

		if (error != 0)
			return error;
		from = &known;
	}
	if (from->few_times > SHMLIMIT_LEASE_FEW_TIMES_MAX)
		return -EINVAL;
	leased = (struct lease_request){ .pace = { from->lease_ns, from->few_times }, .claim_ns = from->claim_ns };
	q.amount = from->cost;
	q.lease = &leased;
	return lease_take(l, &q, out, r);
}

EXPORT int shmlimit_lease_take(struct shmlimit *l, int rule, const void *key, size_t key_len,
                               const struct shmlimit_lease_request *request, struct shmlimit_lease *out,
                               struct shmlimit_result *r)
{
	return take_asked(l, request_make(OP_LEASE, rule, key_bytes(key, key_len), 0, when_clock()), request, out, r);
}

EXPORT int shmlimit_lease_deposit(struct shmlimit *l, int rule, const void *key, size_t key_len, uint64_t tokens,
                                  uint64_t cost, uint64_t since_ns, uint64_t lasts_ns, struct shmlimit_result *r)
{
	struct lease_request leased = { .tokens = tokens, .lease_ns = lasts_ns };
	struct request q = request_make(OP_DEPOSIT, rule, key_bytes(key, key_len), cost,
	                                since_ns == 0 ? when_clock() : when_given(since_ns));

	q.lease = &leased;
	return decide_call(l, &q, r);
}

EXPORT int shmlimit_lease_deny(struct shmlimit *l, int rule, const void *key, size_t key_len, uint64_t cost,
                               uint64_t for_ns, struct shmlimit_result *r)
{
	struct lease_request leased = { .lease_ns = for_ns };
	struct request q = request_make(OP_DENY, rule, key_bytes(key, key_len), cost, when_clock());

	q.lease = &leased;
	return decide_call(l, &q, r);
}

EXPORT int shmlimit_lease_abandon(struct shmlimit *l, int rule, const void *key, size_t key_len)
{
	static const struct lease_request leased = { 0 };
	struct request q = request_make(OP_ABANDON, rule, key_bytes(key, key_len), 0, when_clock());

	q.lease = &leased;
	return decide_call(l, &q, NULL);
}

EXPORT int shmlimit_lease_count(struct shmlimit *l, uint32_t which, uint64_t n)
{
	if (l == NULL || which > SHMLIMIT_LEASE_BREAKER_OPENINGS)
		return -EINVAL;
	if (l->read_only)
		return -EROFS;
	counter_add_lease(l, LEASE_BACKEND_ERRORS + which, n, when_read(l).ns);
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
