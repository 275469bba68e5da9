/*
 * refusal: what a limit that denies a request says, counts and sets.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_GATE_REFUSAL_H
#define SHMLIMIT_GATE_REFUSAL_H

#include "gate_request.h"

static inline void refusal_note_remaining(struct gate_request *q, const struct shmlimit_result *r)
{
	if (r->remaining < q->least)
		q->least = r->remaining;
}

/* The request is denied by this limit, as `r` says: it counts that, and writes the answer. */
void refusal_make(struct segment_ref *ref, struct view *view, struct gate_request *q, size_t which,
                  struct shmlimit_result *r, struct shmlimit_gate_answer *out);

/* A limit in a dry run would have denied the request: it is at its limit. */
static inline void refusal_dry(struct gate_request *q, size_t which)
{
	q->dry_denied = 1;
	q->by = q->key_index[which];
}

/* It would have made it wait. */
void refusal_dry_delay(struct gate_request *q, size_t which);

#endif
