/*
 * first: where a first try of its own begins: the slot of a key, under a rule of one
 * algorithm. fast_lease.h, fast_count.h, fast_hold.h and fast_window.h go on from there.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_FIRST_H
#define SHMLIMIT_LIB_FIRST_H

#include "decide.h"

struct first {
	const struct table *t;
	struct rule_view view; /* first_find() fills only some parameters: see there */
	struct layout_slot *slot;
	struct slot_seen seen;
};

/* decide_rest() of a copy, so that *q can be in registers. */
FAST int first_rest(const struct shmlimit *l, const struct request *q, uint32_t failed, struct shmlimit_result *r)
{
	struct request copy = request_copy(q);

	return decide_rest(l, &copy, failed, r);
}

/* The algorithm of a rule, which may be another by the time that it is decided. */
static inline unsigned first_algorithm(const struct shmlimit *l, uint32_t rule)
{
	const struct layout_rule *record = &l->rules[rule];
	struct layout_params params;

	if (__builtin_expect(rule >= load_relaxed(&l->rule_count), 0))
		return SHMLIMIT_FUNNEL;
	params.shape = load_word(&rule_params(record, published_version(load_acquire(&record->published)))->shape);
	return params_algorithm(&params);
}

/*
 * The committed slot of a key under a rule that is in force, not off, and of this algorithm. Fills
 * capacity and shape of the parameters; with_times: back, ahead, debt and flags too. Returns false
 * for whatever else there is, and where a sweep is due.
 */
FAST int first_find(const struct shmlimit *l, const struct request *q, unsigned algorithm, int with_times,
                    struct first *f)
{
	const struct layout_params *in_force;
	uint64_t hash = q->hash;
	uint32_t rule = q->rule;
	uint64_t tag;

	f->t = generation_glance(l, 1, q->when.ns);
	if (__builtin_expect(f->t == NULL || rule >= load_relaxed(&l->rule_count), 0))
		return 0;
	f->view.published = load_acquire(&l->rules[rule].published);
	in_force = rule_params(&l->rules[rule], rule_version(&f->view));
	f->view.params.capacity = load_word(&in_force->capacity);
	f->view.params.shape = load_word(&in_force->shape);
	if (with_times) {
		f->view.params.back = load_word(&in_force->back);
		f->view.params.ahead = load_word(&in_force->ahead);
		f->view.params.debt = load_word(&in_force->debt);
		f->view.params.flags = load_word(&in_force->flags);
	}
	if (__builtin_expect(!published_in_force(f->view.published) || params_algorithm(&f->view.params) != algorithm,
	                     0))
		return 0;
	tag = tag_pack(hash, rule, rule_version(&f->view));
	f->slot = table_find(f->t, table_window(f->t, hash), tag);
	if (__builtin_expect(f->slot == NULL, 0))
		return 0;
	f->seen = slot_read(f->slot);
	/* ORDER rule_holds() after slot_read(); publish() of a rule's writer is before its walk. */
	return __builtin_expect(f->seen.tag == tag && rule_holds(l, rule, &f->view), 1);
}

#endif
