/*
 * lease_take: take leased tokens, or learn that more have to be asked for.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "decide.h"
#include "export.h"
#include "sized.h"

/* *out is the caller's, perhaps of another release, and is written only when there is something to say. */
static int take(const struct shmlimit *l, int rule, const void *key, size_t key_len, uint64_t cost, uint64_t lease_ns,
                uint64_t claim_ns, struct shmlimit_lease *out, struct when when, struct shmlimit_result *r)
{
	struct shmlimit_lease found;
	struct lease_request leased = { 0, lease_ns, claim_ns, &found };
	struct request q = { .op = OP_LEASE, .amount = cost, .when = when, .lease = &leased };
	int answer;

	if (out == NULL || out->struct_size < 2 * sizeof(out->struct_size))
		return -EINVAL;
	answer = decide_call(l, rule, key, key_len, &q, r);
	if (answer > SHMLIMIT_DENIED && sized_out(out, &found, sizeof(found)) != 0)
		return -EINVAL;
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
