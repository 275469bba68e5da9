/*
 * multi_take: the limits of one request, all or none. Some are limits of this host, and some are
 * leased from a Redis server.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_GATE_MULTI_TAKE_H
#define SHMLIMIT_GATE_MULTI_TAKE_H

#include "global_library.h"

#define MULTI_TAKE_PENDING SHMLIMIT_GLOBAL_PENDING

/* The progress of a take from several limits. */
struct multi_take {
	/* 1: return MULTI_TAKE_PENDING instead of waiting for an agent. Set by the caller */
	int steps;
	int cancelled;    /* set by the caller before multi_take_continue(): give everything back */
	uint64_t poll_ns; /* MULTI_TAKE_PENDING: go on after this long */
	size_t n, list[SHMLIMIT_REQUESTS_MAX]; /* the requests that are not skipped */
	struct shmlimit_global_ticket tickets[SHMLIMIT_REQUESTS_MAX];
	struct shmlimit_result found[SHMLIMIT_REQUESTS_MAX];
};

/* The requests, and where their answers go: *failed and results[i], as for shmlimit_take_all(). */
struct multi_request {
	struct shmlimit *limiter;
	struct shmlimit_global *global; /* or NULL */
	const struct shmlimit_request *requests;
	size_t n;
	size_t *failed;
	struct shmlimit_result *results;
};

/*
 * Like shmlimit_take_all() or, if one of the rules is a LEASE rule, shmlimit_global_take_all().
 * `skip` has a bit for each request that is left out. More errors: -EDESTADDRREQ a LEASE rule while
 * `global` is NULL.
 *
 * With take->steps, MULTI_TAKE_PENDING: an agent is asked. Then call multi_take_continue() after
 * take->poll_ns, with equal requests and results; the keys may have moved. If cancelled, it returns
 * -ECANCELED. -EAGAIN: a LEASE rule is needed and there is no agent; nothing is taken.
 */
int multi_take_begin(struct multi_take *take, const struct multi_request *q, uint32_t skip);
int multi_take_continue(struct multi_take *take, const struct multi_request *q);

/* The same where no rule is a LEASE rule. */
int multi_take_here(const struct multi_request *q);

/* shmlimit_peek(), by the request's own limit if it has one. */
int multi_take_peek(struct shmlimit *limiter, const struct shmlimit_request *q, struct shmlimit_result *r);

/* Is it a LEASE rule? Returns 0 also for an id without a rule. */
int multi_take_is_global(struct shmlimit *limiter, int rule);

#endif
