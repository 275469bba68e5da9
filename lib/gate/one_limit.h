/*
 * one_limit: one limit of a request, and what a request asks of it alone.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_GATE_ONE_LIMIT_H
#define SHMLIMIT_GATE_ONE_LIMIT_H

#include "gate_request.h"

/* What most requests do not need must not cost them registers. */
#define RARE __attribute__((noinline, cold))

/* The rule's id is what was found last. */
static inline struct shmlimit_request one_limit_request(const struct view *view, const struct gate_request *q, size_t i)
{
	return (struct shmlimit_request){
		.rule = __atomic_load_n(&view->ids[q->limits[i]->rule], __ATOMIC_RELAXED),
		.key = q->keys[i].bytes,
		.key_len = q->keys[i].length,
		.cost = q->costs[i],
		.limit = q->has_limit[i] ? &q->own_limits[i] : NULL,
	};
}

/* A request that brings a limit where none is wanted, or none where one is. */
void one_limit_report(struct segment_ref *ref, const struct gate_request *q, size_t i, int error);

/* A request whose limit has share=, and its rule no places, or no limit before it has. */
void one_limit_report_share(struct segment_ref *ref, const struct gate_request *q, size_t i, int error);

/* Takes nothing. A missing rule allows: the first ban creates it. */
int one_limit_peek(struct segment_ref *ref, struct view *view, const struct gate_request *q, size_t which,
                   struct shmlimit_result *r);

/* Take in advance: the request has its turn after r->wait_ns, which is max_wait_ns at most. */
RARE int one_limit_reserve(struct segment_ref *ref, struct view *view, const struct gate_request *q, size_t which,
                           uint64_t max_wait_ns, struct shmlimit_result *r);

/*
 * Give back tokens of a request that does not go on; a rule in a dry run that would have denied
 * gave none.
 */
RARE void one_limit_give_back(const struct view *view, const struct gate_request *q, size_t which,
                              const struct shmlimit_result *r);

#endif
