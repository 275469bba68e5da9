/*
 * funnel_row: what operations do with a funnel, inline: for FUNNEL's row, and for fast.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_FUNNEL_ROW_H
#define SHMLIMIT_LIB_FUNNEL_ROW_H

#include "funnel.h"
#include "request.h"

/*
 * Would even a full funnel owe more than the rule's longest debt, or than limit_ns? Compared in
 * ticks, which are exact: the nanoseconds of a debt depend on where in a tick the caller asks.
 */
static inline int funnel_never_fits(const struct layout_params *params, uint64_t amount, uint64_t limit_ns,
                                    struct funnel_time at)
{
	struct funnel full = funnel_full(params, at);
	uint64_t debt;

	return !funnel_borrow(params, &full, amount, at, &debt) ||
	       (!(params->flags & SHMLIMIT_RULE_NEXT_PAYS) && debt > funnel_time(params, limit_ns).stamp);
}

FAST void funnel_reserve(const struct layout_params *params, const struct request *q, struct funnel_time at,
                         struct funnel *funnel, struct verdict *v)
{
	uint64_t limit_ns = q->max_wait_ns < params->max_wait_ns ? q->max_wait_ns : params->max_wait_ns;
	uint64_t before = funnel_debt(params, *funnel, at), debt, over = 0, over_ns, wait_ns;
	struct funnel borrowed = *funnel;

	if (q->amount == 0)
		return;
	if (q->amount > params->capacity && funnel_never_fits(params, q->amount, limit_ns, at)) {
		v->answer = SHMLIMIT_DENIED;
		v->retry_after_ns = FUNNEL_NEVER;
		return;
	}
	if (!funnel_borrow(params, &borrowed, q->amount, at, &debt)) {
		over = debt; /* and beyond that it is the longest */
		debt = params->debt;
	}
	over_ns = funnel_stamp_to_ns(params, at, over);
	if (params->flags & SHMLIMIT_RULE_NEXT_PAYS)
		wait_ns = funnel_stamp_to_ns(params, at, before);
	else
		wait_ns = funnel_stamps_to_ns(params, at, debt, over);
	if (over == 0 && wait_ns <= limit_ns) {
		*funnel = borrowed;
		v->wait_ns = wait_ns;
		v->changed = 1;
		return;
	}
	/*
	 * Debt and wait get shorter by just the time that passes, until the funnel is full; and
	 * then it has enough.
	 */
	v->answer = SHMLIMIT_DENIED;
	v->retry_after_ns = wait_ns > limit_ns ? wait_ns - limit_ns : 0;
	if (over_ns > v->retry_after_ns)
		v->retry_after_ns = over_ns;
}

/* The operation itself, on a funnel that has refilled up to `at`. */
FAST void funnel_apply(const struct layout_params *params, const struct request *q, struct funnel_time at,
                       struct funnel *funnel, struct verdict *v)
{
	v->answer = SHMLIMIT_ALLOWED;
	v->changed = 0;
	v->wait_ns = 0;
	v->retry_after_ns = 0;
	switch (q->op) {
	case OP_TAKE:
	case OP_PEEK:
		if (q->amount > funnel->quota) {
			v->answer = SHMLIMIT_DENIED;
		} else if (q->op == OP_TAKE) {
			funnel->quota -= q->amount;
			v->changed = 1;
		}
		break;
	case OP_REFUND:
		if (q->amount == 0 || funnel_is_full(params, *funnel))
			break;
		funnel_refund(params, funnel, q->amount, at);
		v->changed = 1;
		break;
	case OP_RESERVE:
		funnel_reserve(params, q, at, funnel, v);
		break;
	case OP_CHARGE:
		if (q->amount == 0)
			break;
		if (!funnel_charge(params, funnel, q->amount, at))
			v->retry_after_ns = FUNNEL_NEVER;
		v->changed = 1;
		break;
	default:
		break; /* it has no others */
	}
}

/* What the funnel says after that. */
FAST void funnel_report(const struct layout_params *params, const struct request *q, struct funnel_time at,
                        struct funnel funnel, const struct verdict *v, struct shmlimit_result *r)
{
	r->limit = params->capacity;
	r->remaining = funnel.quota;
	r->wait_ns = v->wait_ns;
	r->retry_after_ns = v->retry_after_ns;
	if (v->answer == SHMLIMIT_DENIED && q->op != OP_RESERVE)
		r->retry_after_ns = funnel_ns_until(params, funnel, q->amount, at);
	r->reset_after_ns = funnel_ns_until(params, funnel, params->capacity, at);
}

#endif
