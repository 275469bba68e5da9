/*
 * reserve, acquire: take tokens now or in advance, and wait for them.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "decide.h"
#include "export.h"
#include "segment.h"

EXPORT int shmlimit_reserve(struct shmlimit *l, int rule, const void *key, size_t key_len, uint64_t cost,
                            uint64_t max_wait_ns, struct shmlimit_result *r)
{
	return decide(l, rule, key, key_len, cost, max_wait_ns, VERB_RESERVE, TIME_OWN, 0, r);
}

EXPORT int shmlimit_reserve_at(struct shmlimit *l, int rule, const void *key, size_t key_len, uint64_t cost,
                               uint64_t max_wait_ns, uint64_t now_ns, struct shmlimit_result *r)
{
	return decide(l, rule, key, key_len, cost, max_wait_ns, VERB_RESERVE, TIME_GIVEN, now_ns, r);
}

EXPORT int shmlimit_acquire(struct shmlimit *l, int rule, const void *key, size_t key_len, uint64_t cost,
                            uint64_t max_wait_ns, struct shmlimit_result *r)
{
	struct shmlimit_result result;
	uint64_t now_ns;
	int answer;

	if (l == NULL)
		return -EINVAL;
	/* One clock read for both: the end of the wait is a point in time, whenever the sleep begins. */
	now_ns = clock_read(l->clock_id);
	answer = shmlimit_reserve_at(l, rule, key, key_len, cost, max_wait_ns, now_ns, &result);
	if (answer < 0)
		return answer;
	if (answer == SHMLIMIT_ALLOWED && result.wait_ns != 0)
		segment_sleep_until(now_ns + result.wait_ns);
	if (r != NULL)
		*r = result;
	return answer;
}
