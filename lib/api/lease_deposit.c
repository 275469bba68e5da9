/*
 * lease_deposit: put the tokens that the backend lent into a key's slot.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "decide.h"
#include "export.h"

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
