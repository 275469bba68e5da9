/*
 * prefetch: leases that a host has before a key needs them.
 *
 * A process whose lease falls below a quarter makes a request of cost 0. What the backend leases
 * for it is kept here until the key has next to nothing left, since tokens of two leases in one
 * slot end with the first. So no process has to wait at a lease's end. A denial by chance is kept,
 * too. A request for the key that comes nevertheless is answered from what is kept, or becomes that
 * of the question that is on its way. If the agent is killed, what it kept is lost, as any lease of
 * a killed process.
 *
 * Where the backend is far away (mailbox_far_ns()) a key in use would wait for each lease. There
 * the agent watches what it deposits, and asks again one round trip before a key has spent it, or
 * before it ends.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef GLOBAL_PREFETCH_H
#define GLOBAL_PREFETCH_H

#include "agent_state.h"

/*
 * Is this request decided, now or when an earlier question is answered, since its key has a
 * prefetched lease? If not, one of cost 0 is a prefetched lease from now on.
 */
int prefetch_answers(struct agent *agent, struct request_run *p);

/*
 * What was leased was deposited, and its answer sent: watch the key if the backend is far away, or
 * release the place.
 */
void prefetch_watch(struct agent *agent, struct request_run *p);

/* The question of a prefetched lease will have no answer. */
void prefetch_forget(struct agent *agent, struct request_run *p);

/* It has its answer: keep what was leased. */
void prefetch_keep(struct request_run *p);

/*
 * Deposit what keys are about to need, and put what is to be asked for again into agent->again.
 * Returns the time until the next look.
 */
uint64_t prefetch_step(struct agent *agent);

/* Deposit all that is kept. What is on its way has left the list before it is released. */
void prefetch_drop(struct agent *agent);

#endif
