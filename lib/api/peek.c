/*
 * peek: what a take would answer.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "decide.h"
#include "export.h"

EXPORT int shmlimit_peek(struct shmlimit *l, int rule, const void *key, size_t key_len, uint64_t cost,
                       struct shmlimit_result *r)
{
	return decide(l, rule, key, key_len, cost, 0, VERB_PEEK, TIME_OWN, 0, r);
}

EXPORT int shmlimit_peek_at(struct shmlimit *l, int rule, const void *key, size_t key_len, uint64_t cost,
                          uint64_t now_ns, struct shmlimit_result *r)
{
	return decide(l, rule, key, key_len, cost, 0, VERB_PEEK, TIME_GIVEN, now_ns, r);
}
