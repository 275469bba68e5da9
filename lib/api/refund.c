/*
 * refund: give tokens back.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "export.h"
#include "fast.h"

EXPORT int shmlimit_refund(struct shmlimit *l, int rule, const void *key, size_t key_len, uint64_t tokens,
                           struct shmlimit_result *r)
{
	return fast_call(l, OP_REFUND, rule, key, key_len, tokens, 0, when_clock(), r);
}

EXPORT int shmlimit_refund_at(struct shmlimit *l, int rule, const void *key, size_t key_len, uint64_t tokens,
                              uint64_t now_ns, struct shmlimit_result *r)
{
	return fast_call(l, OP_REFUND, rule, key, key_len, tokens, 0, when_given(now_ns), r);
}
