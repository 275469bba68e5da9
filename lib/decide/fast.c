/*
 * fast: the copies for calls that have none of their own. See fast.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "fast.h"

int fast_take(const struct shmlimit *l, uint32_t rule, uint64_t hash, const struct request_key *key, uint64_t cost,
              struct when when, struct undo *undo, struct shmlimit_result *r)
{
	return fast_hashed(l, OP_TAKE, rule, hash, key, cost, 0, when, undo, r);
}

int fast_any(const struct shmlimit *l, enum operation op, uint32_t rule, uint64_t hash, const struct request_key *key,
             uint64_t amount, uint64_t max_wait_ns, struct when when, struct shmlimit_result *r)
{
	return fast_hashed(l, op, rule, hash, key, amount, max_wait_ns, when, NULL, r);
}
