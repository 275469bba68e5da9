/*
 * gcra_traits: what is known of GCRA without deciding. See traits.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "traits.h"

const struct traits traits_gcra = {
	.name = "gcra",
	.sets = SETS_CAPACITY | SETS_RATE | SETS_MAX_WAIT | SETS_NEXT_PAYS,
	.strict_halves = 1,
	.takes_limits = 1,
	.is_billed = 1,
	.in_gate = 1,
};
