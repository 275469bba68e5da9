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
#include "shmlimit.h"

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

EXPORT int shmlimit_peek(struct shmlimit *l, int rule, const void *key, size_t key_len, uint64_t cost,
                         struct shmlimit_result *r)
{
	return fast(l, OP_PEEK, rule, key_bytes(key, key_len), cost, r);
}

EXPORT int shmlimit_reserve(struct shmlimit *l, int rule, const void *key, size_t key_len, uint64_t cost,
                            uint64_t max_wait_ns, struct shmlimit_result *r)
{
	struct request q = request_make(OP_RESERVE, rule, key_bytes(key, key_len), cost, when_clock());

	q.max_wait_ns = max_wait_ns;
	return fast_call(l, &q, r);
}

EXPORT int shmlimit_charge(struct shmlimit *l, int rule, const void *key, size_t key_len, uint64_t tokens,
                           struct shmlimit_result *r)
{
	struct request q = request_make(OP_CHARGE, rule, key_bytes(key, key_len), tokens, when_clock());

	return fast_call(l, &q, r);
}

EXPORT int shmlimit_refund(struct shmlimit *l, int rule, const void *key, size_t key_len, uint64_t tokens,
                           struct shmlimit_result *r)
{
	struct request q = request_make(OP_REFUND, rule, key_bytes(key, key_len), tokens, when_clock());

	return fast_call(l, &q, r);
}

/*
 * By the limit that the request brings, or by its rule's. `r` is a constant NULL or not: see
 * shmlimit_take().
 */
FAST int decide_one(const struct shmlimit *l, enum operation op, const struct shmlimit_request *asked,
                    struct shmlimit_result *r)
{
	struct request q =
		request_make(op, asked->rule, key_bytes(asked->key, asked->key_len), asked->cost, when_clock());

	q.max_wait_ns = UINT64_MAX;
	if (asked->limit != NULL)
		return fast_limit(l, &q, asked->limit, r);
	if (op == OP_TAKE_SOME)
		return decide_call(l, &q, r);
	return fast_call(l, &q, r);
}

/* Any verb but ACQUIRE. */
static int decide_any(const struct shmlimit *l, uint32_t verb, const struct shmlimit_request *asked,
                      struct shmlimit_result *r)
{
	static const enum operation operation_of[] = {
		[SHMLIMIT_TAKE] = OP_TAKE,     [SHMLIMIT_PEEK] = OP_PEEK,     [SHMLIMIT_RESERVE] = OP_RESERVE,
		[SHMLIMIT_CHARGE] = OP_CHARGE, [SHMLIMIT_REFUND] = OP_REFUND, [SHMLIMIT_TAKE_SOME] = OP_TAKE_SOME
	};

	if (asked == NULL || verb >= sizeof(operation_of) / sizeof(operation_of[0]) || verb == SHMLIMIT_ACQUIRE)
		return -EINVAL;
	if (asked->share != 0)
		return -EINVAL;
	if (verb == SHMLIMIT_TAKE_SOME && r != NULL)
		r->granted = 0;
	if (asked->place != NULL)
		return verb == SHMLIMIT_TAKE   ? places_enter(l, asked, when_clock(), r)
		       : verb == SHMLIMIT_PEEK ? places_peek(l, asked, when_clock(), r)
		                               : -EINVAL;
	if ((verb == SHMLIMIT_TAKE || verb == SHMLIMIT_TAKE_SOME) && asked->cost == 0)
		verb = SHMLIMIT_PEEK;
	return decide_one(l, operation_of[verb], asked, r);
}

/* A call that waits, for most_ns in all, if there are pauses: for them and for tokens. */
struct waiting {
	const struct shmlimit_request *asked;
	uint64_t begun_ns, most_ns; /* begun 0: it has met no pause */
};

static uint64_t may_wait(const struct shmlimit *l, const struct waiting *w)
{
	uint64_t waited_ns = w->begun_ns != 0 ? clock_read(l->clock_id) - w->begun_ns : 0;

	return waited_ns < w->most_ns ? w->most_ns - waited_ns : 0;
}

/* Is the key paused, and for how long? The call has waited for so long before. */
static int is_paused(struct shmlimit *l, struct waiting *w, uint64_t waited_ns, uint64_t *left_ns)
{
	*left_ns = 0;
	if (shmlimit_paused(l, w->asked->rule, w->asked->key, w->asked->key_len, left_ns) != SHMLIMIT_DENIED)
		return 0;
	if (w->begun_ns == 0)
		w->begun_ns = clock_read(l->clock_id) - waited_ns;
	return 1;
}

