/*
 * count_run: an addition to a count that all hosts share, on its way through the agent.
 *
 * The backend has the count. The key's slot on this host has what the backend last answered, until
 * the count ends: no more than the backend has. So a process denies by itself what the slot shows
 * to be beyond the bound, and each addition is one question for the backend.
 *
 * INVARIANT No more is allowed than the bound: the script reads and adds in one step on the server,
 * and a process allows only what such a step has added. (With LOCAL, on_failure adds to the slot;
 * the next answer replaces it.)
 *
 * INVARIANT An addition counts once, however many agents ask for it. The backend keeps, beside the
 * count, the numbers of those of this host that an agent may not have delivered yet, with what was
 * added. An agent that is killed before it delivers is replaced by one that asks under the same
 * number.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef GLOBAL_COUNT_RUN_H
#define GLOBAL_COUNT_RUN_H

#include "agent_state.h"

/* Make the question for the backend. The caller compares set_us. */
enum lease_request_state count_run_prepare(struct agent *a, struct request_run *p);

/* Write the backend's answer to the slot, and to the result. */
enum lease_request_state count_run_conclude(struct shmlimit_global *g, struct request_run *p);

#endif
