/*
 * counter: see counter.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "counter.h"

void counter_sum(const struct shmlimit *l, uint32_t rule, uint64_t sums[COUNTERS])
{
	for (uint32_t block = 0; block < l->cpus + l->stripes; block++)
		for (unsigned i = 0; i < COUNTERS; i++)
			sums[i] += load_relaxed(counter_line(l, block, rule) + i);
}
