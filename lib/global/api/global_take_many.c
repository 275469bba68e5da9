/*
 * take_many: a batch, of which the requests that need the backend ask it together.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>

#include "export.h"
#include "lease_request.h"

/* Several requests may have the same key: one of them asks, and the others wait and then take from its lease. */
static void take_some(struct shmlimit_global *g, const struct shmlimit_request *requests, size_t n, int *answers,
                      struct shmlimit_result *results)
{
	struct ask asks[ASKS_MAX];
	size_t of[ASKS_MAX], m = 0;

	for (size_t i = 0; i < n; i++) {
		const struct shmlimit_request *q = &requests[i];
		struct shmlimit_result *r = results != NULL ? &results[i] : NULL;

		ask_begin(&asks[m], q, r);
		answers[i] = ask_slot(g, q->rule, q->key, q->key_len, q->cost, &asks[m].lease, r);
		asks[m].answer = answers[i];
		if (answers[i] > SHMLIMIT_DENIED)
			of[m++] = i;
	}
	if (m != 0)
		ask_there(g, asks, m);
	for (size_t i = 0; i < m; i++)
		answers[of[i]] = asks[i].answer;
}

EXPORT int shmlimit_global_take_many(struct shmlimit_global *g, const struct shmlimit_request *requests, size_t n,
                                     int *answers, struct shmlimit_result *results)
{
	if (g == NULL || n > SHMLIMIT_GLOBAL_REQUESTS_MAX || (n != 0 && (requests == NULL || answers == NULL)))
		return -EINVAL;
	for (size_t i = 0; i < n; i++)
		if (requests[i].reserved32 != 0)
			return -EINVAL;
	for (size_t i = 0; i < n; i += ASKS_MAX)
		take_some(g, requests + i, n - i < ASKS_MAX ? n - i : ASKS_MAX, answers + i,
		          results != NULL ? results + i : NULL);
	return 0;
}
