/*
 * multi_take: see multi_take.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>

#include "multi_take.h"

/*
 * WHY ask the segment each time: a rule may be removed, and set again with another algorithm, at
 * any time.
 */
int multi_take_is_global(struct shmlimit *limiter, int id)
{
	return shmlimit_rule_algorithm(limiter, id) == SHMLIMIT_LEASE;
}

/* Ask this host alone. */
static int take_here(struct shmlimit *limiter, const struct shmlimit_request *chosen, size_t n, size_t *at,
                     struct shmlimit_result *found)
{
	*at = 0;
	if (n == 1)
		return shmlimit_decide(limiter, SHMLIMIT_TAKE, chosen, found);
	return shmlimit_take_all(limiter, chosen, n, at, found);
}

int multi_take_peek(struct shmlimit *limiter, const struct shmlimit_request *q, struct shmlimit_result *r)
{
	return shmlimit_decide(limiter, SHMLIMIT_PEEK, q, r);
}

/* The LEASE rules cannot be asked. Does a limit of this host deny? */
static int look_here(struct multi_take *t, struct shmlimit *limiter, const struct shmlimit_request *chosen, size_t *at)
{
	for (size_t i = 0; i < t->n; i++)
		if (!multi_take_is_global(limiter, chosen[i].rule) &&
		    multi_take_peek(limiter, &chosen[i], &t->found[i]) == SHMLIMIT_DENIED) {
			*at = i;
			return SHMLIMIT_DENIED;
		}
	return -EDESTADDRREQ;
}

/* Ask the Redis server too, or go on asking it (`chosen` is NULL). */
static int take_there(struct multi_take *t, struct shmlimit *limiter, struct shmlimit_global *global,
                      const struct shmlimit_request *chosen, size_t *at)
{
	const struct global_library *library;
	int answer = -ECANCELED;

	if (global == NULL)
		return chosen != NULL ? look_here(t, limiter, chosen, at) : -EDESTADDRREQ;
	library = global_library_load();
	if (!t->steps)
		return library->take_all(global, chosen, t->n, at, t->found);
	for (size_t i = 0; chosen != NULL && i < t->n; i++)
		t->tickets[i] = (struct shmlimit_global_ticket){ .struct_size = sizeof(t->tickets[i]),
			                                         .flags = SHMLIMIT_GLOBAL_TICKET_AGENT_ONLY };
	if (chosen != NULL)
		answer = library->begin_all(global, chosen, t->n, t->tickets, at, t->found);
	else if (!t->cancelled)
		answer = library->poll_all(global, t->tickets, t->n, at, t->found);
	else
		library->cancel_all(global, t->tickets, t->n);
	t->poll_ns = t->tickets[0].poll_ns;
	return answer;
}

static int finish(const struct multi_take *t, const struct multi_request *q, int answer, size_t at)
{
	if (answer != SHMLIMIT_ALLOWED && answer != MULTI_TAKE_PENDING)
		*q->failed = t->list[at];
	if (answer == SHMLIMIT_DENIED)
		q->results[t->list[at]] = t->found[at];
	for (size_t i = 0; answer == SHMLIMIT_ALLOWED && i < t->n; i++)
		q->results[t->list[i]] = t->found[i];
	return answer;
}

int multi_take_here(const struct multi_request *q)
{
	return take_here(q->limiter, q->requests, q->n, q->failed, q->results);
}

int multi_take_begin(struct multi_take *t, const struct multi_request *q, uint32_t skip)
{
	struct shmlimit_request chosen[SHMLIMIT_REQUESTS_MAX];
	size_t first = SIZE_MAX, at = 0;
	int answer;

	t->n = 0;
	for (size_t i = 0; i < q->n; i++) {
		int algorithm = shmlimit_rule_algorithm(q->limiter, q->requests[i].rule);

		if (skip & UINT32_C(1) << i)
			continue;
		if (algorithm == SHMLIMIT_LEASE && first == SIZE_MAX)
			first = t->n;
		t->list[t->n++] = i;
	}
	if (t->n == q->n && first == SIZE_MAX)
		return multi_take_here(q);
	if (t->n == 0)
		return SHMLIMIT_ALLOWED;
	for (size_t i = 0; i < t->n; i++)
		chosen[i] = q->requests[t->list[i]];
	if (first == SIZE_MAX) {
		answer = take_here(q->limiter, chosen, t->n, &at, t->found);
	} else {
		at = first;
		answer = take_there(t, q->limiter, q->global, chosen, &at);
	}
	return finish(t, q, answer, at);
}

int multi_take_continue(struct multi_take *t, const struct multi_request *q)
{
	size_t at = 0;
	int answer;

	for (size_t i = 0; i < t->n; i++) {
		t->tickets[i].request.key = q->requests[t->list[i]].key;
		t->tickets[i].request.limit = q->requests[t->list[i]].limit;
	}
	answer = take_there(t, NULL, q->global, NULL, &at);
	return finish(t, q, answer, at);
}
