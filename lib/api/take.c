/*
 * take: decide on one key, now or in advance, with a wait or without; give tokens back, or take
 * them afterwards.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>

#include "clock.h"
#include "export.h"
#include "fast.h"
#include "fast_limit.h"
#include "limiter.h"
#include "places.h"
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

/*
 * Sleep until the reserved tokens are there. WHY NOT one clock read for both, by
 * shmlimit_reserve_at(): a decision by a given time doubts a word that is later, and not the time.
 * If it was stopped before, it would refill what had refilled already.
 */
static int wait_for_tokens(const struct shmlimit *l, int answer, uint64_t max_wait_ns, struct shmlimit_result *result,
                           struct shmlimit_result *r)
{
	if (answer < 0)
		return answer;
	/* INVARIANT I7: no bytes in the segment make the wait longer than the caller allows. */
	if (result->wait_ns > max_wait_ns)
		result->wait_ns = max_wait_ns;
	if (answer == SHMLIMIT_ALLOWED && result->wait_ns != 0)
		segment_sleep_until(clock_read(l->clock_id) + result->wait_ns);
	if (r != NULL)
		*r = *result;
	return answer;
}

EXPORT int shmlimit_acquire(struct shmlimit *l, int rule, const void *key, size_t key_len, uint64_t cost,
                            uint64_t max_wait_ns, struct shmlimit_result *r)
{
	struct shmlimit_result result;
	int answer = shmlimit_reserve(l, rule, key, key_len, cost, max_wait_ns, &result);

	return wait_for_tokens(l, answer, max_wait_ns, &result, r);
}

/*
 * By the limit that the request brings, or by its rule's. `r` is a constant NULL or not: see
 * shmlimit_take().
 */
FAST int decide_one(const struct shmlimit *l, enum operation op, const struct shmlimit_request *asked,
                    struct shmlimit_result *r, struct when when)
{
	struct request q = request_make(op, asked->rule, key_bytes(asked->key, asked->key_len), asked->cost, when);

	if (asked->limit != NULL)
		return fast_limit(l, &q, asked->limit, r);
	if (op == OP_TAKE_SOME)
		return decide_call(l, &q, r);
	q.max_wait_ns = UINT64_MAX;
	return fast_call(l, &q, r);
}

/* Any verb but ACQUIRE. */
static int decide_any(const struct shmlimit *l, uint32_t verb, const struct shmlimit_request *asked,
                      struct shmlimit_result *r, struct when when)
{
	static const enum operation operation_of[] = {
		[SHMLIMIT_TAKE] = OP_TAKE,     [SHMLIMIT_PEEK] = OP_PEEK,     [SHMLIMIT_RESERVE] = OP_RESERVE,
		[SHMLIMIT_CHARGE] = OP_CHARGE, [SHMLIMIT_REFUND] = OP_REFUND, [SHMLIMIT_TAKE_SOME] = OP_TAKE_SOME
	};

	if (asked == NULL || verb >= sizeof(operation_of) / sizeof(operation_of[0]) || verb == SHMLIMIT_ACQUIRE)
		return -EINVAL;
	if (asked->reserved32 != 0)
		return -E2BIG;
	if (verb == SHMLIMIT_TAKE_SOME && r != NULL)
		r->granted = 0;
	if (asked->place != NULL)
		return verb == SHMLIMIT_TAKE   ? places_enter(l, asked, when, r)
		       : verb == SHMLIMIT_PEEK ? places_peek(l, asked, when, r)
		                               : -EINVAL;
	if ((verb == SHMLIMIT_TAKE || verb == SHMLIMIT_TAKE_SOME) && asked->cost == 0)
		verb = SHMLIMIT_PEEK;
	return decide_one(l, operation_of[verb], asked, r, when);
}

EXPORT int shmlimit_decide(struct shmlimit *l, uint32_t verb, const struct shmlimit_request *asked,
                           struct shmlimit_result *r)
{
	struct shmlimit_result result;
	uint64_t max_wait_ns = UINT64_MAX;

	/* Twice, as shmlimit_take(). */
	if (__builtin_expect(verb == SHMLIMIT_TAKE && asked != NULL && asked->cost != 0 &&
	                             ((uintptr_t)asked->place | asked->reserved32) == 0,
	                     1))
		return r == NULL ? decide_one(l, OP_TAKE, asked, NULL, when_clock())
		                 : decide_one(l, OP_TAKE, asked, r, when_clock());
	if (verb != SHMLIMIT_ACQUIRE)
		return decide_any(l, verb, asked, r, when_clock());
	if (asked != NULL && asked->limit != NULL)
		max_wait_ns = asked->limit->max_wait_ns;
	return wait_for_tokens(l, decide_any(l, SHMLIMIT_RESERVE, asked, &result, when_clock()), max_wait_ns, &result,
	                       r);
}

EXPORT int shmlimit_decide_at(struct shmlimit *l, uint32_t verb, const struct shmlimit_request *asked,
                              struct shmlimit_result *r, uint64_t now_ns)
{
	return decide_any(l, verb, asked, r, when_given(now_ns));
}
