/*
 * ticket: a request that waits for the agent while its caller does other work.
 *
 * WHY NOT an eventfd: the agent is another process, and would need a descriptor of each process
 * that asks; a thread that waits for the futex and writes to one costs a thread in each worker and
 * two context switches for each answer.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef GLOBAL_TICKET_H
#define GLOBAL_TICKET_H

#include "handle.h"

/* The library's part of a ticket. */
struct ticket_state {
	uint64_t began_ns, until_ns; /* by monotonic_now_ns() */
	uint64_t need, want;         /* of shmlimit_lease */
	uint64_t word;               /* while it is posted: see struct receipt */
	uint32_t cell;
	uint8_t posted;
	uint8_t steady; /* of shmlimit_lease, too */
	uint16_t later; /* a limit of this host, which is taken from when all others have allowed */
	int32_t answer; /* LEASE_ASK, LEASE_WAIT: pending */
	uint32_t taken; /* the rule whose slot gave the tokens, and 1; 0: none did */
};

_Static_assert(sizeof(struct ticket_state) == sizeof(((struct shmlimit_global_ticket *)0)->opaque), "it fits exactly");

/*
 * Take from this host's lease alone. Returns the decision, or SHMLIMIT_GLOBAL_PENDING:
 * ticket_step() is next.
 */
int ticket_begin(struct shmlimit_global *g, const struct shmlimit_request *request,
                 struct shmlimit_global_ticket *ticket, struct shmlimit_result *r);

/*
 * Go on with a ticket. Returns the decision, or SHMLIMIT_GLOBAL_PENDING with ticket->poll_ns set.
 */
int ticket_step(struct shmlimit_global *g, struct shmlimit_global_ticket *ticket, struct shmlimit_result *r);

/* End a ticket, pending or allowed, and give back what was taken for it. */
void ticket_cancel(struct shmlimit_global *g, struct shmlimit_global_ticket *ticket);

/* End a ticket as it is. It is not pending then, and nothing is given back for it. */
void ticket_end(struct shmlimit_global_ticket *ticket);

/*
 * Make a ticket of a request that was allowed. `taken_from`: the rule whose slot gave the tokens;
 * -1: none did.
 */
void ticket_decided(struct shmlimit_global_ticket *ticket, const struct shmlimit_request *request, int taken_from);

/* Mark such a ticket as one of a limit that has not been taken from yet. */
void ticket_later(struct shmlimit_global_ticket *ticket);
int ticket_is_later(const struct shmlimit_global_ticket *ticket);

/* Has the ticket the right size and flags? And is it pending? */
int ticket_is_valid(const struct shmlimit_global_ticket *ticket);
int ticket_is_pending(const struct shmlimit_global_ticket *ticket);

#endif
