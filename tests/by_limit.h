/*
 * by_limit.h: a decision by a limit that comes with the call, as one line.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BY_LIMIT_H
#define BY_LIMIT_H

#include "at.h"

static inline int by_limit(struct shmlimit *l, uint32_t verb, int rule, const void *key, size_t len, uint64_t cost,
                           const struct shmlimit_limit *limit, struct shmlimit_result *r)
{
	struct shmlimit_request q = { .rule = rule, .key = key, .key_len = len, .cost = cost, .limit = limit };

	return shmlimit_decide(l, verb, &q, r);
}

#endif
