/*
 * lease_deny: remember that the backend denied a key.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "decide.h"
#include "export.h"

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
