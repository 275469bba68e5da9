/*
 * answer: the end of a request: the answer to the process that made it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef GLOBAL_ANSWER_H
#define GLOBAL_ANSWER_H

#include "agent_state.h"

/* Answer the process, if it waits, and count the answer. */
void answer_send(struct agent *agent, struct request_run *p, enum request_state state);

/* No answer is due: its place in the agent is free. */
void answer_release(struct agent *agent, struct request_run *p);

/* Answer it, and release it. */
void answer_end(struct agent *agent, struct request_run *p, enum request_state state);

#endif
