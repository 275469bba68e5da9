/*
 * take_all: several limits at once, all or none.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>

#include "clock.h"
#include "export.h"
#include "limiter.h"

/* A dry run that would have been denied answers allowed and has taken nothing. */
static int was_taken(const struct shmlimit_result *r)
{
	return r->retry_after_ns == 0;
}

EXPORT int shmlimit_take_all_at(struct shmlimit *l, const struct shmlimit_request *requests, size_t n,
                                size_t *failed, uint64_t now_ns, struct shmlimit_result *results)
{
	struct shmlimit_result own[SHMLIMIT_REQUESTS_MAX];
	struct shmlimit_result *r = results != NULL ? results : own;
	int answer = SHMLIMIT_ALLOWED;
	size_t i;

	if (l == NULL || requests == NULL || n < 1 || n > SHMLIMIT_REQUESTS_MAX)
		return -EINVAL;
	for (i = 0; i < n; i++)
		if (requests[i].reserved32 != 0)
			return -EINVAL;
	for (i = 0; i < n && answer == SHMLIMIT_ALLOWED; i++)
		answer = shmlimit_take_at(l, requests[i].rule, requests[i].key, requests[i].key_len,
		                          requests[i].cost, now_ns, &r[i]);
	if (answer == SHMLIMIT_ALLOWED)
		return answer;
	i--;
	if (failed != NULL)
		*failed = i;
	/* In reverse, so that a key that was asked twice passes through the states it came from. */
	while (i-- > 0)
		if (was_taken(&r[i]))
			shmlimit_refund_at(l, requests[i].rule, requests[i].key, requests[i].key_len,
			                   requests[i].cost, now_ns, NULL);
	return answer;
}

EXPORT int shmlimit_take_all(struct shmlimit *l, const struct shmlimit_request *requests, size_t n, size_t *failed,
                             struct shmlimit_result *results)
{
	return shmlimit_take_all_at(l, requests, n, failed, shmlimit_now(l), results);
}
