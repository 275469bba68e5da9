/*
 * lease_deny: remember that the engine denied a key.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "decide.h"
#include "export.h"

EXPORT int shmlimit_lease_deny(struct shmlimit *l, int rule, const void *key, size_t key_len, uint64_t cost,
                               uint64_t for_ns, struct shmlimit_result *r)
{
	struct lease_request leased = { .lease_ns = for_ns };

	return decide_leased(l, rule, key, key_len, cost, VERB_DENY, &leased, TIME_OWN, 0, r);
}

EXPORT int shmlimit_lease_deny_at(struct shmlimit *l, int rule, const void *key, size_t key_len, uint64_t cost,
                                  uint64_t for_ns, uint64_t now_ns, struct shmlimit_result *r)
{
	struct lease_request leased = { .lease_ns = for_ns };

	return decide_leased(l, rule, key, key_len, cost, VERB_DENY, &leased, TIME_GIVEN, now_ns, r);
}
