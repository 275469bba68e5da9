/*
 * bundle: see bundle.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>

#include "multi_take.h"

/* WHY ask the segment each time: a rule may be removed, and set again with another algorithm, at any time. */
int bundle_is_global(struct shmlimit *limiter, int id)
{
	return shmlimit_rule_algorithm(limiter, id) == SHMLIMIT_LEASE;
}

/* Ask this host alone. */
static int take_here(struct shmlimit *limiter, const struct shmlimit_request *asked, size_t n, size_t *at,
                     struct shmlimit_result *found)
{
	*at = 0;
	if (n == 1)
		return shmlimit_take(limiter, asked->rule, asked->key, asked->key_len, asked->cost, found);
	return shmlimit_take_all(limiter, asked, n, at, found);
}

/* The LEASE rules cannot be asked. Does a limit of this host deny? */
static int look_here(struct bundle *b, struct shmlimit *limiter, const struct shmlimit_request *asked, size_t *at)
{
	for (size_t i = 0; i < b->n; i++)
		if (!bundle_is_global(limiter, asked[i].rule) &&
		    shmlimit_peek(limiter, asked[i].rule, asked[i].key, asked[i].key_len, asked[i].cost,
		                  &b->found[i]) == SHMLIMIT_DENIED) {
			*at = i;
			return SHMLIMIT_DENIED;
		}
	return -EDESTADDRREQ;
}

/* Ask the Redis server too, or go on asking it (`asked` is NULL). */
static int take_there(struct bundle *b, struct shmlimit *limiter, struct shmlimit_global *global,
                      const struct shmlimit_request *asked, size_t *at)
{
	const struct global_library *library;
	int answer = -ECANCELED;

	if (global == NULL)
		return asked != NULL ? look_here(b, limiter, asked, at) : -EDESTADDRREQ;
	library = global_library_load();
	if (!b->steps)
		return library->take_all(global, asked, b->n, at, b->found);
	for (size_t i = 0; asked != NULL && i < b->n; i++)
		b->tickets[i] = (struct shmlimit_global_ticket){ .struct_size = sizeof(b->tickets[i]),
			                                         .flags = SHMLIMIT_GLOBAL_AGENT_ONLY };
	if (asked != NULL)
		answer = library->begin_all(global, asked, b->n, b->tickets, at, b->found);
	else if (!b->cancelled)
		answer = library->poll_all(global, b->tickets, b->n, at, b->found);
	else
		library->cancel_all(global, b->tickets, b->n);
	b->poll_ns = b->tickets[0].poll_ns;
	return answer;
}

static int finish(const struct bundle *b, int answer, size_t at, size_t *failed, struct shmlimit_result *results)
{
	if (answer != SHMLIMIT_ALLOWED && answer != BUNDLE_PENDING)
		*failed = b->list[at];
	if (answer == SHMLIMIT_DENIED)
		results[b->list[at]] = b->found[at];
	for (size_t i = 0; answer == SHMLIMIT_ALLOWED && i < b->n; i++)
		results[b->list[i]] = b->found[i];
	return answer;
}

int bundle_begin(struct bundle *b, struct shmlimit *limiter, struct shmlimit_global *global,
                 const struct shmlimit_request *requests, size_t n, uint32_t skip, size_t *failed,
                 struct shmlimit_result *results)
{
	struct shmlimit_request asked[SHMLIMIT_REQUESTS_MAX];
	size_t first = SIZE_MAX, at = 0;
	int answer;

	b->n = 0;
	for (size_t i = 0; i < n; i++) {
		int algorithm = shmlimit_rule_algorithm(limiter, requests[i].rule);

		if (skip != 0 && algorithm == (int)skip)
			continue;
		if (algorithm == SHMLIMIT_LEASE && first == SIZE_MAX)
			first = b->n;
		b->list[b->n++] = i;
	}
	if (b->n == n && first == SIZE_MAX)
		return take_here(limiter, requests, n, failed, results);
	if (b->n == 0)
		return SHMLIMIT_ALLOWED;
	for (size_t i = 0; i < b->n; i++)
		asked[i] = requests[b->list[i]];
	if (first == SIZE_MAX) {
		answer = take_here(limiter, asked, b->n, &at, b->found);
	} else {
		at = first;
		answer = take_there(b, limiter, global, asked, &at);
	}
	return finish(b, answer, at, failed, results);
}

int bundle_go_on(struct bundle *b, struct shmlimit_global *global, const struct shmlimit_request *requests,
                 size_t *failed, struct shmlimit_result *results)
{
	size_t at = 0;
	int answer;

	for (size_t i = 0; i < b->n; i++)
		b->tickets[i].request.key = requests[b->list[i]].key;
	answer = take_there(b, NULL, global, NULL, &at);
	return finish(b, answer, at, failed, results);
}

int bundle_take(struct shmlimit *limiter, struct shmlimit_global *global, const struct shmlimit_request *requests,
                size_t n, size_t *failed, struct shmlimit_result *results)
{
	struct bundle b;

	b.steps = b.cancelled = 0;
	return bundle_begin(&b, limiter, global, requests, n, 0, failed, results);
}
