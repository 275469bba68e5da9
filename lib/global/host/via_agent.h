/*
 * via_agent: asks that go to the agent of this host instead of the backend.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef GLOBAL_ASK_AGENT_H
#define GLOBAL_ASK_AGENT_H

#include "settle.h"

/* Is there an agent for this handle's backend? */
int ask_agent_lives(const struct shmlimit_global *g);

/*
 * Post an ask that this process has to make (LEASE_ASK). Returns whether it was posted; if not, it has an error, or
 * became one that waits (LEASE_WAIT).
 */
int ask_agent_post(struct shmlimit_global *g, struct ask *ask, struct receipt *receipt);

/* Post those asks that this process has to make (LEASE_ASK) without waiting: on_failure decides all n. */
void ask_agent_at_once(struct shmlimit_global *g, struct ask *asks, size_t n);

/*
 * Lend the key, of which nothing is known here, its rule's credit, spend `cost` of it, and have the agent debit the backend
 * for it. Returns as shmlimit_lease_deposit(), or LEASE_ASK: nothing was lent, since the rule gives no such credit, or there
 * is no agent, no free cell, or no backend that answers.
 */
int ask_agent_lend(struct shmlimit_global *g, int rule, const void *key, size_t key_len, uint64_t cost,
                   struct shmlimit_result *r);

/* Have the agent lease `want` tokens ahead, if there is one. Nothing waits for it, and it may be lost. */
void ask_agent_ahead(struct shmlimit_global *g, int rule, const void *key, size_t key_len, uint64_t want);

/* Apply what mailbox_wait() returned for it. Without an answer the ask stays what it was. */
void ask_agent_settle(struct shmlimit_global *g, struct ask *ask, enum request_state state,
                      const struct request_answer *answer);

/*
 * Post those asks that this process has to make (LEASE_ASK), and wait for the answers. An ask that could not be
 * posted becomes one that waits (LEASE_WAIT); one without an answer stays what it was.
 */
void ask_agent(struct shmlimit_global *g, struct ask *asks, size_t n, uint64_t until_ns);

#endif
