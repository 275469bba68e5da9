/*
 * throttle: redis-cell's CL.THROTTLE, for code that carries its limits along.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "decide.h"
#include "export.h"
#include "unnamed.h"

/* Whole seconds, rounded up: who waits so long has waited long enough. */
static int64_t seconds(uint64_t ns)
{
	return (int64_t)(ns / 1000000000u + (ns % 1000000000u != 0));
}

EXPORT int shmlimit_throttle(struct shmlimit *l, const void *key, size_t key_len, uint64_t capacity, uint64_t count,
                             uint64_t period_s, uint64_t quantity, int64_t reply[5])
{
	struct shmlimit_result r;
	int answer, rule;
	uint64_t now_ns;

	/* As a take has them, before a rule is made. */
	if (l == NULL || key == NULL)
		return -EINVAL;
	if (key_len - 1 >= SHMLIMIT_KEY_MAX)
		return -EMSGSIZE;
	if (l->read_only)
		return -EROFS;
	/* The rule is looked up while the clock's answer is on its way. */
	now_ns = clock_read(l->clock_id);
	rule = unnamed_rule(l, capacity, count, period_s);
	if (rule < 0)
		return rule;
	if (quantity == 0)
		answer = shmlimit_peek_at(l, rule, key, key_len, 0, now_ns, &r);
	else
		answer = decide(l, rule, key, key_len, quantity, 0, VERB_TAKE, TIME_READ, now_ns, &r);
	if (answer < 0 || reply == NULL)
		return answer;
	reply[0] = answer;
	reply[1] = (int64_t)r.limit;
	reply[2] = (int64_t)r.remaining;
	reply[3] = answer == SHMLIMIT_ALLOWED || r.retry_after_ns == UINT64_MAX ? -1 : seconds(r.retry_after_ns);
	reply[4] = seconds(r.reset_after_ns);
	return answer;
}
