/*
 * take: take tokens of the funnel that all hosts share.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>

#include "export.h"
#include "lease_request.h"

/* Kept off the fast path: an ask is more than a kilobyte. */
__attribute__((noinline, cold)) static int take_there(struct shmlimit_global *g, const struct shmlimit_request *q,
                                                      int answer, const struct shmlimit_lease *lease,
                                                      struct shmlimit_result *r)
{
	struct ask ask;

	ask_begin(&ask, q, r);
	ask.answer = answer;
	ask.lease = *lease;
	ask_there(g, &ask, 1);
	return ask.answer;
}

EXPORT int shmlimit_global_take(struct shmlimit_global *g, int rule, const void *key, size_t key_len, uint64_t cost,
                                struct shmlimit_result *r)
{
	struct shmlimit_lease lease;
	int answer;

	if (g == NULL)
		return -EINVAL;
	answer = ask_slot(g, rule, key, key_len, cost, &lease, r);
	if (__builtin_expect(answer <= SHMLIMIT_DENIED, 1))
		return answer;
	return take_there(g, &(struct shmlimit_request){ .rule = rule, .key = key, .key_len = key_len, .cost = cost },
	                  answer, &lease, r);
}
