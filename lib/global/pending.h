/*
 * pending: a request that waits for the agent while its caller does other work.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef GLOBAL_PENDING_H
#define GLOBAL_PENDING_H

#include "handle.h"

/* The library's part of a ticket. */
struct pending_state {
	uint64_t began_ns, until_ns;   /* by monotonic_now_ns() */
	uint64_t need, want;           /* of shmlimit_lease */
	uint64_t word;                 /* while it is posted: see struct ticket */
	uint32_t cell;
	uint32_t posted;
	int32_t answer;                /* LEASE_ASK, LEASE_WAIT: pending */
	uint32_t unused;
};

_Static_assert(sizeof(struct pending_state) == sizeof(((struct shmlimit_global_ticket *)0)->opaque), "it fits exactly");

/* Go on with a ticket. Returns the decision, or SHMLIMIT_GLOBAL_PENDING with ticket->poll_ns set. */
int pending_step(struct shmlimit_global *g, struct shmlimit_global_ticket *ticket, struct shmlimit_result *r);

/* Has the ticket the right size and flags? And is it pending? */
int pending_is_valid(const struct shmlimit_global_ticket *ticket);
int pending_is(const struct shmlimit_global_ticket *ticket);

#endif
