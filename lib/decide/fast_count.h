/*
 * fast_count: an addition to a count at the first try. The slot is the key's, under a
 * rule in force; a count that has ended is one that begins. In everything else the
 * general path decides.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_FAST_COUNT_H
#define SHMLIMIT_LIB_FAST_COUNT_H

#include "count_row.h"
#include "decide.h"

#define FAST_COUNT_NOT (-1)

/* The answer, as decide() gives it, with *asked->out filled; or FAST_COUNT_NOT: nothing was changed. */
static inline int fast_count(const struct shmlimit *l, enum operation op, uint32_t rule, uint64_t hash,
                             const struct count_request *asked, struct when when)
{
	const struct table *t = generation_glance(l, 1);
	const struct layout_params *in_force;
	struct verdict v = { .answer = SHMLIMIT_ALLOWED };
	struct rule_view view;
	struct layout_slot *slot;
	struct slot_seen seen;
	struct count count;
	uint64_t tag;

	if (__builtin_expect(t == NULL || rule >= l->rule_count, 0))
		return FAST_COUNT_NOT;
	/* Of the rule's parameters only these are needed: the others are not read. */
	view.published = load_acquire(&l->rules[rule].published);
	in_force = rule_params(&l->rules[rule], rule_version(&view));
	view.params.shape = load_word(&in_force->shape);
	view.params.capacity = load_word(&in_force->capacity);
	view.params.ahead = load_word(&in_force->ahead);
	view.params.back = load_word(&in_force->back);
	view.params.debt = load_word(&in_force->debt);
	if (__builtin_expect(!published_in_use(view.published) || rule_mode(&view) == SHMLIMIT_OFF ||
	                     params_algorithm(&view.params) != SHMLIMIT_COUNTER || asked->ttl_ns > view.params.debt, 0))
		return FAST_COUNT_NOT;

	tag = tag_pack(hash, rule, rule_version(&view));
	slot = table_find(t, table_window(t, hash), tag);
	if (__builtin_expect(slot == NULL, 0))
		return FAST_COUNT_NOT;
	seen = slot_read(slot);
	/* ORDER rule_holds() after slot_read(), as publish() of the rule's writer before its walk over the table. */
	if (__builtin_expect(seen.tag != tag || !rule_holds(l, rule, &view), 0))
		return FAST_COUNT_NOT;

	count = count_read(&view.params, seen.word, when.ns);
	count_row_add(&view.params, asked, when.ns, &count, &v);
	/* The linearization point (I1, I4). ORDER both pair with slot_cas() of the other processes. */
	if (__builtin_expect(v.changed ? !slot_cas(slot, seen, tag, count_pack(&view.params, count)) :
	                                 !slot_unchanged(slot, seen), 0))
		return FAST_COUNT_NOT;
	decide_show(rule, op, hash, (uint64_t)asked->n, v.answer);
	return decide_count(l, rule, rule_mode(&view), op, v.answer, when.ns);
}

#endif
