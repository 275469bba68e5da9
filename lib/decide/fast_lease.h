/*
 * fast_lease: a take of leased tokens from the word alone. The slot is the key's, the
 * lease lasts, and it holds enough: then the tokens are subtracted from the word. In
 * everything else the general path decides.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_FAST_LEASE_H
#define SHMLIMIT_LIB_FAST_LEASE_H

#include "decide.h"

#define FAST_LEASE_NOT (-1)

/* The answer, as decide() gives it, or FAST_LEASE_NOT: nothing was changed. */
static inline int fast_lease(const struct shmlimit *l, uint32_t rule, uint64_t hash, uint64_t cost, struct when when,
                             struct shmlimit_result *r)
{
	const struct table *t = generation_glance(l, 1);
	const struct layout_params *in_force;
	struct rule_view view;
	struct layout_slot *slot;
	struct slot_seen seen;
	struct lease lease;
	uint64_t tag;

	if (__builtin_expect(t == NULL || cost == 0 || rule >= l->rule_count, 0))
		return FAST_LEASE_NOT;
	/* Of the rule's parameters only two are needed: the others are not read. */
	view.published = load_acquire(&l->rules[rule].published);
	in_force = rule_params(&l->rules[rule], rule_version(&view));
	view.params.capacity = load_word(&in_force->capacity);
	view.params.shape = load_word(&in_force->shape);
	if (__builtin_expect(!published_in_use(view.published) || rule_mode(&view) == SHMLIMIT_OFF ||
	                     params_algorithm(&view.params) != SHMLIMIT_LEASE, 0))
		return FAST_LEASE_NOT;

	tag = tag_pack(hash, rule, rule_version(&view));
	slot = table_find(t, table_window(t, hash), tag);
	if (__builtin_expect(slot == NULL, 0))
		return FAST_LEASE_NOT;
	seen = slot_read(slot);
	if (__builtin_expect(seen.tag != tag || !rule_holds(l, rule, &view), 0))
		return FAST_LEASE_NOT;

	lease = lease_read(&view.params, seen.word, when.ns);
	if (__builtin_expect(cost > lease_held(&lease) || lease.quota != lease_quota(&view.params, seen.word), 0))
		return FAST_LEASE_NOT;
	/* The linearization point (I1, I4). ORDER pairs with slot_cas() of the other processes. */
	if (__builtin_expect(!slot_cas(slot, seen, tag, seen.word - cost), 0))
		return FAST_LEASE_NOT;
	lease.quota -= cost;

	decide_show(rule, OP_LEASE, hash, cost, SHMLIMIT_ALLOWED);
	if (r != NULL) {
		r->limit = view.params.capacity;
		r->remaining = lease.quota;
		r->wait_ns = 0;
		r->retry_after_ns = 0;
		r->reset_after_ns = lease_wait(&lease);
	}
	counter_add_lease(l, LEASE_SPENT, cost, when.ns);
	return decide_count(l, rule, rule_mode(&view), OP_LEASE, SHMLIMIT_ALLOWED, when.ns);
}

#endif
