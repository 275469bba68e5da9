/*
 * fast: operations on a funnel at the first try, in five steps: hash, clock, find,
 * decide, commit. Only a key that has its slot, under a rule in force, goes all the way;
 * whatever else is found leaves for decide() or decide_slowly().
 *
 * The inline functions are compiled five times: for a take without and with a result
 * (without, all stays in registers, which is 1.5 ns less), for a peek, in fast.c for a
 * take whose time or hash is known, and there once more for every other operation.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_FAST_H
#define SHMLIMIT_LIB_FAST_H

#include "decide.h"
#include "funnel_row.h"

#define FAST __attribute__((always_inline)) static inline

/* Steps 3 to 5, from the hash of the key under the rule on. */
FAST int fast_hashed(const struct shmlimit *l, enum operation op, uint32_t rule, uint64_t hash,
                     const struct request_key *key, uint64_t amount, uint64_t max_wait_ns, struct when when,
                     struct undo *undo, struct shmlimit_result *r)
{
	/* While keys move from the old table to the new one, a refund is not decided at the first try: see carry.h. */
	const struct table *t = generation_glance(l, op != OP_REFUND, when.ns);
	int with_times = r != NULL || !(op == OP_TAKE || op == OP_PEEK);
	uint32_t failed = 0;
	const struct layout_rule *record;
	struct layout_slot *slot;
	struct rule_view view;
	struct slot_seen seen;
	struct funnel_time at;
	struct funnel funnel;
	struct verdict v;
	uint64_t tag;

	/* Find: the rule in force, and the slot whose tag is the key's under it. */
	record = t == NULL ? NULL : rule_glance_in_force(l, rule, &view, with_times);
	if (__builtin_expect(record == NULL, 0))
		goto slowly;
	if (__builtin_expect(params_algorithm(&view.params) != SHMLIMIT_FUNNEL, 0))
		return decide(l, t,
		              &(struct request){ .op = op,
		                                 .rule = rule,
		                                 .hash = hash,
		                                 .key = *key,
		                                 .amount = amount,
		                                 .when = when,
		                                 .max_wait_ns = max_wait_ns,
		                                 .undo = undo },
		              r);
	tag = tag_pack(hash, rule, rule_version(&view));
	slot = table_find(t, table_window(t, hash), tag);
	if (__builtin_expect(slot == NULL, 0))
		goto slowly;
	seen = slot_read(slot);

	/*
	 * Decide: what was read is the key's, and of the rule in force; it has refilled up to now.
	 * ORDER rule_holds() after slot_read(), as publish() of the rule's writer before its walk over the table.
	 */
	at = funnel_time(&view.params, when.ns);
	if (__builtin_expect(seen.tag != tag || !rule_record_holds(record, &view) ||
	                             !funnel_is_past(&view.params, seen.word, at),
	                     0))
		goto slowly;
	funnel = funnel_leak(&view.params, seen.word, at);
	funnel_apply(&view.params, op, amount, max_wait_ns, at, &funnel, &v);

	/*
	 * Commit: by one swap from what was read, which is the linearization point (I1, I4). What writes nothing (I5) looks
	 * at the slot again. ORDER both pair with slot_cas() of the other processes.
	 */
	if (v.changed)
		failed = !slot_cas(slot, seen, tag, funnel_pack(&view.params, funnel));
	if (__builtin_expect(v.changed ? failed : !slot_unchanged(slot, seen), 0))
		goto slowly;
	decide_note(undo, &v, slot, seen, 0, (struct slot_seen){ tag, funnel_pack(&view.params, funnel) });
	decide_show(rule, op, hash, amount, v.answer);
	if (r != NULL)
		funnel_report(&view.params, op, amount, at, funnel, &v, r);
	return decide_count(l, rule, rule_mode(&view), op, v.answer, at.ticks);

slowly:
	return decide_slowly(l,
	                     &(struct request){ .op = op,
	                                        .rule = rule,
	                                        .hash = hash,
	                                        .key = *key,
	                                        .amount = amount,
	                                        .when = when,
	                                        .max_wait_ns = max_wait_ns,
	                                        .undo = undo },
	                     failed, r);
}

/* A take or a peek by the limiter's clock. */
FAST int fast(const struct shmlimit *l, enum operation op, int rule, const void *key, size_t key_len, uint64_t cost,
              struct shmlimit_result *r)
{
	int error = decide_check(l, key, key_len, op);
	struct request_key slow;
	struct when when;
	uint64_t hash;

	if (__builtin_expect(error != 0, 0))
		return error;

	/* To where the slow path finds it: kept in registers, it would cost the fast one up to 2 ns. */
	slow = (struct request_key){ key, key_len };
	__asm__("" : "+m"(slow));
	/* Hash: of the key, under the segment's secret and the rule. */
	hash = hash_bytes(l->secret, (uint32_t)rule, key, key_len);
	/* Clock. WHY NOT first: on AMD's Zen 3 an allowed take is 3 ns of 49 slower then; Intel sees no difference. */
	when = when_read(l);
	return fast_hashed(l, op, (uint32_t)rule, hash, &slow, cost, 0, when, NULL, r);
}

/* A take whose hash and time are known. */
int fast_take(const struct shmlimit *l, uint32_t rule, uint64_t hash, const struct request_key *key, uint64_t cost,
              struct when when, struct undo *undo, struct shmlimit_result *r);

/* Any operation that all algorithms have, whose hash and time are known. */
int fast_any(const struct shmlimit *l, enum operation op, uint32_t rule, uint64_t hash, const struct request_key *key,
             uint64_t amount, uint64_t max_wait_ns, struct when when, struct shmlimit_result *r);

/* The same from the arguments of a public function on. when_clock(): the clock is read after the key is hashed. */
static inline int fast_call(const struct shmlimit *l, enum operation op, int rule, const void *key, size_t key_len,
                            uint64_t amount, uint64_t max_wait_ns, struct when when, struct shmlimit_result *r)
{
	int error = decide_check(l, key, key_len, op);
	struct request_key whole = { key, key_len };
	uint64_t hash;

	if (__builtin_expect(error != 0, 0))
		return error;
	hash = hash_bytes(l->secret, (uint32_t)rule, key, key_len);
	if (!when.given && when.ns == 0)
		when = when_read(l);
	if (op == OP_TAKE)
		return fast_take(l, (uint32_t)rule, hash, &whole, amount, when, NULL, r);
	return fast_any(l, op, (uint32_t)rule, hash, &whole, amount, max_wait_ns, when, r);
}

#endif
