/*
 * lease_abandon: end a claim without an answer of the engine.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "decide.h"
#include "export.h"

EXPORT int shmlimit_lease_abandon(struct shmlimit *l, int rule, const void *key, size_t key_len)
{
	static const struct lease_request leased = { 0 };

	return decide_leased(l, rule, key, key_len, 0, VERB_ABANDON, &leased, TIME_OWN, 0, NULL);
}

EXPORT int shmlimit_lease_abandon_at(struct shmlimit *l, int rule, const void *key, size_t key_len, uint64_t now_ns)
{
	static const struct lease_request leased = { 0 };

	return decide_leased(l, rule, key, key_len, 0, VERB_ABANDON, &leased, TIME_GIVEN, now_ns, NULL);
}
