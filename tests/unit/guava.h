/*
 * guava: SmoothWarmingUp of Guava's RateLimiter, in floating point, from its description.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_UNIT_GUAVA_H
#define TESTS_UNIT_GUAVA_H

#include <math.h>

#include "shmlimit.h"

struct oracle {
	double stable, cold, threshold, max, slope, cool_down; /* seconds, permits */
	double stored, next_free;
};

__attribute__((unused)) static struct oracle oracle_of(const struct shmlimit_rule *rule)
{
	double factor = rule->cold_factor_milli / 1e3, warmup = (double)rule->warmup_ns / 1e9;
	struct oracle o = { .stable = (double)rule->period_ns / 1e9 / (double)rule->refill };

	o.cold = o.stable * factor;
	o.threshold = 0.5 * warmup / o.stable;
	o.max = o.threshold + 2.0 * warmup / (o.stable + o.cold);
	o.slope = (o.cold - o.stable) / (o.max - o.threshold);
	o.cool_down = warmup / o.max;
	o.stored = o.max;
	return o;
}

__attribute__((unused)) static double oracle_interval(const struct oracle *o, double above)
{
	return o->stable + above * o->slope;
}

/* Store what came while there were no requests. */
__attribute__((unused)) static void oracle_idle(struct oracle *o, double now)
{
	if (now <= o->next_free)
		return;
	o->stored = fmin(o->max, o->stored + (now - o->next_free) / o->cool_down);
	o->next_free = now;
}

/* Returns the wait, seconds. */
__attribute__((unused)) static double oracle_acquire(struct oracle *o, double now, double permits)
{
	double wait, stored, above, ramp = 0, cost = 0;

	oracle_idle(o, now);
	wait = o->next_free - now;
	stored = fmin(permits, o->stored);
	above = o->stored - o->threshold;
	if (above > 0) {
		ramp = fmin(above, stored);
		cost = ramp * (oracle_interval(o, above) + oracle_interval(o, above - ramp)) / 2;
	}
	o->next_free += cost + (permits - ramp) * o->stable;
	o->stored -= stored;
	return wait;
}

/* setRate(), also with another warm-up and cold factor: the same part of the store, and the same next free time. */
__attribute__((unused)) static void oracle_change(struct oracle *o, double now, const struct shmlimit_rule *rule)
{
	struct oracle to = oracle_of(rule);

	oracle_idle(o, now);
	to.stored = o->stored * to.max / o->max;
	to.next_free = o->next_free;
	*o = to;
}

#endif
