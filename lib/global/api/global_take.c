/*
 * global_take: take tokens of the funnel that all hosts share, for one request or for a batch, of
 * which those that need the backend ask it together.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>

#include "agent_thread.h"
#include "export.h"
#include "global_take.h"
#include "lease_request.h"
#include "pool.h"
#include "via_agent.h"

/* The thread needs a moment, or cannot be started: these requests do not wait for it. */
void global_take_undecided(struct shmlimit_global *g, struct lease_request *undecided, size_t n)
{
	struct shmlimit_global *mine;
	int error;

	(void)agent_thread_begin(g);
	mine = pool_borrow(g, &error);
	if (mine == NULL) {
		lease_request_give_up_all(g, undecided, n);
		return;
	}
	if (g->options.flags & SHMLIMIT_GLOBAL_OPTION_NO_WAIT)
		via_agent_at_once(mine, undecided, n);
	else
		lease_request_wait(mine, undecided, n, monotonic_now_ns() + handle_wait_ns(mine));
	pool_return(mine);
}

/* Kept off the fast path: a lease request is more than a kilobyte. */
__attribute__((noinline, cold)) static int take_lease_there(struct shmlimit_global *g, const struct shmlimit_request *q,
                                                            int answer, const struct shmlimit_lease *lease,
                                                            struct shmlimit_result *r)
{
	struct lease_request undecided;

	lease_request_begin(&undecided, q, r);
	undecided.answer = answer;
	undecided.lease = *lease;
	global_take_undecided(g, &undecided, 1);
	return undecided.answer;
}

EXPORT int shmlimit_global_take(struct shmlimit_global *g, int rule, const void *key, size_t key_len, uint64_t cost,
                                struct shmlimit_result *r)
{
	struct shmlimit_lease lease;
	int answer;

	if (g == NULL)
		return -EINVAL;
	answer = lease_request_slot(g, rule, key_bytes(key, key_len), cost, &lease, r);
	if (__builtin_expect(answer <= SHMLIMIT_DENIED, 1))
		return answer;
	return take_lease_there(
		g, &(struct shmlimit_request){ .rule = rule, .key = key, .key_len = key_len, .cost = cost }, answer,
		&lease, r);
}

/*
 * Several requests may have the same key: one of them asks, and the others wait and then take from
 * its lease.
 */
static void take_some(struct shmlimit_global *g, const struct shmlimit_request *requests, size_t n, int *answers,
                      struct shmlimit_result *results)
{
	struct lease_request undecided[LEASE_REQUESTS_MAX];
	size_t of[LEASE_REQUESTS_MAX], m = 0;

	for (size_t i = 0; i < n; i++) {
		const struct shmlimit_request *q = &requests[i];
		struct shmlimit_result *r = results != NULL ? &results[i] : NULL;

		lease_request_begin(&undecided[m], q, r);
		answers[i] =
			lease_request_slot(g, q->rule, key_bytes(q->key, q->key_len), q->cost, &undecided[m].lease, r);
		undecided[m].answer = answers[i];
		if (answers[i] > SHMLIMIT_DENIED)
			of[m++] = i;
	}
	if (m != 0)
		global_take_undecided(g, undecided, m);
	for (size_t i = 0; i < m; i++)
		answers[of[i]] = undecided[i].answer;
}

EXPORT int shmlimit_global_take_many(struct shmlimit_global *g, const struct shmlimit_request *requests, size_t n,
                                     int *answers, struct shmlimit_result *results)
{
	if (g == NULL || n > SHMLIMIT_GLOBAL_REQUESTS_MAX || (n != 0 && (requests == NULL || answers == NULL)))
		return -EINVAL;
	for (size_t i = 0; i < n; i++)
		if (requests[i].limit != NULL || requests[i].place != NULL || requests[i].share != 0)
			return -EOPNOTSUPP;
	for (size_t i = 0; i < n; i += LEASE_REQUESTS_MAX)
		take_some(g, requests + i, n - i < LEASE_REQUESTS_MAX ? n - i : LEASE_REQUESTS_MAX, answers + i,
		          results != NULL ? results + i : NULL);
	return 0;
}
