/*
 * versions: what a rule is changed to: of one capacity, with rates and ticks that
 * differ, so that a key has as many tokens under each.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_SCHEDULE_VERSIONS_H
#define TESTS_SCHEDULE_VERSIONS_H

#include "stage.h"

static inline struct shmlimit_rule version(uint64_t capacity, unsigned n)
{
	static const uint64_t period_ns[5] = { SECOND, 3600 * SECOND, 7 * SECOND, DAY_NS, SECOND / 1000 };

	return (struct shmlimit_rule){ .capacity = capacity, .refill = 1 + n % 5, .period_ns = period_ns[n % 5] };
}

#endif
