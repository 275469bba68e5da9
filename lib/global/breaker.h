/*
 * breaker: one for all processes of a host, so that an engine that is gone costs
 * one of them a deadline now and then, and not each of them one a request. It is a
 * key of a LEASE rule of its own:
 *
 *	a token   closed: call; who takes the token opens it
 *	nothing   one asks: he is the probe, and his call closes it or opens it
 *	denied    open
 *
 * So it needs no repair when a process is killed, the probe included: his claim
 * ends by itself.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef GLOBAL_BREAKER_H
#define GLOBAL_BREAKER_H

#include "shmlimit.h"
#include "url.h"

#define BREAKER_RULE "~engine"          /* '~': a rule that is not the user's */

enum breaker_state {
	BREAKER_CLOSED,
	BREAKER_PROBE,         /* the caller is the one; one of the calls below must follow */
	BREAKER_WAIT,          /* somebody else is: he needs no longer than a call */
	BREAKER_OPEN,
};

struct breaker {
	struct shmlimit *limiter;
	int rule;
	char key[URL_TEXT_MAX];
	uint64_t claim_ns, open_ns;
	unsigned open_after, failures;
	int probing;
};

/* Makes the rule if there is none. Returns 0 or what shmlimit_rule_set() says: -EBUSY it is there, and no lease. */
int breaker_begin(struct breaker *breaker, struct shmlimit *limiter, const struct url *url);

/* May the engine be called? Or -errno: the rule was removed, or is another's. */
int breaker_ask(struct breaker *breaker);

/* How long it stays open, or at most until the process that probes has an answer; 0: it is closed. */
uint64_t breaker_open_for_ns(const struct breaker *breaker);

/* How the call went. */
void breaker_good(struct breaker *breaker);
void breaker_bad(struct breaker *breaker, uint64_t dice);

/* There was no call. */
void breaker_unused(struct breaker *breaker);

#endif
