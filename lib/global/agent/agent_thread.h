/*
 * agent_thread: the agent of a host in a thread of a process that uses a handle. It takes part in
 * the same contest as any other agent (mailbox_claim()), and is the agent from the moment that it
 * wins until the handle is closed, the process ends, or the claim is lost because the process was
 * stopped.
 *
 * There is no thread that waits: one that finds an agent ends. A process that needs the backend
 * while the host has no agent starts its thread again. So a host has one such thread, however many
 * processes it has; the first process that needs the backend after the agent was killed replaces
 * it, when the claim of the killed one has ended.
 *
 * Fork: a child has no thread, and its parent's stays the agent. The child starts one of its own
 * when it has to. Signals: all are blocked in the thread.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef GLOBAL_AGENT_THREAD_H
#define GLOBAL_AGENT_THREAD_H

#include "handle.h"

/*
 * `g` is a public handle. If its options say so, and the segment has no agent, start a thread that
 * tries to be it. Returns 0, or -errno: there is no thread.
 */
int agent_thread_begin(struct shmlimit_global *g);

/* End the thread, if this process has one, and wait until it has ended. */
void agent_thread_end(struct shmlimit_global *g);

#endif
