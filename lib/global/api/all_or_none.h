/*
 * all_or_none: several limits in one request, all or none. Some are limits of this host, and some
 * are LEASE rules.
 *
 *	1. The limits of this host are looked at. Most denials end here: nothing was taken, and the backend is not asked.
 *	2. The LEASE rules are taken from: what this host has leased, and the rest is asked for together.
 *	3. The limits of this host are taken from, all or none.
 *
 * If a step denies, the tokens of LEASE rules are given back. WHY the limits of this host come
 * last: none of their tokens is held while the backend is waited for, and none has to be refunded
 * after that wait. A refund that is late would take back the newest tokens of a window, or tokens
 * of a counter's next period, instead of its own; a place cannot be refunded at all. A lease can
 * take tokens back for as long as it lasts.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef GLOBAL_ALL_OR_NONE_H
#define GLOBAL_ALL_OR_NONE_H

#include "handle.h"

struct all_or_none {
	struct shmlimit *limiter;
	const struct shmlimit_request *requests;
	struct shmlimit_result *results;
	size_t n, here_count, there_count;
	size_t here[SHMLIMIT_REQUESTS_MAX],
		there[SHMLIMIT_REQUESTS_MAX];  /* places of this host's limits, and of LEASE rules */
	int taken_from[SHMLIMIT_REQUESTS_MAX]; /* the rule whose slot gave the tokens; -1: none */
};

/*
 * Checks that there are 1 to SHMLIMIT_REQUESTS_MAX requests with zeros where they must be, and
 * without limits of their own for LEASE rules. Returns 0, -EINVAL, -E2BIG or -EOPNOTSUPP.
 */
int all_or_none_check(const struct shmlimit_global *g, const struct shmlimit_request *requests, size_t n);

void all_or_none_begin(struct all_or_none *all, struct shmlimit *limiter, const struct shmlimit_request *requests,
                       size_t n, struct shmlimit_result *results);

/*
 * Step 1. Returns as shmlimit_peek(), with *failed. A denial is counted, which needs a take. Should
 * that allow, since a token came back in between, then the limits of this host have been taken
 * from, and there is nothing left for step 3.
 */
int all_or_none_peek_here(struct all_or_none *all, size_t *failed);

/* Step 3. Returns as shmlimit_take_all(). */
int all_or_none_take_here(struct all_or_none *all, size_t *failed);

/* Note that request `i` was allowed from the slot of a rule, or from none (-1). */
void all_or_none_note(struct all_or_none *all, size_t i, int taken_from);

/* Give back what was noted. */
void all_or_none_give_back(const struct all_or_none *all);

/*
 * Did an allowed request take tokens? A rule that is off took none, nor did a rule in a dry run
 * that would have denied it.
 */
int all_or_none_has_taken(const struct shmlimit_result *r);

#endif
