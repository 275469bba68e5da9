/*
 * take: take tokens if they are there.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "export.h"
#include "fast.h"

EXPORT int shmlimit_take(struct shmlimit *l, int rule, const void *key, size_t key_len, uint64_t cost,
                         struct shmlimit_result *r)
{
	if (cost == 0)
		return shmlimit_peek(l, rule, key, key_len, cost, r);
	/* Twice: without a result all stays in registers, which is 1.5 ns less. */
	if (r == NULL)
		return fast(l, OP_TAKE, rule, key, key_len, cost, NULL);
	return fast(l, OP_TAKE, rule, key, key_len, cost, r);
}

EXPORT int shmlimit_take_at(struct shmlimit *l, int rule, const void *key, size_t key_len, uint64_t cost,
                            uint64_t now_ns, struct shmlimit_result *r)
{
	return fast_call(l, cost == 0 ? OP_PEEK : OP_TAKE, rule, key, key_len, cost, 0, when_given(now_ns), r);
}
