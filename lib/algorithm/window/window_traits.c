/*
 * window_traits: what is known of WINDOW without deciding. See traits.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "traits.h"

const struct traits traits_window = {
	.name = "window",
	.sets = SETS_RATE | SETS_MAX_WAIT | SETS_COUNT_REFUSED,
	.range = "times of less than nine years together",
	.is_window = 1,
	.counts_capacity = 1,
	.in_gate = 1,
};
