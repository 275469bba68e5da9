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
