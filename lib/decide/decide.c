/*
 * decide: the first try, whatever the algorithm. See decide.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "decide.h"
#include "fast_lease.h"
#include "fast_window.h"

/*
 * A key that has its slot, of the version in force, and says what it has without
 * doubt. Returns the answer; FIRST_NOT: not at the first try.
 */
FAST int first_try(const struct shmlimit *l, const struct table *t, const struct request *q, uint32_t *failed,
                   struct shmlimit_result *r)
{
	const struct algorithm *a;
	struct slot_seen seen, mine;
	struct layout_slot *slot;
	struct rule_view view;
	struct balance b;
	struct verdict v;
	struct look k;

	if (__builtin_expect(t == NULL || !rule_glance_in_force(l, q->rule, &view, 1), 0))
		return FIRST_NOT;
	a = algorithm_of(&view.params);
	mine.tag = tag_pack(q->hash, q->rule, rule_version(&view));
	slot = table_find(t, table_window(t, q->hash), mine.tag);
	/* It does not fit: there is a larger table by now, and the rule was changed to what fits there. */
	if (__builtin_expect(slot == NULL || !algorithm_has(a, q) || algorithm_lacks_limit(a, &view.params, q) ||
	                             !algorithm_fits(a, &view.params, t),
	                     0))
		return FIRST_NOT;
	seen = slot_read(slot);
	/* ORDER rule_holds() after slot_read(); publish() of a rule's writer is before its walk. */
	if (__builtin_expect(seen.tag != mine.tag || !rule_holds(l, q->rule, &view), 0))
		return FIRST_NOT;
	k = look_make(l, t, slot, &view.params, q->when);
	a->read(&k, seen.word, &b);
	a->apply(&k, q, &b, &v, r);
	if (__builtin_expect(b.doubtful, 0))
		return FIRST_NOT;
	if (v.changed) {
		mine.word = v.word;
		if (a->before_swap != NULL && !a->before_swap(&k, q, seen, &b))
			return FIRST_NOT;
		/* The linearization point (I1, I4). ORDER pairs with slot_cas() elsewhere. */
		*failed = !slot_cas(slot, seen, mine.tag, mine.word);
		if (__builtin_expect(*failed, 0)) {
			if (a->lost != NULL)
				a->lost(&k, q, &b);
			return FIRST_NOT;
		}
		if (a->after_swap != NULL && q->op != OP_REFUND)
			a->after_swap(&k, mine, &b);
		decide_note(q->undo, &v, slot, seen, b.was_empty, mine);
	} else if (__builtin_expect(!slot_unchanged(slot, seen), 0)) {
		return FIRST_NOT;
	}
	decide_show(q, v.answer);
	if (a->count != NULL)
		a->count(&k, &b);
	if (v.answer > SHMLIMIT_DENIED)
		return v.answer;
	return decide_count(l, q, rule_mode(&view), v.answer, k.at.ticks);
}

/* A take where the algorithm has a first try of its own. */
FAST int first_take(const struct shmlimit *l, const struct request *q, uint32_t *failed, struct shmlimit_result *r)
{
	struct request take;

	switch (first_algorithm(l, q->rule)) {
	case SHMLIMIT_WINDOW:
		return fast_window(l, q, failed, r);
	case SHMLIMIT_LEASE:
		take = request_as(q, OP_TAKE);
		return fast_lease(l, &take, NULL, failed, r);
	default:
		return FIRST_NOT;
	}
}

int decide(const struct shmlimit *l, const struct table *t, const struct request *q, struct shmlimit_result *r)
{
	uint32_t failed = 0;
	int answer = FIRST_NOT;

	if (q->op == OP_TAKE)
		answer = first_take(l, q, &failed, r);
	if (answer == FIRST_NOT && failed == 0)
		answer = first_try(l, t, q, &failed, r);
	return answer == FIRST_NOT ? decide_slowly(l, q, failed, r) : answer;
}

int decide_rest(const struct shmlimit *l, const struct request *q, uint32_t failed, struct shmlimit_result *r)
{
	return failed != 0 ? decide_slowly(l, q, failed, r) : decide(l, generation_glance(l, 1, q->when.ns), q, r);
}

int decide_call(const struct shmlimit *l, const struct request *asked, struct shmlimit_result *r)
{
	int error = decide_check(l, asked);
	struct request q;

	if (error != 0)
		return error;
	q = decide_complete(l, asked);
	return decide(l, generation_glance(l, 1, q.when.ns), &q, r);
}
