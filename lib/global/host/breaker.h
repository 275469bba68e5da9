/*
 * breaker: the circuit breaker that all processes of a host share. While the backend is gone, one
 * process waits for a deadline now and then, instead of every process for every request. The
 * breaker is a key of an internal LEASE rule:
 *
 *	a token   closed: call; the process that takes the token opens it
 *	nothing   one process claims the key and is the probe: its call closes the breaker or opens it
 *	denied    open
 *
 * So nothing needs repair when a process is killed, not even when it is the probe: its claim ends
 * by itself.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef GLOBAL_BREAKER_H
#define GLOBAL_BREAKER_H

#include "shmlimit_lease.h"
#include "url.h"

#define BREAKER_RULE "~backend" /* '~': an internal rule */

enum breaker_state {
	BREAKER_CLOSED,
	BREAKER_PROBE, /* the caller is the probe, and must report its outcome below */
	BREAKER_WAIT,  /* another process is the probe: it needs no longer than a call */
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

/*
 * Create the rule if there is none. Returns 0 or what shmlimit_rule_set() returns: -EBUSY another
 * algorithm's rule has the name.
 */
int breaker_begin(struct breaker *breaker, struct shmlimit *limiter, const struct url *url);

/*
 * May the backend be called? Returns a breaker_state, or -errno: the rule was removed or replaced.
 */
int breaker_permits(struct breaker *breaker);

/*
 * Returns the time that it stays open, which is at most the time until the probe has an answer; 0:
 * it is closed.
 */
uint64_t breaker_open_for_ns(const struct breaker *breaker);

/* Record a call that succeeded, or that failed. */
void breaker_succeeded(struct breaker *breaker);
void breaker_failed(struct breaker *breaker, uint64_t rng);

/* Give the probe back: no call was made. */
void breaker_not_called(struct breaker *breaker);

#endif
