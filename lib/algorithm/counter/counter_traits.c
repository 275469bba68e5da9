/*
 * counter_traits: what is known of COUNTER without deciding. See traits.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "traits.h"

const struct traits traits_counter = {
	.name = "counter",
	.sets = SETS_CAPACITY | SETS_PERIOD | SETS_ZONE,
	.range = "at most 2^48 and 36 years",
	.counts_capacity = 1,
	.takes_times = 1,
	.is_billed = 1,
};
