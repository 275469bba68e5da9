/*
 * fast: operations on a funnel at the first try, in five steps: hash, clock, find,
 * decide, commit. Only a key that has its slot, under a rule in force, goes all the way;
 * whatever else is found leaves for decide() or decide_slowly().
 *
 * The inline functions are compiled five times: for a take without and with a result
 * (without, all stays in registers, which is 1.5 ns less), for a peek, in fast.c for a
 * take whose time or hash is known, and there once more for every other operation.
 * WHY NOT a copy for each call: sixteen took 18 KB more, and a charge or a refund 3 to 4 ns less.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_FAST_H
#define SHMLIMIT_LIB_FAST_H

#include "decide.h"
#include "funnel_row.h"

/*
 * The request in memory, for the general path: `whole` or, where that is NULL, a copy of *q with
 * this key.
 */
FAST const struct request *fast_rare(const struct request *q, const struct request *whole, const struct key_bytes *key,
                                     struct request *copy)
{
	if (whole != NULL)
		return whole;
	*copy = request_copy(q);
	copy->key = *key;
	return copy;
}

/*
 * Steps 3 to 5, from the hash of the key under the rule on. *q is in registers if its address is
 * passed to no function that is not inlined. So the general path gets another request:
 * fast_rare()'s.
 */
FAST int fast_hashed(const struct shmlimit *l, const struct request *q, const struct request *whole,
                     const struct key_bytes *key, struct shmlimit_result *r)
{
	/*
	 * While keys move from the old table to the new one, a refund is not decided at the first
	 * try: see migrate.h.
	 */
	const struct table *t = generation_glance(l, q->op != OP_REFUND, q->when.ns);
	int with_times = r != NULL || !(q->op == OP_TAKE || q->op == OP_PEEK);
	uint32_t failed = 0;
	const struct layout_rule *record;
	struct layout_slot *slot;
	struct rule_view view;
	struct slot_seen seen;
	struct funnel_time at;
	struct funnel funnel;
	struct request copy;
	struct verdict v;
	uint64_t tag;

	/* Find: the rule in force, and the slot whose tag is the key's under it. */
	record = t == NULL ? NULL : rule_glance_in_force(l, q->rule, &view, with_times);
	if (__builtin_expect(record == NULL, 0))
		goto slowly;
	if (__builtin_expect(params_algorithm(&view.params) != SHMLIMIT_FUNNEL, 0))
		return q->op == OP_TAKE ? decide_take(l, t, record, fast_rare(q, whole, key, &copy), r)
		                        : decide(l, t, fast_rare(q, whole, key, &copy), r);
	tag = tag_pack(q->hash, q->rule, rule_version(&view));
	slot = table_find(t, q->hash, tag);
	if (__builtin_expect(slot == NULL, 0))
		goto slowly;
	seen = slot_read(slot);

	/*
	 * Decide: what was read is the key's, and of the rule in force; it has refilled up to now.
	 * ORDER rule_holds() after slot_read(); publish() of a rule's writer is before its walk.
	 */
	at = funnel_time(&view.params, q->when.ns);
	if (__builtin_expect(seen.tag != tag || !rule_record_holds(record, &view) ||
	                             !funnel_is_past(&view.params, seen.word, at),
	                     0))
		goto slowly;
	funnel = funnel_refill(&view.params, seen.word, at);
	funnel_apply(&view.params, q, at, &funnel, &v);

	/*
	 * Commit: by one swap from what was read, which is the linearization point (I1, I4). What
	 * writes nothing (I5) looks at the slot again. ORDER both pair with slot_cas() of the other
	 * processes.
	 */
	if (v.changed)
		failed = !slot_cas(slot, seen, tag, funnel_pack(&view.params, funnel));
	if (__builtin_expect(v.changed ? failed : !slot_unchanged(slot, seen), 0))
		goto slowly;
	decide_note(q->undo, &v, slot, seen, 0, (struct slot_seen){ tag, funnel_pack(&view.params, funnel) });
	decide_show(q, v.answer);
	if (r != NULL)
		funnel_report(&view.params, q, at, funnel, &v, r);
	return decide_count(l, q, rule_mode(&view), v.answer, at.ticks);

slowly:
	return decide_slowly(l, fast_rare(q, whole, key, &copy), failed, r);
}

/* A take or a peek by the limiter's clock, from the arguments of the public function on. */
FAST int fast(const struct shmlimit *l, enum operation op, int rule, struct key_bytes key, uint64_t cost,
              struct shmlimit_result *r)
{
	struct request q = request_make(op, rule, key, cost, when_clock());
	int error = decide_check(l, &q);

	if (__builtin_expect(error != 0, 0))
		return error;

	/* In memory for the slow path: in registers it would cost the fast one up to 2 ns. */
	__asm__("" : "+m"(key));
	/* Hash: of the key, under the segment's secret and the rule. */
	q.hash = decide_hash(l, &q);
	/*
	 * Clock. WHY NOT first: on AMD's Zen 3 an allowed take is 3 ns of 49 slower then; Intel
	 * sees no difference.
	 */
	q.when = when_read(l);
	return fast_hashed(l, &q, NULL, &key, r);
}

/* A take whose hash and time are known. */
int fast_take(const struct shmlimit *l, const struct request *q, struct shmlimit_result *r);

/* Any operation that all algorithms have, whose hash and time are known. */
int fast_any(const struct shmlimit *l, const struct request *q, struct shmlimit_result *r);

/*
 * The same from the arguments of a public function on: the request has no hash yet and, of
 * when_clock(), no time.
 */
FAST int fast_call(const struct shmlimit *l, const struct request *asked, struct shmlimit_result *r)
{
	int error = decide_check(l, asked);
	struct request q;

	if (__builtin_expect(error != 0, 0))
		return error;
	q = decide_complete(l, asked);
	return asked->op == OP_TAKE ? fast_take(l, &q, r) : fast_any(l, &q, r);
}

#endif
