/*
 * fast_window: a take from a sliding window at the first try. The slot is the key's, and
 * the newest cell agrees with the word, so that its time is known whatever the clock. In
 * everything else the general path decides.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_FAST_WINDOW_H
#define SHMLIMIT_LIB_FAST_WINDOW_H

#include "first.h"
#include "window_row.h"

/*
 * One for each use: what is passed to a function that is not inlined is in memory, the others in
 * registers.
 */
FAST struct look fast_window_look(const struct shmlimit *l, const struct first *f, struct when when)
{
	return look_ns(l, f->t, f->slot, &f->view.params, when);
}

/* The answer, as decide() gives it, or FIRST_NOT. *failed: it lost its swap. */
static inline int fast_window(const struct shmlimit *l, const struct request *q, uint32_t *failed,
                              struct shmlimit_result *r)
{
	struct verdict v = { .answer = SHMLIMIT_ALLOWED };
	const struct layout_params *params;
	uint64_t newer, cost = q->amount;
	struct slot_seen mine;
	struct window after;
	struct ring ring;
	struct look k;
	/*
	 * What is shown and counted. WHY NOT *q: it is in memory, and the compiler does not know
	 * its operation.
	 */
	struct request take = { .op = OP_TAKE, .rule = q->rule, .hash = q->hash, .amount = cost };
	struct first f;

	if (__builtin_expect(!first_find(l, q, SHMLIMIT_WINDOW, 1, &f), 0))
		return FIRST_NOT;
	params = &f.view.params;
	k = fast_window_look(l, &f, q->when);
	ring = ring_read(&k, f.seen.word);
	if (__builtin_expect(
		    ring.stepped || !ring.complete || cost > params->capacity || params->capacity > f.t->window_max, 0))
		return FIRST_NOT;

	/* It fits if the token that has capacity - cost newer ones has left. */
	newer = params->capacity - cost;
	if (newer < ring.valid)
		v.retry_after_ns = window_wait(params, ring_time(&k, &ring, newer), q->when.ns);
	if (v.retry_after_ns == 0) {
		struct look passed = fast_window_look(l, &f, q->when);

		after = ring_admit(&k, &ring, cost, 0);
		mine = (struct slot_seen){ f.seen.tag, window_pack(params, after) };
		v.changed = 1;
		/* Of one token nothing is missing where the newest cell agrees. */
		if (ring.valid != 0 && ring.w.k > 1)
			ring_complete(&passed, f.seen, &ring.w, 0);
		/* The linearization point (I1, I4). ORDER pairs with slot_cas() elsewhere. */
		*failed = !slot_cas(f.slot, f.seen, mine.tag, mine.word);
		if (__builtin_expect(*failed, 0))
			return FIRST_NOT;
		ring_complete(&passed, mine, &after, 1);
		decide_note(q->undo, &v, f.slot, f.seen, ring.valid == 0, mine);
	} else {
		/*
		 * What is refused is to be recorded; or the slot has changed since its cells were
		 * read.
		 */
		if (__builtin_expect((params_flags(params) & SHMLIMIT_RULE_COUNT_REFUSED) != 0 ||
		                             !slot_unchanged(f.slot, f.seen),
		                     0))
			return FIRST_NOT;
		v.answer = SHMLIMIT_DENIED;
		after = ring.w;
	}
	decide_show(&take, v.answer);
	if (r != NULL) {
		struct window_balance b = { ring, after };
		struct look passed = fast_window_look(l, &f, q->when);

		window_report(&passed, q, &b, v.changed ? cost : 0, &v, r);
	}
	return decide_count(l, &take, rule_mode(&f.view), v.answer, q->when.ns);
}

#endif
