/*
 * header_fields: the header fields of an answer, written in place in the caller's buffer, without a
 * copy.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_GATE_HEADER_FIELDS_H
#define SHMLIMIT_GATE_HEADER_FIELDS_H

#include "gate_request.h"

/* Bytes for the values of fields that an answer has once, and for alignment. */
#define HEADER_FIELDS_REST 128

/* Add the fields of one limit's answer. */
void header_fields_add(struct view *view, struct gate_request *q, size_t i, int answer, const struct shmlimit_result *r,
                       struct shmlimit_gate_answer *out);

/*
 * Add the older X-RateLimit fields, which have no policy: those of the limit that denies, or that
 * has the fewest tokens left.
 */
void header_fields_add_x(struct gate_request *q, struct shmlimit_gate_answer *out);

#endif
