/*
 * fast: the copies for calls that have none of their own. See fast.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "fast.h"

int fast_take(const struct shmlimit *l, const struct request *request, struct shmlimit_result *r)
{
	struct request q = request_as(request, OP_TAKE);

	return fast_hashed(l, &q, request, NULL, r);
}

int fast_any(const struct shmlimit *l, const struct request *request, struct shmlimit_result *r)
{
	struct request q = request_copy(request);

	q.undo = NULL; /* a take's */
	return fast_hashed(l, &q, request, NULL, r);
}
