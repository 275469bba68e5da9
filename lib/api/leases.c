/*
 * leases: take leased tokens, or learn that more have to be asked for.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "export.h"
#include "fast_lease.h"
#include "sized.h"

/* *out is the caller's, perhaps of another release, and is written only when there is something to say. */
__attribute__((noinline, cold)) static int runs_low(struct shmlimit_lease *out, uint64_t want)
{
	struct shmlimit_lease found = { .want = want };

	return sized_out(out, &found, sizeof(found)) != 0 ? -EINVAL : SHMLIMIT_ALLOWED;
}

static int take(const struct shmlimit *l, int rule, const void *key, size_t key_len, uint64_t cost, uint64_t lease_ns,
                uint64_t claim_ns, struct shmlimit_lease *out, struct when when, struct shmlimit_result *r)
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
	return take(l, rule, key, key_len, cost, lease_ns, claim_ns, out, when_clock(), r);
}

EXPORT int shmlimit_lease_take_at(struct shmlimit *l, int rule, const void *key, size_t key_len, uint64_t cost,
                                  uint64_t lease_ns, uint64_t claim_ns, struct shmlimit_lease *out, uint64_t now_ns,
                                  struct shmlimit_result *r)
{
	return take(l, rule, key, key_len, cost, lease_ns, claim_ns, out, when_given(now_ns), r);
}
