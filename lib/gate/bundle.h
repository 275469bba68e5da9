/*
 * bundle: the limits of one request, all or none. Some are limits of this host, and some are leased from a Redis
 * server.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_GATE_BUNDLE_H
#define SHMLIMIT_GATE_BUNDLE_H

#include "handles.h"

#define BUNDLE_PENDING SHMLIMIT_GLOBAL_PENDING

/* How far a bundle is. */
struct bundle {
	int steps;                     /* 1: return BUNDLE_PENDING instead of waiting for an agent. Set by the caller */
	int cancelled;                 /* set by the caller before bundle_go_on(): give everything back */
	size_t here[SHMLIMIT_REQUESTS_MAX], there[SHMLIMIT_REQUESTS_MAX]; /* requests of this host, and of LEASE rules */
	size_t m, k;                   /* how many */
	size_t at;                     /* LEASE rules that have allowed */
	struct shmlimit_global_ticket ticket; /* of the next one */
};

/*
 * Like shmlimit_take_all(). The limits of this host are asked first, all at once. Then those of LEASE rules are asked
 * one after the other, in their order, each up to a deadline. If one denies, the tokens taken so far are given back.
 * Other requests may be denied in the meantime, but the limit is never exceeded. Leased tokens go back to this host's
 * lease, or expire with it.
 *
 * More errors: -EDESTADDRREQ a LEASE rule while `handles` is NULL; and those of handles_borrow().
 */
int bundle_take(struct shmlimit *limiter, struct handles *handles, const struct shmlimit_request *requests, size_t n,
                size_t *failed, struct shmlimit_result *results);

/*
 * The same in steps. `skip` is an algorithm whose rules are left out; 0: none. BUNDLE_PENDING: an agent is asked. Then
 * call bundle_go_on() after bundle->ticket.poll_ns, with equal requests and the same results; the keys may have
 * moved. The tokens that other limits took stay taken until then. If cancelled, it returns -ECANCELED. -EAGAIN: a LEASE
 * rule is needed and there is no agent; nothing is taken.
 */
int bundle_begin(struct bundle *bundle, struct shmlimit *limiter, struct handles *handles,
                 const struct shmlimit_request *requests, size_t n, uint32_t skip, size_t *failed,
                 struct shmlimit_result *results);
int bundle_go_on(struct bundle *bundle, struct shmlimit *limiter, struct handles *handles,
                 const struct shmlimit_request *requests, size_t *failed, struct shmlimit_result *results);

/* Is it a LEASE rule? Returns 0 also for an id without a rule. */
int bundle_is_global(struct shmlimit *limiter, int rule);

#endif
