/*
 * hold_traits: what is known of HOLD without deciding. See traits.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "traits.h"

const struct traits traits_hold = {
	.name = "hold",
	.sets = SETS_CAPACITY | SETS_PERIOD | SETS_CUT_OFF | SETS_LAW,
	.needs = "capacity and period, or rate",
	.range = "1ns to 208d",
	.is_places = 1,
	.counts_capacity = 1,
};