/*
 * Reserve, and sleep until the tokens are there. WHY NOT one clock read for both, by a reservation
 * at a given time: that doubts a word that is later, and not the time. If it was stopped before, it
 * would refill what had refilled already.
 */
static int acquire_tokens(struct shmlimit *l, const struct waiting *w, struct shmlimit_result *result)
{
	struct request q = request_make(OP_RESERVE, w->asked->rule, key_bytes(w->asked->key, w->asked->key_len),
	                                w->asked->cost, when_clock());
	int answer;

	q.max_wait_ns = may_wait(l, w);
	answer = w->asked->limit != NULL ? fast_limit(l, &q, w->asked->limit, result) : fast_call(l, &q, result);
	if (answer < 0)
		return answer;
	/* INVARIANT I7: no bytes in the segment make the wait longer than the caller allows. */
	if (result->wait_ns > q.max_wait_ns)
		result->wait_ns = q.max_wait_ns;
	if (answer == SHMLIMIT_ALLOWED && result->wait_ns != 0)
		segment_sleep_until(clock_read(l->clock_id) + result->wait_ns);
	return answer;
}

/*
 * A call that wakes while the key is paused reserves again once the pause is over; its turn passed
 * unused. WHY NOT keep the tokens: what was reserved for the time of the pause would all be due at
 * its end. WHY NOT give them back: others wait for later turns, and those would be given twice.
 */
static int acquire(struct shmlimit *l, const struct shmlimit_request *asked, uint64_t max_wait_ns,
                   struct shmlimit_result *r)
{
	struct waiting w = { asked, 0, max_wait_ns };
	struct shmlimit_result result;
	uint64_t left_ns, paused_ns = 0;
	int answer;

	/* It would sleep, and then be at the same time. */
	if (when_is_set(l))
		return -EOPNOTSUPP;
	/* BOUND: each round but the last waits for a pause; all together for max_wait_ns. */
	for (;;) {
		if (!is_paused(l, &w, 0, &left_ns) || left_ns > may_wait(l, &w)) {
			answer = acquire_tokens(l, &w, &result);
			if (answer < 0 || (answer == SHMLIMIT_ALLOWED && result.wait_ns == 0) ||
			    !is_paused(l, &w, result.wait_ns, &left_ns))
				break;
			if (answer == SHMLIMIT_DENIED && left_ns > may_wait(l, &w))
				break;
			/* It does not fit into what is left: to be denied. */
			if (left_ns > may_wait(l, &w))
				continue;
		}
		segment_sleep_until(clock_read(l->clock_id) + left_ns);
		paused_ns = clock_read(l->clock_id) - w.begun_ns;
	}
	if (answer == SHMLIMIT_ALLOWED)
		result.wait_ns += paused_ns;
	if (answer >= 0 && r != NULL)
		*r = result;
	return answer;
}

EXPORT int shmlimit_acquire(struct shmlimit *l, int rule, const void *key, size_t key_len, uint64_t cost,
                            uint64_t max_wait_ns, struct shmlimit_result *r)
{
	const struct shmlimit_request asked = { .rule = rule, .cost = cost, .key = key, .key_len = key_len };

	return l == NULL ? -EINVAL : acquire(l, &asked, max_wait_ns, r);
}

/*
 * By a limit that says how long it may wait; or as shmlimit_acquire() without a bound of the
 * caller.
 */
static int acquire_by_limit(struct shmlimit *l, const struct shmlimit_request *asked, struct shmlimit_result *r)
{
	if (l == NULL || asked == NULL || asked->place != NULL || asked->share != 0)
		return -EINVAL;
	return acquire(l, asked, asked->limit != NULL ? asked->limit->max_wait_ns : UINT64_MAX, r);
}

EXPORT int shmlimit_decide(struct shmlimit *l, uint32_t verb, const struct shmlimit_request *asked,
                           struct shmlimit_result *r)
{
	/* Twice, as shmlimit_take(). */
	if (__builtin_expect(verb == SHMLIMIT_TAKE && asked != NULL && asked->cost != 0 &&
	                             ((uintptr_t)asked->place | asked->share) == 0,
	                     1))
		return r == NULL ? decide_one(l, OP_TAKE, asked, NULL) : decide_one(l, OP_TAKE, asked, r);
	return verb == SHMLIMIT_ACQUIRE ? acquire_by_limit(l, asked, r) : decide_any(l, verb, asked, r);
}
