/*
 * reserve: take tokens now or in advance.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "export.h"
#include "fast.h"

EXPORT int shmlimit_reserve(struct shmlimit *l, int rule, const void *key, size_t key_len, uint64_t cost,
                            uint64_t max_wait_ns, struct shmlimit_result *r)
{
	return fast_call(l, OP_RESERVE, rule, key, key_len, cost, max_wait_ns, when_clock(), r);
}

EXPORT int shmlimit_reserve_at(struct shmlimit *l, int rule, const void *key, size_t key_len, uint64_t cost,
                               uint64_t max_wait_ns, uint64_t now_ns, struct shmlimit_result *r)
{
	return fast_call(l, OP_RESERVE, rule, key, key_len, cost, max_wait_ns, when_given(now_ns), r);
}
