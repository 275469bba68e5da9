/*
 * via_agent: lease requests that go to the agent of this host instead of the backend.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef GLOBAL_VIA_AGENT_H
#define GLOBAL_VIA_AGENT_H

#include "conclude.h"

/* Is there an agent for this handle's backend? */
int via_agent_exists(const struct shmlimit_global *g);

/*
 * Post a request that this process has to make (LEASE_ASK). Returns whether it was posted; if not,
 * it has an error, or became one that waits (LEASE_WAIT).
 */
int via_agent_post(struct shmlimit_global *g, struct lease_request *request, struct receipt *receipt);

/*
 * Post those requests that this process has to make (LEASE_ASK) without waiting: on_failure decides
 * all n.
 */
void via_agent_at_once(struct shmlimit_global *g, struct lease_request *requests, size_t n);

/*
 * Lend the key, of which nothing is known here, its rule's credit, spend `cost` of it, and have the
 * agent debit the backend for it. Returns as shmlimit_lease_deposit(), or LEASE_ASK: nothing was
 * lent, since the rule gives no such credit, or there is no agent, no free cell, or no backend that
 * answers.
 */
int via_agent_lend(struct shmlimit_global *g, int rule, const void *key, size_t key_len, uint64_t cost,
                   struct shmlimit_result *r);

/*
 * Have the agent lease `want` tokens ahead, if there is one. Nothing waits for it, and it may be
 * lost.
 */
void via_agent_prefetch(struct shmlimit_global *g, int rule, const void *key, size_t key_len, uint64_t want);

/* Apply what mailbox_poll() returned for it. Without an answer the request stays what it was. */
void via_agent_conclude(struct shmlimit_global *g, struct lease_request *request, enum request_state state,
                        const struct request_answer *answer);

/*
 * Wait until until_ns for the answer to what was posted, and apply it. Without one the request is
 * withdrawn: it stays what it was, or, if the agent has asked the backend and will conclude it,
 * waits (LEASE_WAIT).
 */
void via_agent_fetch(struct shmlimit_global *g, struct lease_request *request, const struct receipt *receipt,
                     uint64_t until_ns);

/*
 * Post those requests that this process has to make (LEASE_ASK), and wait for the answers. A
 * request that could not be posted becomes one that waits (LEASE_WAIT).
 */
void via_agent(struct shmlimit_global *g, struct lease_request *requests, size_t n, uint64_t until_ns);

#endif
