/*
 * take: decide on one key, now or in advance; give tokens back, or take them afterwards.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "clock.h"
#include "export.h"
#include "fast.h"
#include "limiter.h"
#include "segment.h"
#include "shmlimit_at.h"

EXPORT int shmlimit_take(struct shmlimit *l, int rule, const void *key, size_t key_len, uint64_t cost,
                         struct shmlimit_result *r)
{
	struct key_bytes whole = { key, key_len };

	if (cost == 0)
		return shmlimit_peek(l, rule, key, key_len, cost, r);
	/* Twice: without a result all stays in registers, which is 1.5 ns less. */
	if (r == NULL)
		return fast(l, OP_TAKE, rule, whole, cost, NULL);
	return fast(l, OP_TAKE, rule, whole, cost, r);
}

EXPORT int shmlimit_take_at(struct shmlimit *l, int rule, const void *key, size_t key_len, uint64_t cost,
                            struct shmlimit_result *r, uint64_t now_ns)
{
	struct request q =
		request_make(cost == 0 ? OP_PEEK : OP_TAKE, rule, key_bytes(key, key_len), cost, when_given(now_ns));

	return fast_call(l, &q, r);
}

EXPORT int shmlimit_peek(struct shmlimit *l, int rule, const void *key, size_t key_len, uint64_t cost,
                         struct shmlimit_result *r)
{
	return fast(l, OP_PEEK, rule, key_bytes(key, key_len), cost, r);
}

EXPORT int shmlimit_peek_at(struct shmlimit *l, int rule, const void *key, size_t key_len, uint64_t cost,
                            struct shmlimit_result *r, uint64_t now_ns)
{
	struct request q = request_make(OP_PEEK, rule, key_bytes(key, key_len), cost, when_given(now_ns));

	return fast_call(l, &q, r);
}

EXPORT int shmlimit_reserve(struct shmlimit *l, int rule, const void *key, size_t key_len, uint64_t cost,
                            uint64_t max_wait_ns, struct shmlimit_result *r)
{
	struct request q = request_make(OP_RESERVE, rule, key_bytes(key, key_len), cost, when_clock());

	q.max_wait_ns = max_wait_ns;
	return fast_call(l, &q, r);
}

EXPORT int shmlimit_reserve_at(struct shmlimit *l, int rule, const void *key, size_t key_len, uint64_t cost,
                               uint64_t max_wait_ns, struct shmlimit_result *r, uint64_t now_ns)
{
	struct request q = request_make(OP_RESERVE, rule, key_bytes(key, key_len), cost, when_given(now_ns));

	q.max_wait_ns = max_wait_ns;
	return fast_call(l, &q, r);
}

EXPORT int shmlimit_charge(struct shmlimit *l, int rule, const void *key, size_t key_len, uint64_t tokens,
                           struct shmlimit_result *r)
{
	struct request q = request_make(OP_CHARGE, rule, key_bytes(key, key_len), tokens, when_clock());

	return fast_call(l, &q, r);
}

EXPORT int shmlimit_charge_at(struct shmlimit *l, int rule, const void *key, size_t key_len, uint64_t tokens,
                              struct shmlimit_result *r, uint64_t now_ns)
{
	struct request q = request_make(OP_CHARGE, rule, key_bytes(key, key_len), tokens, when_given(now_ns));

	return fast_call(l, &q, r);
}

EXPORT int shmlimit_refund(struct shmlimit *l, int rule, const void *key, size_t key_len, uint64_t tokens,
                           struct shmlimit_result *r)
{
	struct request q = request_make(OP_REFUND, rule, key_bytes(key, key_len), tokens, when_clock());

	return fast_call(l, &q, r);
}

EXPORT int shmlimit_refund_at(struct shmlimit *l, int rule, const void *key, size_t key_len, uint64_t tokens,
                              struct shmlimit_result *r, uint64_t now_ns)
{
	struct request q = request_make(OP_REFUND, rule, key_bytes(key, key_len), tokens, when_given(now_ns));

	return fast_call(l, &q, r);
}
