/*
 * all_or_none: see all_or_none.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>

#include "all_or_none.h"

int all_or_none_check(const struct shmlimit_global *g, const struct shmlimit_request *requests, size_t n)
{
	if (g == NULL || requests == NULL || n < 1 || n > SHMLIMIT_REQUESTS_MAX)
		return -EINVAL;
	for (size_t i = 0; i < n; i++)
		if (requests[i].place != NULL || requests[i].share != 0)
			return -EOPNOTSUPP;
	for (size_t i = 0; i < n; i++)
		if (requests[i].limit != NULL &&
		    shmlimit_rule_algorithm(g->limiter, requests[i].rule) == SHMLIMIT_LEASE)
			return -EOPNOTSUPP;
	return 0;
}

/*
 * WHY ask for the algorithm each time: a rule may be removed, and set again with another one, at
 * any time.
 */
void all_or_none_begin(struct all_or_none *all, struct shmlimit *l, const struct shmlimit_request *requests, size_t n,
                       struct shmlimit_result *results)
{
	all->limiter = l;
	all->requests = requests;
	all->results = results;
	all->n = n;
	all->here_count = all->there_count = 0;
	for (size_t i = 0; i < n; i++) {
		all->taken_from[i] = -1;
		if (shmlimit_rule_algorithm(l, requests[i].rule) == SHMLIMIT_LEASE)
			all->there[all->there_count++] = i;
		else
			all->here[all->here_count++] = i;
	}
}

int all_or_none_has_taken(const struct shmlimit_result *r)
{
	return r->retry_after_ns == 0 && r->remaining < r->limit;
}

void all_or_none_note(struct all_or_none *all, size_t i, int taken_from)
{
	all->taken_from[i] = all_or_none_has_taken(&all->results[i]) ? taken_from : -1;
}

/* In reverse, so that a key that was asked twice passes through the states that it came from. */
void all_or_none_give_back(const struct all_or_none *all)
{
	for (size_t i = all->n; i-- > 0;) {
		struct shmlimit_request q = all->requests[i];

		q.rule = all->taken_from[i];
		if (q.rule >= 0)
			shmlimit_decide(all->limiter, SHMLIMIT_REFUND, &q, NULL);
	}
}

int all_or_none_take_here(struct all_or_none *all, size_t *failed)
{
	struct shmlimit_request asked[SHMLIMIT_REQUESTS_MAX];
	struct shmlimit_result found[SHMLIMIT_REQUESTS_MAX];
	size_t n = all->here_count, at = 0;
	int answer;

	if (n == 0)
		return SHMLIMIT_ALLOWED;
	for (size_t i = 0; i < n; i++)
		asked[i] = all->requests[all->here[i]];
	answer = shmlimit_take_all(all->limiter, asked, n, &at, found);
	if (answer != SHMLIMIT_ALLOWED)
		*failed = all->here[at];
	if (answer == SHMLIMIT_DENIED)
		all->results[all->here[at]] = found[at];
	for (size_t i = 0; answer == SHMLIMIT_ALLOWED && i < n; i++)
		all->results[all->here[i]] = found[i];
	return answer;
}

static int peek_here(struct shmlimit *l, const struct shmlimit_request *q, struct shmlimit_result *r)
{
	return shmlimit_decide(l, SHMLIMIT_PEEK, q, r);
}

int all_or_none_peek_here(struct all_or_none *all, size_t *failed)
{
	int answer = SHMLIMIT_ALLOWED;

	for (size_t i = 0; i < all->here_count && answer == SHMLIMIT_ALLOWED; i++) {
		const struct shmlimit_request *q = &all->requests[all->here[i]];

		*failed = all->here[i];
		answer = peek_here(all->limiter, q, &all->results[all->here[i]]);
	}
	if (answer != SHMLIMIT_DENIED)
		return answer;
	answer = all_or_none_take_here(all, failed);
	if (answer != SHMLIMIT_ALLOWED)
		return answer;
	for (size_t i = 0; i < all->here_count; i++)
		all_or_none_note(all, all->here[i], all->requests[all->here[i]].rule);
	all->here_count = 0;
	return SHMLIMIT_ALLOWED;
}
