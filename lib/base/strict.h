/*
 * strict: the funnel that admits at most `count` in any period. Pure.
 *
 * A funnel admits in any stretch of time at most its capacity and what comes back in it (I1). Here
 * that is half of the count each, in any one period, ends included. Where the count is 1 nothing
 * could come back, so one token comes back in a little more than the period: in a millisecond,
 * where the period is whole milliseconds, since a rule's numbers must be round enough to be counted
 * exactly.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_STRICT_H
#define SHMLIMIT_LIB_STRICT_H

#include "shmlimit.h"

#define STRICT_MORE_NS UINT64_C(1000000)

static inline void strict_rule(uint64_t count, uint64_t period_ns, struct shmlimit_rule *rule)
{
	rule->capacity = count - count / 2;
	rule->refill = count / 2;
	rule->period_ns = period_ns;
	if (count > 1)
		return;
	rule->refill = 1;
	rule->period_ns += period_ns >= 1000 * STRICT_MORE_NS && period_ns % STRICT_MORE_NS == 0 ? STRICT_MORE_NS : 1;
}

#endif
