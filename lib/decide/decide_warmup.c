/*
 * decide_warmup: the verbs on a funnel that warms up.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "decide.h"
#include "warmup.h"

/* Take, peek, reserve: a request waits for what is owed before it, and leaves what it costs to the next. */
static void ask(const struct layout_terms *terms, const struct request *q, struct funnel_time at,
                struct funnel *funnel, struct verdict *v)
{
	uint64_t wait_ns = funnel_stamp_to_ns(terms, at, warmup_debt(terms, *funnel, at)), limit_ns = 0;

	if (q->amount == 0)
		return;
	if (q->verb == VERB_RESERVE)
		limit_ns = q->max_wait_ns < terms->max_wait_ns ? q->max_wait_ns : terms->max_wait_ns;
	if (q->amount > warmup_tokens(terms, terms->capacity)) {
		v->answer = SHMLIMIT_DENIED;
		v->retry_after_ns = FUNNEL_NEVER;
	} else if (wait_ns > limit_ns) {
		v->answer = SHMLIMIT_DENIED;
		v->retry_after_ns = wait_ns - limit_ns;
	} else if (q->verb != VERB_PEEK) {
		warmup_take(terms, funnel, q->amount, at);
		v->wait_ns = wait_ns;
		v->changed = 1;
	}
}

void decide_warmup(const struct layout_terms *terms, const struct request *q, struct funnel_time at,
                   struct funnel *funnel, struct verdict *v)
{
	*v = (struct verdict){ .answer = SHMLIMIT_ALLOWED };
	switch (q->verb) {
	case VERB_TAKE:
	case VERB_PEEK:
	case VERB_RESERVE:
		ask(terms, q, at, funnel, v);
		break;
	case VERB_REFUND:
		v->changed = q->amount != 0 && !funnel_is_full(terms, *funnel);
		if (v->changed)
			warmup_refund(terms, funnel, q->amount, at);
		break;
	case VERB_CHARGE:
		v->changed = q->amount != 0;
		if (v->changed && !warmup_take(terms, funnel, q->amount, at))
			v->retry_after_ns = FUNNEL_NEVER;
		break;
	default:
		break; /* a lease's verbs are refused before */
	}
}

void decide_warmup_report(const struct layout_terms *terms, struct funnel funnel, struct funnel_time at,
                          const struct verdict *v, struct shmlimit_result *r)
{
	r->limit = warmup_tokens(terms, terms->capacity);
	r->remaining = warmup_tokens(terms, funnel.quota);
	r->wait_ns = v->wait_ns;
	r->retry_after_ns = v->retry_after_ns;
	r->reset_after_ns = warmup_ns_until_full(terms, funnel, at);
}
