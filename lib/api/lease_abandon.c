/*
 * lease_abandon: end a claim without an answer of the backend.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "decide.h"
#include "export.h"

EXPORT int shmlimit_lease_abandon(struct shmlimit *l, int rule, const void *key, size_t key_len)
{
	static const struct lease_request leased = { 0 };
	struct request q = { .op = OP_ABANDON, .lease = &leased };

	return decide_call(l, rule, key, key_len, &q, NULL);
}

EXPORT int shmlimit_lease_abandon_at(struct shmlimit *l, int rule, const void *key, size_t key_len, uint64_t now_ns)
{
	static const struct lease_request leased = { 0 };
	struct request q = { .op = OP_ABANDON, .when = when_given(now_ns), .lease = &leased };

	return decide_call(l, rule, key, key_len, &q, NULL);
}
