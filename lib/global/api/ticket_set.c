/*
 * ticket_set: see ticket_set.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>

#include "all_or_none.h"
#include "export.h"
#include "ticket_set.h"
#include "ticket.h"

int ticket_set_is_pending(const struct shmlimit_global_ticket *tickets, size_t n)
{
	int pending = 0;

	if (tickets == NULL || n < 1 || n > SHMLIMIT_REQUESTS_MAX)
		return 0;
	for (size_t i = 0; i < n; i++) {
		if (!ticket_is_valid(&tickets[i]))
			return 0;
		pending |= ticket_is_pending(&tickets[i]);
	}
	return pending;
}

void ticket_set_cancel(struct shmlimit_global *g, struct shmlimit_global_ticket *tickets, size_t n)
{
	while (n-- > 0)
		ticket_cancel(g, &tickets[n]);
}

/* All LEASE rules have allowed: take from the limits of this host. */
static int finish_tickets(struct shmlimit_global *g, struct shmlimit_global_ticket *tickets, size_t n, size_t *failed,
                          struct shmlimit_result *results)
{
	struct shmlimit_request requests[SHMLIMIT_REQUESTS_MAX];
	struct all_or_none all = { .limiter = g->limiter, .requests = requests, .results = results };

	for (size_t i = 0; i < n; i++) {
		requests[i] = tickets[i].request;
		if (ticket_is_later(&tickets[i]))
			all.here[all.here_count++] = i;
	}
	return all_or_none_take_here(&all, failed);
}

int ticket_set_step(struct shmlimit_global *g, struct shmlimit_global_ticket *tickets, size_t n, size_t *failed,
                    struct shmlimit_result *results)
{
	struct shmlimit_result own[SHMLIMIT_REQUESTS_MAX];
	uint64_t poll_ns = UINT64_MAX;
	int answer = SHMLIMIT_ALLOWED;
	size_t at = 0;

	results = results != NULL ? results : own;
	for (size_t i = 0; i < n && (answer == SHMLIMIT_ALLOWED || answer == SHMLIMIT_GLOBAL_PENDING); i++) {
		if (!ticket_is_pending(&tickets[i]))
			continue;
		at = i;
		answer = ticket_step(g, &tickets[i], &results[i]);
		if (answer == SHMLIMIT_GLOBAL_PENDING && tickets[i].poll_ns < poll_ns)
			poll_ns = tickets[i].poll_ns;
	}
	if (poll_ns != UINT64_MAX && (answer == SHMLIMIT_ALLOWED || answer == SHMLIMIT_GLOBAL_PENDING)) {
		tickets[0].poll_ns = poll_ns;
		return SHMLIMIT_GLOBAL_PENDING;
	}
	if (answer == SHMLIMIT_ALLOWED)
		answer = finish_tickets(g, tickets, n, &at, results);
	if (answer != SHMLIMIT_ALLOWED) {
		ticket_set_cancel(g, tickets, n);
		if (failed != NULL)
			*failed = at;
	}
	for (size_t i = 0; i < n; i++)
		ticket_end(&tickets[i]);
	return answer;
}

static int are_valid(const struct shmlimit_global_ticket *tickets, size_t n)
{
	if (tickets == NULL)
		return 0;
	for (size_t i = 0; i < n; i++)
		if (!ticket_is_valid(&tickets[i]))
			return 0;
	return 1;
}

/* Ask the slots of the LEASE rules. Returns SHMLIMIT_ALLOWED unless one denies. */
static int take_slots(struct shmlimit_global *g, const struct all_or_none *all, struct shmlimit_global_ticket *tickets,
                      size_t *failed)
{
	for (size_t k = 0; k < all->there_count; k++) {
		size_t i = *failed = all->there[k];
		int answer = ticket_begin(g, &all->requests[i], &tickets[i], &all->results[i]);

		if (answer != SHMLIMIT_ALLOWED && answer != SHMLIMIT_GLOBAL_PENDING)
			return answer;
	}
	return SHMLIMIT_ALLOWED;
}

EXPORT int shmlimit_global_begin_all(struct shmlimit_global *g, const struct shmlimit_request *requests, size_t n,
                                     struct shmlimit_global_ticket *tickets, size_t *failed,
                                     struct shmlimit_result *results)
{
	struct shmlimit_result own[SHMLIMIT_REQUESTS_MAX];
	struct all_or_none all;
	size_t at = 0;
	int answer = all_or_none_check(g, requests, n);

	if (answer == 0 && !are_valid(tickets, n))
		answer = -EINVAL;
	if (answer != 0)
		return answer;
	all_or_none_begin(&all, g->limiter, requests, n, results != NULL ? results : own);
	for (size_t i = 0; i < n; i++)
		ticket_end(&tickets[i]);
	if (all.there_count == 0)
		return shmlimit_take_all(g->limiter, requests, n, failed, results);
	answer = all_or_none_peek_here(&all, &at);
	if (answer == SHMLIMIT_ALLOWED) {
		for (size_t i = 0; i < n; i++)
			ticket_decided(&tickets[i], &requests[i], all.taken_from[i]);
		for (size_t k = 0; k < all.here_count; k++)
			ticket_later(&tickets[all.here[k]]);
		answer = take_slots(g, &all, tickets, &at);
	}
	if (answer == SHMLIMIT_ALLOWED)
		return ticket_set_step(g, tickets, n, failed, all.results);
	ticket_set_cancel(g, tickets, n);
	if (failed != NULL)
		*failed = at;
	return answer;
}

EXPORT int shmlimit_global_poll_all(struct shmlimit_global *g, struct shmlimit_global_ticket *tickets, size_t n,
                                    size_t *failed, struct shmlimit_result *results)
{
	return g != NULL && ticket_set_is_pending(tickets, n) ? ticket_set_step(g, tickets, n, failed, results)
	                                                      : -EINVAL;
}

EXPORT void shmlimit_global_cancel_all(struct shmlimit_global *g, struct shmlimit_global_ticket *tickets, size_t n)
{
	if (g != NULL && ticket_set_is_pending(tickets, n))
		ticket_set_cancel(g, tickets, n);
}
