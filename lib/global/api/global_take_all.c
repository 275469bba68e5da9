/*
 * global_take_all: take from several limits, some of this host and some of all hosts, all or none.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>

#include "all_or_none.h"
#include "lease_request.h"
#include "export.h"
#include "global_take.h"

_Static_assert(SHMLIMIT_REQUESTS_MAX <= LEASE_REQUESTS_MAX, "the backend is asked for all of them in one round trip");

/* What the slot of each LEASE rule said. */
struct slots {
	int answers[SHMLIMIT_REQUESTS_MAX];
	struct shmlimit_lease leases[SHMLIMIT_REQUESTS_MAX];
};

/* Kept off the fast path: a lease request is more than a kilobyte. */
__attribute__((noinline, cold)) static void ask_undecided(struct shmlimit_global *g, struct all_or_none *all,
                                                          struct slots *s)
{
	struct lease_request undecided[LEASE_REQUESTS_MAX];
	size_t of[LEASE_REQUESTS_MAX], m = 0;

	for (size_t k = 0; k < all->there_count; k++) {
		size_t i = all->there[k];

		if (s->answers[k] <= SHMLIMIT_DENIED)
			continue;
		lease_request_begin(&undecided[m], &all->requests[i], &all->results[i]);
		undecided[m].answer = s->answers[k];
		undecided[m].lease = s->leases[k];
		of[m++] = k;
	}
	global_take_undecided(g, undecided, m);
	for (size_t j = 0; j < m; j++) {
		s->answers[of[j]] = undecided[j].answer;
		if (undecided[j].answer == SHMLIMIT_ALLOWED)
			all_or_none_note(all, all->there[of[j]], undecided[j].taken_from);
	}
}

/* The first n slots that said so were claimed for a question that is not asked. */
static void abandon(const struct all_or_none *all, const struct slots *s, size_t n)
{
	for (size_t k = 0; k < n; k++) {
		const struct shmlimit_request *q = &all->requests[all->there[k]];

		if (s->answers[k] == SHMLIMIT_LEASE_ASK)
			shmlimit_lease_abandon(all->limiter, q->rule, q->key, q->key_len);
	}
}

/*
 * Take from the LEASE rules. WHY all slots first: if one of them denies, the backend lends nothing
 * in vain.
 */
static int take_leases_there(struct shmlimit_global *g, struct all_or_none *all, size_t *failed)
{
	struct slots s;
	int is_undecided = 0;

	for (size_t k = 0; k < all->there_count; k++) {
		size_t i = *failed = all->there[k];
		const struct shmlimit_request *q = &all->requests[i];

		s.answers[k] = lease_request_slot(g, q->rule, key_bytes(q->key, q->key_len), q->cost, &s.leases[k],
		                                  &all->results[i]);
		if (s.answers[k] == SHMLIMIT_ALLOWED) {
			all_or_none_note(all, i, q->rule);
		} else if (s.answers[k] <= SHMLIMIT_DENIED) {
			abandon(all, &s, k);
			return s.answers[k];
		} else {
			is_undecided = 1;
		}
	}
	if (is_undecided)
		ask_undecided(g, all, &s);
	for (size_t k = 0; k < all->there_count; k++) {
		*failed = all->there[k];
		if (s.answers[k] != SHMLIMIT_ALLOWED)
			return s.answers[k];
	}
	return SHMLIMIT_ALLOWED;
}

EXPORT int shmlimit_global_take_all(struct shmlimit_global *g, const struct shmlimit_request *requests, size_t n,
                                    size_t *failed, struct shmlimit_result *results)
{
	struct shmlimit_result own[SHMLIMIT_REQUESTS_MAX];
	struct all_or_none all;
	size_t at = 0;
	int answer = all_or_none_check(g, requests, n);

	if (answer != 0)
		return answer;
	all_or_none_begin(&all, g->limiter, requests, n, results != NULL ? results : own);
	if (all.there_count == 0)
		return shmlimit_take_all(g->limiter, requests, n, failed, results);
	answer = all_or_none_peek_here(&all, &at);
	if (answer == SHMLIMIT_ALLOWED)
		answer = take_leases_there(g, &all, &at);
	if (answer == SHMLIMIT_ALLOWED)
		answer = all_or_none_take_here(&all, &at);
	if (answer == SHMLIMIT_ALLOWED)
		return answer;
	all_or_none_give_back(&all);
	if (failed != NULL)
		*failed = at;
	return answer;
}
