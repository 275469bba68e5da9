/*
 * decide: an operation on a key, from its request to its answer: the general path,
 * which every operation on every algorithm can take. What is asked most, a take from
 * a funnel, has a shorter one in fast.h.
 *
 * Who calls whom:
 *
 *	shmlimit_take(), _peek()              fast()
 *	what has a hash, a time, another verb fast_call(), fast_take(), fast_any()
 *	  all of these                        fast_hashed(), which leaves for decide_take(), decide() or decide_slowly()
 *	calls of one algorithm                fast_gcra() and its like, then first_rest() or decide_rest();
 *	                                      or, without a first try of their own, decide_call()
 *	decide_rest(), decide_call()          decide(), which tries once and leaves for decide_slowly()
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_DECIDE_H
#define SHMLIMIT_LIB_DECIDE_H

#include "algorithm.h"
#include "counter.h"
#include "pause.h"
#include "probe.h"
#include "request.h"
#include "table.h"

/*
 * Of a first try: the general path is to decide. Nothing was changed unless the function says so.
 */
#define FIRST_NOT (-1)

/* Checks the arguments of a public function: 0, -EINVAL, -EMSGSIZE or -EROFS. */
FAST int decide_check(const struct shmlimit *l, const struct request *q)
{
	if (__builtin_expect(l == NULL || q->key.bytes == NULL, 0))
		return -EINVAL;
	if (__builtin_expect(q->key.len - 1 >= SHMLIMIT_KEY_MAX, 0))
		return -EMSGSIZE;
	return __builtin_expect(!operation_only_looks(q->op) && l->read_only, 0) ? -EROFS : 0;
}

/* The hash of the key, under the segment's secret and the rule. */
static inline uint64_t decide_hash(const struct shmlimit *l, const struct request *q)
{
	return hash_bytes(l->secret, q->rule, q->key.bytes, q->key.len);
}

/*
 * The time of the call, where it has none yet the clock's. To be read after the key was hashed: see
 * fast().
 */
FAST struct when decide_when(const struct shmlimit *l, const struct request *q)
{
	return q->when.given || q->when.ns != 0 ? q->when : when_read(l);
}

/* The request with both, its arguments being checked. */
FAST struct request decide_complete(const struct shmlimit *l, const struct request *q)
{
	uint64_t hash = decide_hash(l, q);
	struct when when = decide_when(l, q);

	return request_complete(q, hash, when);
}

/*
 * An operation on a rule of any algorithm: at the first try if it can be, else slowly. `t` is
 * generation_glance()'s.
 */
int decide(const struct shmlimit *l, const struct table *t, const struct request *q, struct shmlimit_result *r);

/*
 * A take by the rule of this record, which is no funnel's: at the first try of its algorithm, if it
 * has one.
 */
int decide_take(const struct shmlimit *l, const struct table *t, const struct layout_rule *record,
                const struct request *q, struct shmlimit_result *r);

/* An operation that only leases, counts or places have, from the public function's arguments on. */
int decide_call(const struct shmlimit *l, const struct request *asked, struct shmlimit_result *r);

/* Decide from the start, as often as it takes. `failed` compare-and-swaps were lost before. */
int decide_slowly(const struct shmlimit *l, const struct request *q, uint32_t failed, struct shmlimit_result *r);

/* How long a pause lasts still; 0: there is none, or the rule of pauses is off. */
uint64_t decide_paused(const struct shmlimit *l, const struct pause_key *key, struct when when);

/*
 * What a first try of its own (first.h) left: decide, slowly where it has lost `failed`
 * compare-and-swaps.
 */
int decide_rest(const struct shmlimit *l, const struct request *q, uint32_t failed, struct shmlimit_result *r);

/*
 * TAKE_SOME is a take of as many tokens as fit or, if none does, of one, which is denied. So one
 * swap decides how many. A dry run grants what was asked for.
 */
static inline void decide_some(const struct look *k, const struct request *q, uint32_t mode, struct balance *b,
                               struct verdict *v, struct shmlimit_result *r)
{
	const struct algorithm *a = algorithm_of(k->params);
	struct request take = request_as(q, OP_TAKE);
	uint64_t fit = a->fit(k, q, b);
	int doubtful = b->doubtful;

	if (take.amount > fit)
		take.amount = fit | (fit == 0);
	a->apply(k, &take, b, v, r);
	/* By a later reading of the clock more may fit: as where a take is denied. */
	if (take.amount < q->amount)
		b->doubtful |= doubtful;
	if (r != NULL)
		r->granted = mode == SHMLIMIT_DRY_RUN ? q->amount : v->answer == SHMLIMIT_ALLOWED ? take.amount : 0;
}

/*
 * What was swapped, where the caller wants to know and tokens were taken. `was_empty`:
 * before, the slot was equivalent to an empty one, and is to be freed.
 */
static inline void decide_note(struct undo *undo, const struct verdict *v, struct layout_slot *slot,
                               struct slot_seen before, int was_empty, struct slot_seen after)
{
	if (undo != NULL && v->changed && v->answer == SHMLIMIT_ALLOWED)
		*undo = (struct undo){ slot, was_empty ? (struct slot_seen){ 0, 0 } : before, after, undo->place,
			               undo->at_ns };
}

/*
 * Let a tracer see a decision. To be called while what it takes is in registers still: before it is
 * reported.
 */
FAST void decide_show(const struct request *q, int answer)
{
	if (!operation_is_counted(q->op))
		return;
	if (answer == SHMLIMIT_ALLOWED)
		PROBE(allow, q->rule, q->hash, q->amount);
	else if (answer == SHMLIMIT_DENIED)
		PROBE(deny, q->rule, q->hash, q->amount);
}

/*
 * Count a decision that was made under a rule of this mode. Returns the answer: of a dry run always
 * "allowed".
 */
FAST int decide_count(const struct shmlimit *l, const struct request *q, uint32_t mode, int answer, uint64_t entropy)
{
	int counts = operation_is_counted(q->op);

	if (answer == SHMLIMIT_ALLOWED) {
		if (counts)
			counter_add(l, q->rule, COUNT_ALLOWED, entropy);
		return SHMLIMIT_ALLOWED;
	}
	if (__builtin_expect(mode == SHMLIMIT_DRY_RUN, 0)) {
		if (counts)
			counter_add(l, q->rule, COUNT_SHADOW_DENIED, entropy);
		return SHMLIMIT_ALLOWED;
	}
	if (counts)
		counter_add(l, q->rule, COUNT_DENIED, entropy);
	return answer;
}

#endif
