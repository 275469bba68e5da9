/*
 * lease_counters: what was leased, and what became of it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>

#include "counter.h"
#include "export.h"
#include "sized.h"

EXPORT int shmlimit_lease_counters(struct shmlimit *l, struct shmlimit_lease_counters *out)
{
	struct shmlimit_lease_counters counters = { 0 };
	uint64_t sums[LEASE_COUNTERS] = { 0 };

	if (l == NULL)
		return -EINVAL;
	for (uint32_t block = 0; block < l->cpus + l->stripes; block++) {
		const struct layout_block *head = (const void *)counter_line(l, block, -1);

		for (unsigned i = 0; i < LEASE_COUNTERS; i++)
			sums[i] += load_relaxed(&head->leases[i]);
	}
	counters.leases = sums[LEASE_LEASES];
	counters.leased = sums[LEASE_LEASED];
	counters.spent = sums[LEASE_SPENT];
	counters.expired = sums[LEASE_EXPIRED];
	counters.denied = sums[LEASE_KNOWN_DENIALS];
	counters.backend_errors = sums[LEASE_BACKEND_ERRORS];
	counters.breaker_openings = sums[LEASE_BREAKER_OPENINGS];
	return sized_out(out, &counters, sizeof(counters));
}
