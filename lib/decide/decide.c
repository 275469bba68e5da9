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
	slot = table_find(t, q->hash, mine.tag);
	if (__builtin_expect(slot == NULL || !algorithm_has(a, q) || algorithm_lacks_limit(a, &view.params, q), 0))
		return FIRST_NOT;
	seen = slot_read(slot);
	/* ORDER rule_holds() after slot_read(); publish() of a rule's writer is before its walk. */
	if (__builtin_expect(seen.tag != mine.tag || !rule_holds(l, q->rule, &view), 0))
		return FIRST_NOT;
	k = look_make(l, t, slot, &view.params, q->when);
	a->read(&k, seen.word, &b);
	if (__builtin_expect(q->op == OP_TAKE_SOME, 0))
		decide_some(&k, q, rule_mode(&view), &b, &v, r);
	else
		a->apply(&k, q, &b, &v, r);
	if (__builtin_expect(b.doubtful, 0))
		return FIRST_NOT;
	if (v.changed) {
		mine.word = v.word;
		if (!algorithm_before_swap(a, &k, q, seen, &b))
			return FIRST_NOT;
		/* The linearization point (I1, I4). ORDER pairs with slot_cas() elsewhere. */
		*failed = !slot_cas(slot, seen, mine.tag, mine.word);
		if (__builtin_expect(*failed, 0)) {
			algorithm_lost(a, &k, q, &b);
			return FIRST_NOT;
		}
		if (q->op != OP_REFUND)
			algorithm_after_swap(a, &k, mine, &b);
		decide_note(q->undo, &v, slot, seen, b.was_empty, mine);
		/* The rule, too, where a place was left: see hold.h. */
	} else if (__builtin_expect(
			   !slot_unchanged(slot, seen) || (q->op == OP_LEAVE && !rule_holds(l, q->rule, &view)), 0)) {
		return FIRST_NOT;
	}
	decide_show(q, v.answer);
	if (a->count != NULL)
		a->count(&k, &b);
	if (v.answer > SHMLIMIT_DENIED)
		return v.answer;
	return decide_count(l, q, rule_mode(&view), v.answer, k.at.ticks);
}

int decide(const struct shmlimit *l, const struct table *t, const struct request *q, struct shmlimit_result *r)
{
	uint32_t failed = 0;
	int answer = first_try(l, t, q, &failed, r);

	return answer == FIRST_NOT ? decide_slowly(l, q, failed, r) : answer;
}

int decide_take(const struct shmlimit *l, const struct table *t, const struct layout_rule *record,
                const struct request *q, struct shmlimit_result *r)
{
	int answer = FIRST_NOT;
	uint32_t failed = 0;
	struct request take;
	struct first f;

	f.t = t;
	f.record = record;
	first_version(&f);
	switch (params_algorithm(&f.view.params)) {
	case SHMLIMIT_WINDOW:
		answer = fast_window(l, &f, q, &failed, r);
		break;
	case SHMLIMIT_LEASE:
		take = request_as(q, OP_TAKE);
		if (first_slot(q, SHMLIMIT_LEASE, 0, &f))
			answer = fast_lease(l, &f, &take, NULL, &failed, r);
		break;
	default:
		break;
	}
	if (answer != FIRST_NOT)
		return answer;
	return failed != 0 ? decide_slowly(l, q, failed, r) : decide(l, t, q, r);
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
