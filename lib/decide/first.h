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
	const struct layout_rule *record;
	struct rule_view view; /* only some parameters: see first_slot() */
	struct layout_slot *slot;
	struct slot_seen seen;
};

/* decide_rest() of a copy, so that *q can be in registers. */
FAST int first_rest(const struct shmlimit *l, const struct request *q, uint32_t failed, struct shmlimit_result *r)
{
	struct request copy = request_copy(q);

	return decide_rest(l, &copy, failed, r);
}

/*
 * The version of f->record: its parameters' capacity and shape. first_slot() asks if it is in
 * force.
 */
FAST void first_version(struct first *f)
{
	const struct layout_params *params;

	f->view.published = load_acquire(&f->record->published);
	params = rule_params(f->record, rule_version(&f->view));
	f->view.params.capacity = load_word(&params->capacity);
	f->view.params.shape = load_word(&params->shape);
}

/*
 * The committed slot of a key in f->t under the version that first_version() found, which is in
 * force, not off, and of this algorithm. Fills of the parameters what the algorithm needs; back and
 * ahead only with_times. Returns false for whatever else there is.
 */
FAST int first_slot(const struct request *q, unsigned algorithm, int with_times, struct first *f)
{
	const struct layout_params *in_force = rule_params(f->record, rule_version(&f->view));
	uint64_t hash = q->hash, tag;

	if (with_times) {
		f->view.params.back = load_word(&in_force->back);
		f->view.params.ahead = load_word(&in_force->ahead);
	}
	if (algorithm == SHMLIMIT_COUNTER)
		f->view.params.debt = load_word(&in_force->debt);
	if (algorithm == SHMLIMIT_WINDOW)
		f->view.params.flags = load_word(&in_force->flags);
	if (__builtin_expect(!published_in_force(f->view.published) || params_algorithm(&f->view.params) != algorithm,
	                     0))
		return 0;
	tag = tag_pack(hash, q->rule, rule_version(&f->view));
	f->slot = table_find(f->t, hash, tag);
	if (__builtin_expect(f->slot == NULL, 0))
		return 0;
	f->seen = slot_read(f->slot);
	/*
	 * ORDER rule_record_holds() after slot_read(); publish() of a rule's writer is before its
	 * walk.
	 */
	return __builtin_expect(f->seen.tag == tag && rule_record_holds(f->record, &f->view), 1);
}

/* All of it. Returns false where a sweep is due, too. */
FAST int first_find(const struct shmlimit *l, const struct request *q, unsigned algorithm, int with_times,
                    struct first *f)
{
	f->t = generation_glance(l, 1, q->when.ns);
	if (__builtin_expect(f->t == NULL || q->rule >= load_relaxed(&l->rule_count), 0))
		return 0;
	f->record = &l->rules[q->rule];
	first_version(f);
	return first_slot(q, algorithm, with_times, f);
}

#endif
