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

/* Ask one LEASE rule, or go on asking it. */
static int ask_there(struct bundle *b, struct handles *handles, struct shmlimit_global *global,
                     const struct shmlimit_request *q, int resumed, struct shmlimit_result *r)
{
	if (!b->steps)
		return handles_take(handles, global, q, r);
	if (!resumed)
		return handles_begin(handles, global, q, &b->ticket, r);
	b->ticket.request.key = q->key;
	if (!b->cancelled)
		return handles_poll(handles, global, &b->ticket, r);
	handles_cancel(handles, global, &b->ticket);
	return -ECANCELED;
}

static int take_there(struct bundle *b, struct shmlimit *limiter, struct handles *handles,
                      const struct shmlimit_request *requests, int resumed, size_t *failed,
                      struct shmlimit_result *results)
{
	int answer = -EDESTADDRREQ;
	struct shmlimit_global *global = handles == NULL ? NULL : handles_borrow(handles, &answer);
	const size_t *list = b->there;

	*failed = list[b->at];
	if (global != NULL)
		for (answer = SHMLIMIT_ALLOWED; b->at < b->k; b->at++) {
			*failed = list[b->at];
			answer = ask_there(b, handles, global, &requests[list[b->at]], resumed, &results[list[b->at]]);
			resumed = 0;
			if (answer != SHMLIMIT_ALLOWED)
				break;
		}
	if (global != NULL)
		handles_return(handles, global);
	if (answer == SHMLIMIT_ALLOWED || answer == BUNDLE_PENDING)
		return answer;
	while (b->at-- > 0)
		if (was_leased(handles, &results[list[b->at]]))
			give_back(limiter, &requests[list[b->at]]);
	return answer;
}

static int finish(struct bundle *b, struct shmlimit *limiter, struct handles *handles,
                  const struct shmlimit_request *requests, int resumed, size_t *failed, struct shmlimit_result *results)
{
	int answer = take_there(b, limiter, handles, requests, resumed, failed, results);

	while (answer != SHMLIMIT_ALLOWED && answer != BUNDLE_PENDING && b->m-- > 0)
		if (was_taken(&results[b->here[b->m]]))
			give_back(limiter, &requests[b->here[b->m]]);
	return answer;
}

int bundle_begin(struct bundle *b, struct shmlimit *limiter, struct handles *handles,
                 const struct shmlimit_request *requests, size_t n, uint32_t skip, size_t *failed,
                 struct shmlimit_result *results)
{
	int answer;

	b->m = b->k = b->at = 0;
	for (size_t i = 0; i < n; i++) {
		int algorithm = shmlimit_rule_algorithm(limiter, requests[i].rule);

		if (algorithm == SHMLIMIT_LEASE)
			b->there[b->k++] = i;
		else if (skip == 0 || algorithm != (int)skip)
			b->here[b->m++] = i;
	}
	if (n == 1 && b->m == 1) {
		*failed = 0;
		return shmlimit_take(limiter, requests->rule, requests->key, requests->key_len, requests->cost, results);
	}
	if (b->m == n)
		return shmlimit_take_all(limiter, requests, n, failed, results);
	answer = take_here(limiter, requests, b->here, b->m, failed, results);
	return answer == SHMLIMIT_ALLOWED && b->k > 0 ? finish(b, limiter, handles, requests, 0, failed, results) : answer;
}

int bundle_go_on(struct bundle *b, struct shmlimit *limiter, struct handles *handles,
                 const struct shmlimit_request *requests, size_t *failed, struct shmlimit_result *results)
{
	return finish(b, limiter, handles, requests, 1, failed, results);
}

int bundle_take(struct shmlimit *limiter, struct handles *handles, const struct shmlimit_request *requests, size_t n,
                size_t *failed, struct shmlimit_result *results)
{
	struct bundle b;

	b.steps = b.cancelled = 0;
	return bundle_begin(&b, limiter, handles, requests, n, 0, failed, results);
}
