/*
 * agent: the one process of a host that asks the backend for all others. It takes their requests
 * (mailbox.h), sends them over one connection per node (node.h), and puts the answers into the
 * keys' slots, as a process without an agent does (conclude.h). An answer that arrives after the
 * process's deadline is stored too, and serves the next request.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef GLOBAL_AGENT_H
#define GLOBAL_AGENT_H

#include "conclude.h"
#include "node.h"

/* Time between two turns of an idle agent, which renews its claim. */
#define AGENT_TURN_NS UINT64_C(200000000)

/* Time between two turns of a process that waits to become the agent. */
#define AGENT_WAIT_NS UINT64_C(50000000)

struct agent;

/* Returns NULL if out of memory. */
struct agent *agent_new(struct shmlimit_global *g);

/*
 * End it. The answers that are on their way are delivered, if they come soon. Other requests are
 * answered, so that the processes ask the backend themselves, or ask the next agent.
 */
void agent_free(struct agent *agent);

/*
 * Work for up to AGENT_TURN_NS, or wait for AGENT_WAIT_NS, until a request, an answer or a signal
 * comes. Returns whether this process is the agent.
 */
int agent_turn(struct agent *agent);

#endif
