/*
 * take: take tokens if they are there.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "decide.h"
#include "export.h"

EXPORT int shmlimit_take(struct shmlimit *l, int rule, const void *key, size_t key_len, uint64_t cost,
                       struct shmlimit_result *r)
{
	if (cost == 0)
		return shmlimit_peek(l, rule, key, key_len, cost, r);
	/* Twice: without a result all stays in registers, which is 1.5 ns less. */
	if (r == NULL)
		return decide(l, rule, key, key_len, cost, 0, VERB_TAKE, TIME_OWN, 0, NULL);
	return decide(l, rule, key, key_len, cost, 0, VERB_TAKE, TIME_OWN, 0, r);
}

EXPORT int shmlimit_take_at(struct shmlimit *l, int rule, const void *key, size_t key_len, uint64_t cost,
                          uint64_t now_ns, struct shmlimit_result *r)
{
	if (cost == 0)
		return shmlimit_peek_at(l, rule, key, key_len, cost, now_ns, r);
	return decide(l, rule, key, key_len, cost, 0, VERB_TAKE, TIME_GIVEN, now_ns, r);
}
