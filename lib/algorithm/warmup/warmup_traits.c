/*
 * warmup_traits: what is known of WARMUP without deciding. See traits.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "traits.h"

const struct traits traits_warmup = {
	.name = "warmup",
	.sets = SETS_RATE | SETS_MAX_WAIT | SETS_WARMUP,
	.needs = "rate and warmup",
	.range = "a warmup of a token or more, of a fiftieth of the cold factor or more, and times of less than "
		 "decades",
	.is_billed = 1,
};
