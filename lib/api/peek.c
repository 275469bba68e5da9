/*
 * peek: what a take would answer.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "export.h"
#include "fast.h"

EXPORT int shmlimit_peek(struct shmlimit *l, int rule, const void *key, size_t key_len, uint64_t cost,
                         struct shmlimit_result *r)
{
	return fast(l, OP_PEEK, rule, key, key_len, cost, r);
}

EXPORT int shmlimit_peek_at(struct shmlimit *l, int rule, const void *key, size_t key_len, uint64_t cost,
                            uint64_t now_ns, struct shmlimit_result *r)
{
	return fast_call(l, OP_PEEK, rule, key, key_len, cost, 0, when_given(now_ns), r);
}
