/*
 * bundle: see bundle.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>

#include "bundle.h"

/* WHY ask the segment each time: a rule may be removed, and set again with another algorithm, at any time. */
int bundle_is_global(struct shmlimit *limiter, int id)
{
	return shmlimit_rule_algorithm(limiter, id) == SHMLIMIT_LEASE;
}

/*
 * Did an allowed request take tokens? A rule that is off took none, nor did a rule in a dry run that would have
 * denied it.
 */
static int was_taken(const struct shmlimit_result *r)
{
	return r->retry_after_ns == 0 && r->remaining < r->limit;
}

/*
 * An answer that was made without the Redis server took no leased tokens, and refunding them would create tokens. An
 * answer of ALLOW looks like one that spent the last token of a lease; one of LOCAL looks like any other. If it is
 * not certain that tokens were leased, none are given back.
 */
static int was_leased(struct handles *handles, const struct shmlimit_result *r)
{
	switch (handles_options(handles)->on_failure) {
	case SHMLIMIT_GLOBAL_DENY:
		return was_taken(r);
	case SHMLIMIT_GLOBAL_ALLOW:
		return was_taken(r) && (r->remaining != 0 || r->reset_after_ns != 0);
	default:
		return 0;
	}
}

static void give_back(struct shmlimit *limiter, const struct shmlimit_request *q)
{
	(void)shmlimit_refund(limiter, q->rule, q->key, q->key_len, q->cost, NULL);
}

static int take_here(struct shmlimit *limiter, const struct shmlimit_request *requests, const size_t *list, size_t n,
                     size_t *failed, struct shmlimit_result *results)
{
	struct shmlimit_request asked[SHMLIMIT_REQUESTS_MAX];
	struct shmlimit_result found[SHMLIMIT_REQUESTS_MAX];
	size_t which = 0;
	int answer;

	if (n == 0)
		return SHMLIMIT_ALLOWED;
	for (size_t i = 0; i < n; i++)
		asked[i] = requests[list[i]];
	answer = shmlimit_take_all(limiter, asked, n, &which, found);
	if (answer != SHMLIMIT_ALLOWED)
		*failed = list[which];
	if (answer == SHMLIMIT_DENIED)
		results[list[which]] = found[which];
	for (size_t i = 0; answer == SHMLIMIT_ALLOWED && i < n; i++)
		results[list[i]] = found[i];
	return answer;
}

static int take_there(struct shmlimit *limiter, struct handles *handles, const struct shmlimit_request *requests,
                      const size_t *list, size_t n, size_t *failed, struct shmlimit_result *results)
{
	int answer = -EDESTADDRREQ;
	struct shmlimit_global *global = handles == NULL ? NULL : handles_borrow(handles, &answer);
	size_t i;

	*failed = list[0];
	if (global == NULL)
		return answer;
	answer = SHMLIMIT_ALLOWED;
	for (i = 0; i < n && answer == SHMLIMIT_ALLOWED; i++) {
		const struct shmlimit_request *q = &requests[list[i]];

		*failed = list[i];
		answer = handles_take(handles, global, q, &results[list[i]]);
	}
	handles_return(handles, global);
	for (i--; answer != SHMLIMIT_ALLOWED && i-- > 0;)
		if (was_leased(handles, &results[list[i]]))
			give_back(limiter, &requests[list[i]]);
	return answer;
}

int bundle_take(struct shmlimit *limiter, struct handles *handles, const struct shmlimit_request *requests, size_t n,
                size_t *failed, struct shmlimit_result *results)
{
	size_t here[SHMLIMIT_REQUESTS_MAX], there[SHMLIMIT_REQUESTS_MAX], m = 0, k = 0;
	int answer;

	for (size_t i = 0; i < n; i++)
		if (bundle_is_global(limiter, requests[i].rule))
			there[k++] = i;
		else
			here[m++] = i;
	if (n == 1 && k == 0) {
		*failed = 0;
		return shmlimit_take(limiter, requests->rule, requests->key, requests->key_len, requests->cost, results);
	}
	if (k == 0)
		return shmlimit_take_all(limiter, requests, n, failed, results);
	answer = take_here(limiter, requests, here, m, failed, results);
	if (answer != SHMLIMIT_ALLOWED)
		return answer;
	answer = take_there(limiter, handles, requests, there, k, failed, results);
	while (answer != SHMLIMIT_ALLOWED && m-- > 0)
		if (was_taken(&results[here[m]]))
			give_back(limiter, &requests[here[m]]);
	return answer;
}
