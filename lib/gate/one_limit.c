/*
 * one_limit: see one_limit.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>

#include "one_limit.h"
#include "traits.h"

void one_limit_report(struct segment_ref *ref, const struct gate_request *q, size_t i, int error)
{
	if (error == -EDOM || (error == -EOPNOTSUPP && q->has_limit[i]))
		rate_report(ref, q->limits[i], &q->own_limits[i], error);
}

void one_limit_report_share(struct segment_ref *ref, const struct gate_request *q, size_t i, int error)
{
	if (error == -EINVAL || error == -EOPNOTSUPP)
		rate_report_share(ref, q->limits[i], error);
}

int one_limit_peek(struct segment_ref *ref, struct view *view, const struct gate_request *q, size_t which,
                   struct shmlimit_result *r)
{
	size_t rule = q->limits[which]->rule;
	struct shmlimit_request request;
	int answer = -ESRCH;

	*r = (struct shmlimit_result){ .remaining = UINT64_MAX };
	/*
	 * BOUND: a missing rule may have been set again under another id: search once, and only for
	 * this rule, since each request may get here.
	 */
	for (int again = 0; answer == -ESRCH && again < 2; again++) {
		if (again)
			__atomic_store_n(&view->ids[rule],
			                 shmlimit_rule_find(view->limiter, ref->spec->rules[rule].name),
			                 __ATOMIC_RELAXED);
		request = one_limit_request(view, q, which);
		if (multi_take_is_global(view->limiter, request.rule))
			return -EOPNOTSUPP;
		answer = multi_take_peek(view->limiter, &request, r);
	}
	one_limit_report(ref, q, which, answer);
	return answer == -ESRCH ? SHMLIMIT_ALLOWED : answer;
}

int one_limit_reserve(struct segment_ref *ref, struct view *view, const struct gate_request *q, size_t which,
                      uint64_t max_wait_ns, struct shmlimit_result *r)
{
	struct shmlimit_request request;
	const struct traits *traits;
	struct shmlimit_limit own;
	int answer = -ESRCH;

	/* BOUND: a missing rule may have been set again under another id: search once. */
	for (int again = 0; answer == -ESRCH && again < 2; again++) {
		if (again)
			segment_ref_find_rules(ref, view);
		request = one_limit_request(view, q, which);
		traits = traits_of((uint32_t)shmlimit_rule_algorithm(view->limiter, request.rule));
		if ((traits->sets & SETS_MAX_WAIT) == 0)
			return -EOPNOTSUPP;
		if (request.limit != NULL) {
			own = *request.limit;
			if (own.flags == 0)
				own.max_wait_ns = max_wait_ns;
			request.limit = &own;
			answer = shmlimit_decide(view->limiter, SHMLIMIT_RESERVE, &request, r);
		} else {
			answer = shmlimit_reserve(view->limiter, request.rule, request.key, request.key_len,
			                          request.cost, max_wait_ns, r);
		}
	}
	one_limit_report(ref, q, which, answer);
	return answer;
}

void one_limit_give_back(const struct view *view, const struct gate_request *q, size_t which,
                         const struct shmlimit_result *r)
{
	struct shmlimit_request request = one_limit_request(view, q, which);

	if (r->retry_after_ns != 0 || shmlimit_rule_algorithm(view->limiter, request.rule) == SHMLIMIT_HOLD)
		return;
	(void)shmlimit_decide(view->limiter, SHMLIMIT_REFUND, &request, NULL);
}
