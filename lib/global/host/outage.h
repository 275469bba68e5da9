/*
 * outage: the time in which on_failure decides because the host's agent has no answer of the
 * backend. All processes of the host share it. One of them reports that it has begun, and what
 * on_failure does; once a minute, how often it did; and when it has ended: whichever process meets
 * it first. So it is in the log of the server whose requests are denied, and not only in the
 * agent's. Without an agent each process reports what it meets itself.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef GLOBAL_OUTAGE_H
#define GLOBAL_OUTAGE_H

#include "handle.h"

/* on_failure decides a request. That is an outage if the agent knows that the backend fails. */
void outage_note(struct shmlimit_global *g);

/* The backend has answered. Cost: one load, unless there was an outage. */
void outage_over(struct shmlimit_global *g);

#endif
