/*
 * lease_traits: what is known of LEASE without deciding. See traits.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "traits.h"

const struct traits traits_lease = {
	.name = "lease",
	.sets = SETS_CAPACITY | SETS_RATE | SETS_CREDIT,
	.is_shared = 1,
	.in_gate = 1,
};
