/*
 * gcra_row: what a take does by a limit that comes with it, inline: for GCRA's row, and for
 * fast_gcra.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_GCRA_ROW_H
#define SHMLIMIT_LIB_GCRA_ROW_H

#include "funnel.h"
#include "gcra.h"
#include "request.h"

/*
 * How far ahead of the clock a word can be, in ticks: header->reach, which is what the longest limit so
 * far leaves, and a slack for readings of the clock. A process whose limit leaves more raises that
 * number before it writes the word. WHY a number of the segment: a word does not say its limit, which can be of seconds
 * or of a year. Without it a key that a clock used before it stepped back could be denied for three years.
 *
 * INVARIANT I8: no word is further ahead than reach and the clock that wrote it. A process that is killed
 * between the two leaves a reach that is too long, until the segment is made again: harmless.
 *
 * ORDER it is read after the word (slot_read() acquires), and raised before the word is swapped in
 * (slot_cas() releases). A process that finds it raised by another one has read it before its own
 * swap, so a reader of that word finds it no lower (coherence).
 */
FAST uint64_t gcra_reach(const struct shmlimit *l)
{
	return gcra_ahead(load_relaxed(&l->header->reach));
}

void gcra_raise(const struct shmlimit *l, uint64_t reach);

/* Can a limit leave more than all before? */
FAST int gcra_is_longer(const struct shmlimit *l, uint64_t ticks)
{
	return __builtin_expect(ticks > load_relaxed(&l->header->reach), 0);
}

/* A limit is about to leave a key full after at most `ticks`. */
FAST void gcra_will_leave(const struct shmlimit *l, uint64_t ticks)
{
	if (gcra_is_longer(l, ticks))
		gcra_raise(l, ticks);
}

/* A take or peek. *v has been set to allowed. */
FAST void gcra_take(const struct gcra *g, uint64_t tokens, int takes, struct gcra_state *state, struct verdict *v)
{
	uint64_t cost = gcra_cost(g, tokens);

	if (__builtin_expect(tokens > g->capacity || g->blocks, 0)) {
		v->answer = SHMLIMIT_DENIED;
		v->retry_after_ns = FUNNEL_NEVER;
	} else if (state->left + cost > g->tolerance) {
		/* What another limit left behind denies no request that takes nothing. */
		v->answer = tokens == 0 ? SHMLIMIT_ALLOWED : SHMLIMIT_DENIED;
		v->retry_after_ns = tokens == 0 ? 0 : gcra_ns(state->left + cost - g->tolerance);
	} else if (takes && cost != 0) {
		state->left += cost;
		v->changed = 1;
	}
}

/* What the key says after that. */
FAST void gcra_report(const struct gcra *g, struct gcra_state state, const struct verdict *v, struct shmlimit_result *r)
{
	r->limit = g->capacity;
	r->remaining = g->blocks ? 0 : gcra_remaining(g, state);
	r->wait_ns = v->wait_ns;
	r->retry_after_ns = v->retry_after_ns;
	r->reset_after_ns = g->blocks ? 0 : gcra_ns(state.left);
}

#endif
