/*
 * fast_gcra: a take or peek by a limit that came with it, at the first try. The slot is the key's,
 * under a rule in force, and its time is possible. In everything else the general path decides.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_FAST_GCRA_H
#define SHMLIMIT_LIB_FAST_GCRA_H

#include "first.h"
#include "gcra_row.h"

/*
 * Is what is left, more than the limit can leave, of a longer limit or of debt? WHY the limit is looked
 * at first: it is at hand. A word within it is believed whatever the clock did: it denies for no longer
 * than the limit's own time.
 */
FAST int fast_gcra_believes(const struct shmlimit *l, struct gcra_state *state)
{
	state->stepped = 0;
	return state->left <= gcra_reach(l);
}

/* The answer, as decide() gives it; or FIRST_NOT. *failed: it lost its swap. */
FAST int fast_gcra(const struct shmlimit *l, const struct request *q, const struct gcra *g, uint32_t *failed,
                   struct shmlimit_result *r)
{
	struct verdict v = { .answer = SHMLIMIT_ALLOWED };
	uint64_t word, now_ns = q->when.ns;
	struct gcra_state state;
	struct first f;

	if (__builtin_expect(!first_find(l, q, SHMLIMIT_GCRA, 0, &f), 0))
		return FIRST_NOT;
	state = gcra_read(f.seen.word, now_ns, g->tolerance);
	if (__builtin_expect(state.stepped, 0) && !fast_gcra_believes(l, &state))
		return FIRST_NOT;
	gcra_take(g, q->amount, q->op == OP_TAKE, &state, &v);
	/*
	 * Is it only that our time is older than the word's? To other algorithms a token is a number, here it is a
	 * time: what another process took a moment after our reading looks dearer by that moment.
	 */
	if (v.answer == SHMLIMIT_DENIED && !q->when.given) {
		now_ns = when_read(l).ns;
		state = gcra_read(f.seen.word, now_ns, g->tolerance);
		if (__builtin_expect(state.stepped, 0) && !fast_gcra_believes(l, &state))
			return FIRST_NOT;
		v = (struct verdict){ .answer = SHMLIMIT_ALLOWED };
		gcra_take(g, q->amount, q->op == OP_TAKE, &state, &v);
	}
	/* The general path raises the segment's reach. */
	if (v.changed && gcra_is_longer(l, g->tolerance))
		return FIRST_NOT;
	word = gcra_pack(state, now_ns);
	/* The linearization point (I1, I4). ORDER both pair with slot_cas() elsewhere. */
	if (v.changed)
		*failed = !slot_cas(f.slot, f.seen, f.seen.tag, word);
	if (__builtin_expect(v.changed ? *failed : !slot_unchanged(f.slot, f.seen), 0))
		return FIRST_NOT;
	decide_note(q->undo, &v, f.slot, f.seen, 0, (struct slot_seen){ f.seen.tag, word });
	decide_show(q, v.answer);
	if (r != NULL)
		gcra_report(g, state, &v, r);
	return decide_count(l, q, rule_mode(&f.view), v.answer, now_ns);
}

#endif
