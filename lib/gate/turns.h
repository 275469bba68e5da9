/*
 * turns: limits with delay=, for which requests wait.
 *
 * A request that is too early waits in the limit's line (see line.h), and takes its turn when that
 * is SOON: by then no other is ahead, or there is room for all that are. A turn that was taken is
 * never given back, since others may have taken theirs after it: a client that goes in these last
 * milliseconds leaves its turn unused. All that waits longer has taken nothing, and when it goes,
 * those behind it move up.
 *
 * WHY in advance: an event loop is late by a millisecond or two, which a limit of 1000/s could
 * never make up for.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_GATE_TURNS_H
#define SHMLIMIT_GATE_TURNS_H

#include "gate_request.h"

/*
 * Wait for the limits with delay=, or for none. WHY before the others are asked: what they took
 * would be missing to other requests until it is given back.
 */
int turns_line_up(struct segment_ref *ref, struct view *view, struct gate_request *q, struct shmlimit_gate_answer *out);

/*
 * Do all limits with delay= give the request its turn? All of them do, or none. Returns
 * SHMLIMIT_ALLOWED; MULTI_TAKE_PENDING, after q->take.poll_ns it is to ask again; SHMLIMIT_DENIED:
 * it has waited for twice as long as it may, since its tokens were taken otherwise; or an error.
 */
int turns_take(struct segment_ref *ref, struct view *view, struct gate_request *q, struct shmlimit_gate_answer *out);

/* The request waits no more. */
void turns_leave(const struct view *view, struct gate_request *q);

#endif
