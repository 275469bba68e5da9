/*
 * fast_lease: a take of leased tokens from the word alone. The slot is the key's, the
 * lease lasts, and it holds enough: then the tokens are subtracted from the word. Or the
 * backend denied, and that still holds. In everything else the general path decides.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_FAST_LEASE_H
#define SHMLIMIT_LIB_FAST_LEASE_H

#include "first.h"

/* Kept off the fast path. WHY NOT pass the structures: they would have to be in memory. */
__attribute__((noinline, cold)) static uint64_t fast_lease_ahead(uint64_t capacity, uint64_t shape, uint64_t word,
                                                                 uint64_t cost, uint64_t now_ns,
                                                                 const struct lease_pace *pace)
{
	struct layout_params params;
	struct lease lease;

	params.capacity = capacity;
	params.shape = shape;
	lease = lease_read(&params, word, now_ns);
	return lease_ahead(&params, &lease, cost, now_ns, pace);
}

/*
 * The backend denied as many tokens, or fewer, until a time that is still to come. Returns its
 * answer, or FIRST_NOT.
 */
FAST int fast_lease_denied(const struct shmlimit *l, const struct request *q, const struct first *f,
                           const struct lease *lease, struct shmlimit_result *r)
{
	if (lease->state != LEASE_DENIED || lease->left_ns == 0 || q->amount < lease->quota ||
	    q->amount > f->view.params.capacity || !slot_unchanged(f->slot, f->seen))
		return FIRST_NOT;
	decide_show(q, SHMLIMIT_DENIED);
	if (r != NULL) {
		r->limit = f->view.params.capacity;
		r->remaining = 0;
		r->wait_ns = 0;
		r->retry_after_ns = lease->left_ns;
		r->reset_after_ns = lease->left_ns;
	}
	counter_add_lease(l, LEASE_KNOWN_DENIALS, 1, q->when.ns);
	return decide_count(l, q, rule_mode(&f->view), SHMLIMIT_DENIED, q->when.ns);
}

/*
 * The answer, as decide() gives it to a take or a lease_take, or FIRST_NOT, from the slot that
 * first_find() or first_slot() found. *failed: it lost its swap. *want, where it is not NULL, is
 * set if the lease runs low.
 */
FAST int fast_lease(const struct shmlimit *l, const struct first *f, const struct request *q, uint64_t *want,
                    uint32_t *failed, struct shmlimit_result *r)
{
	uint64_t cost = q->amount;
	struct verdict v = { .answer = SHMLIMIT_ALLOWED, .changed = 1 };
	struct lease lease;

	if (__builtin_expect(cost == 0, 0))
		return FIRST_NOT;
	lease = lease_read(&f->view.params, f->seen.word, q->when.ns);
	if (__builtin_expect(cost > lease_held(&lease) || lease.quota != lease_quota(&f->view.params, f->seen.word), 0))
		return fast_lease_denied(l, q, f, &lease, r);
	/* The linearization point (I1, I4). ORDER pairs with slot_cas() elsewhere. */
	*failed = !slot_cas(f->slot, f->seen, f->seen.tag, f->seen.word - cost);
	if (__builtin_expect(*failed, 0))
		return FIRST_NOT;
	decide_note(q->undo, &v, f->slot, f->seen, 0, (struct slot_seen){ f->seen.tag, f->seen.word - cost });
	lease.quota -= cost;
	if (want != NULL && __builtin_expect(lease_may_run_low(lease.quota, cost), 0))
		*want = fast_lease_ahead(f->view.params.capacity, f->view.params.shape, f->seen.word - cost, cost,
		                         q->when.ns, &q->lease->pace);

	decide_show(q, SHMLIMIT_ALLOWED);
	if (r != NULL) {
		r->limit = f->view.params.capacity;
		r->remaining = lease.quota;
		r->wait_ns = 0;
		r->retry_after_ns = 0;
		r->reset_after_ns = lease_wait(&lease);
	}
	counter_add_lease(l, LEASE_SPENT, cost, q->when.ns);
	return decide_count(l, q, rule_mode(&f->view), SHMLIMIT_ALLOWED, q->when.ns);
}

#endif
