/*
 * toy_traits: what is known of the toy algorithm without deciding. See traits.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "traits.h"

const struct traits traits_toy = {
	.name = "toy",
	.sets = SETS_RATE,
	.range = "a capacity of at most 2^32 - 1 and a period from 1ms to a year",
	.counts_capacity = 1,
	.in_gate = 1,
};
