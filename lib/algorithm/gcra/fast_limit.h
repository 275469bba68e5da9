/*
 * fast_limit: the first try of a request by a limit that comes with the call.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_FAST_LIMIT_H
#define SHMLIMIT_LIB_FAST_LIMIT_H

#include "fast_gcra.h"
#include "limit_make.h"

/* In registers for a limit of whole ticks: limit_make() writes it to memory. */
FAST int limit_read(const struct shmlimit_limit *limit, struct gcra *g)
{
	struct gcra made;
	int error;

	if (__builtin_expect(limit->struct_size == sizeof(*limit) && limit->flags == 0, 1) &&
	    __builtin_expect(gcra_make_whole(limit->capacity, limit->refill, limit->period_ns, limit->max_wait_ns, g),
	                     1))
		return 0;
	error = limit_make(limit, &made);
	*g = made;
	return error;
}

FAST int fast_limit(const struct shmlimit *l, const struct request *asked, const struct shmlimit_limit *limit,
                    struct shmlimit_result *r)
{
	struct request q, copy;
	struct gcra g, made;
	uint32_t failed = 0;
	int answer = decide_check(l, asked);

	if (answer == 0)
		answer = limit_read(limit, &g);
	if (__builtin_expect(answer != 0, 0))
		return answer;
	q = decide_complete(l, asked);
	answer = FIRST_NOT;
	if ((asked->op == OP_TAKE || asked->op == OP_PEEK) && __builtin_expect(!g.is_places, 1))
		answer = fast_gcra(l, &q, &g, &failed, r);
	if (__builtin_expect(answer != FIRST_NOT, 1))
		return answer;
	made = g;
	copy = request_copy(&q);
	copy.limit = &made;
	return decide_rest(l, &copy, failed, r);
}

#endif
