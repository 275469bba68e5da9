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
 * For functions that are not inlined. WHY NOT a pointer to what fast_window() has: all of that
 * would be in memory, and be read again at each use.
 */
struct fast_window_copy {
	struct layout_params params;
	struct look k;
};

FAST void fast_window_copy(const struct shmlimit *l, const struct first *f, struct when when,
                           struct fast_window_copy *out)
{
	const struct layout_params *params = &f->view.params;

	out->params = (struct layout_params){ .capacity = params->capacity,
		                              .back = params->back,
		                              .ahead = params->ahead,
		                              .shape = params->shape,
		                              .flags = params->flags };
	out->k = look_ns(l, f->t, f->slot, &out->params, when);
}

/* The cells of the latest admission, which is *w: of one token mostly. */
FAST void fast_window_complete(const struct shmlimit *l, const struct first *f, struct slot_seen seen, uint64_t *cells,
                               const struct window *w, int exact)
{
	struct fast_window_copy copy;
	struct window copied;

	if (__builtin_expect(w->k == 1, 1)) {
		(void)ring_write(&f->view.params, f->slot, seen,
		                 cells + window_cell(w->n, 0, window_cells(&f->view.params)), w->last_ns, exact);
		return;
	}
	copied = (struct window){ w->n, w->k, w->last_ns };
	/* No time is asked for. */
	fast_window_copy(l, f, when_clock(), &copy);
	ring_complete(&copy.k, seen, &copied, exact);
}

/*
 * The answer, as decide() gives it, or FIRST_NOT, under the version that first_version() found.
 * *failed: it lost its swap.
 */
FAST int fast_window(const struct shmlimit *l, struct first *f, const struct request *q, uint32_t *failed,
                     struct shmlimit_result *r)
{
	struct verdict v = { .answer = SHMLIMIT_ALLOWED };
	const struct layout_params *params;
	uint64_t newer, cost = q->amount, *cells;
	struct slot_seen mine;
	struct window after;
	struct ring ring;
	struct look k;
	/*
	 * What is shown and counted. WHY NOT *q: it is in memory, and the compiler does not know
	 * its operation.
	 */
	struct request take = { .op = OP_TAKE, .rule = q->rule, .hash = q->hash, .amount = cost };

	if (__builtin_expect(!first_slot(q, SHMLIMIT_WINDOW, 1, f), 0))
		return FIRST_NOT;
	params = &f->view.params;
	k = look_ns(l, f->t, f->slot, params, q->when);
	cells = cells_glance(l, f->t, f->slot, params);
	if (__builtin_expect(cells == NULL, 0))
		return FIRST_NOT;
	ring = ring_read_in(&k, f->seen.word, cells);
	if (__builtin_expect(
		    ring.stepped || !ring.complete || cost > params->capacity || 2 * params->capacity > ring.length, 0))
		return FIRST_NOT;

	/* It fits if the token that has capacity - cost newer ones has left. */
	newer = params->capacity - cost;
	if (newer < ring.valid)
		v.retry_after_ns = window_wait(params, ring_time(&k, &ring, newer), q->when.ns);
	if (v.retry_after_ns == 0) {
		after = ring_admit(&k, &ring, cost, 0);
		mine = (struct slot_seen){ f->seen.tag, window_pack(params, after) };
		v.changed = 1;
		/* Of one token nothing is missing where the newest cell agrees. */
		if (ring.valid != 0 && ring.w.k > 1)
			fast_window_complete(l, f, f->seen, cells, &ring.w, 0);
		/* The linearization point (I1, I4). ORDER pairs with slot_cas() elsewhere. */
		*failed = !slot_cas(f->slot, f->seen, mine.tag, mine.word);
		if (__builtin_expect(*failed, 0))
			return FIRST_NOT;
		fast_window_complete(l, f, mine, cells, &after, 1);
		decide_note(q->undo, &v, f->slot, f->seen, ring.valid == 0, mine);
	} else {
		/*
		 * What is refused is to be recorded; or the slot has changed since its cells were
		 * read.
		 */
		if (__builtin_expect((params_flags(params) & SHMLIMIT_RULE_COUNT_REFUSED) != 0 ||
		                             !slot_unchanged(f->slot, f->seen),
		                     0))
			return FIRST_NOT;
		v.answer = SHMLIMIT_DENIED;
		after = ring.w;
	}
	decide_show(&take, v.answer);
	if (r != NULL) {
		struct window_balance b = { ring, after };
		struct fast_window_copy copy;

		fast_window_copy(l, f, q->when, &copy);
		window_report(&copy.k, q, &b, v.changed ? cost : 0, &v, r);
	}
	return decide_count(l, &take, rule_mode(&f->view), v.answer, q->when.ns);
}

#endif
