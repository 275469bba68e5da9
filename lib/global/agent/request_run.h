/*
 * request_run: a request's way through the agent: the question for the backend, to the node that
 * has the key, and what becomes of the answer.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef GLOBAL_REQUEST_RUN_H
#define GLOBAL_REQUEST_RUN_H

#include "agent_state.h"

/* Send what the request asks for to its node, or answer it at once. */
void request_run_begin(struct agent *agent, struct request_run *p);

/* A node hands the question back, with its answer or an error. */
void request_run_end(struct agent *agent, struct node *node, struct request_run *p);

#endif
