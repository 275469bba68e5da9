/*
 * charge: take tokens for what has happened already.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "decide.h"
#include "export.h"

EXPORT int shmlimit_charge(struct shmlimit *l, int rule, const void *key, size_t key_len, uint64_t tokens,
                           struct shmlimit_result *r)
{
	return decide(l, rule, key, key_len, tokens, 0, VERB_CHARGE, TIME_OWN, 0, r);
}

EXPORT int shmlimit_charge_at(struct shmlimit *l, int rule, const void *key, size_t key_len, uint64_t tokens,
                              uint64_t now_ns, struct shmlimit_result *r)
{
	return decide(l, rule, key, key_len, tokens, 0, VERB_CHARGE, TIME_GIVEN, now_ns, r);
}
