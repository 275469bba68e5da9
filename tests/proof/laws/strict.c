/*
 * Laws of lib/base/strict.h: what a strict limit becomes. A funnel admits in any stretch of time at most its capacity
 * and what comes back in it (I1). In one period of the limit, ends included, that is at most the limit.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "../../../lib/base/strict.h"
#include "law.h"

static struct shmlimit_rule strict(uint64_t count, uint64_t period_ns)
{
	struct shmlimit_rule rule = { .struct_size = sizeof(rule) };

	assume(count >= 1 && period_ns >= 1 && period_ns < UINT64_MAX - STRICT_MORE_NS);
	strict_rule(count, period_ns, &rule);
	return rule;
}

/* a strict limit above 1 has all of its count as burst and refill of one period, and some of each */
int law_strict(uint64_t count, uint64_t period_ns)
{
	struct shmlimit_rule rule = strict(count, period_ns);

	assume(count > 1);
	return rule.capacity + rule.refill == count && rule.capacity >= rule.refill && rule.refill >= 1 &&
	       rule.period_ns == period_ns;
}

/* ... and the burst is not the larger half */
int false_strict(uint64_t count, uint64_t period_ns)
{
	struct shmlimit_rule rule = strict(count, period_ns);

	assume(count > 1);
	return rule.capacity == rule.refill;
}

/* a strict limit of 1 has one token, and none comes back before the period is over: a millisecond later at most */
int law_strict_one(uint64_t period_ns)
{
	struct shmlimit_rule rule = strict(1, period_ns);

	return rule.capacity == 1 && rule.refill == 1 && rule.period_ns > period_ns &&
	       rule.period_ns - period_ns <= STRICT_MORE_NS;
}

/* ... and by no more than a nanosecond */
int false_strict_one(uint64_t period_ns)
{
	struct shmlimit_rule rule = strict(1, period_ns);

	return rule.period_ns - period_ns == 1;
}
