/*
 * acquire: reserve tokens, and wait for them.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "clock.h"
#include "export.h"
#include "limiter.h"
#include "segment.h"
#include "shmlimit.h"

/*
 * WHY NOT one clock read for both, by shmlimit_reserve_at(): a decision by a given time doubts a
 * word that is later, and not the time. If it was stopped before, it would refill what had refilled
 * already.
 */
static int wait_for_tokens(const struct shmlimit *l, int answer, uint64_t max_wait_ns, struct shmlimit_result *result,
                           struct shmlimit_result *r)
{
	if (answer < 0)
		return answer;
	/* INVARIANT I7: no bytes in the segment make the wait longer than the caller allows. */
	if (result->wait_ns > max_wait_ns)
		result->wait_ns = max_wait_ns;
	if (answer == SHMLIMIT_ALLOWED && result->wait_ns != 0)
		segment_sleep_until(clock_read(l->clock_id) + result->wait_ns);
	if (r != NULL)
		*r = *result;
	return answer;
}

EXPORT int shmlimit_acquire(struct shmlimit *l, int rule, const void *key, size_t key_len, uint64_t cost,
                            uint64_t max_wait_ns, struct shmlimit_result *r)
{
	struct shmlimit_result result;
	int answer = shmlimit_reserve(l, rule, key, key_len, cost, max_wait_ns, &result);

	return wait_for_tokens(l, answer, max_wait_ns, &result, r);
}

EXPORT int shmlimit_acquire_limit(struct shmlimit *l, int rule, const void *key, size_t key_len, uint64_t cost,
                                  const struct shmlimit_limit *limit, struct shmlimit_result *r)
{
	struct shmlimit_result result;
	int answer = shmlimit_reserve_limit(l, rule, key, key_len, cost, limit, &result);

	return answer < 0 ? answer : wait_for_tokens(l, answer, limit->max_wait_ns, &result, r);
}
