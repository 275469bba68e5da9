/*
 * throttle: redis-cell's CL.THROTTLE, for code that carries its limits along.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "export.h"
#include "fast.h"
#include "unnamed.h"

/* Whole seconds, rounded up: a client that waits as long as this has waited long enough. */
static int64_t seconds(uint64_t ns)
{
	return (int64_t)(ns / 1000000000u + (ns % 1000000000u != 0));
}

EXPORT int shmlimit_throttle(struct shmlimit *l, const void *key, size_t key_len, uint64_t capacity, uint64_t count,
                             uint64_t period_s, uint64_t quantity, int64_t reply[5])
{
	struct shmlimit_result r;
	struct request q = request_make(OP_TAKE, 0, key_bytes(key, key_len), quantity, when_clock());
	int answer, rule;

	/* As a take has them, before a rule is made. */
	answer = decide_check(l, &q);
	if (answer != 0)
		return answer;
	/* The rule is looked up while the clock's answer is on its way. */
	q.when = when_read(l);
	rule = unnamed_rule(l, capacity, count, period_s);
	if (rule < 0)
		return rule;
	q.rule = (uint32_t)rule;
	if (quantity == 0)
		q.op = OP_PEEK;
	answer = fast_call(l, &q, &r);
	if (answer < 0 || reply == NULL)
		return answer;
	reply[0] = answer;
	reply[1] = (int64_t)r.limit;
	reply[2] = (int64_t)r.remaining;
	reply[3] = answer == SHMLIMIT_ALLOWED || r.retry_after_ns == UINT64_MAX ? -1 : seconds(r.retry_after_ns);
	reply[4] = seconds(r.reset_after_ns);
	return answer;
}
