/*
 * counters: what was decided, of a rule or of all; and what servers did without a decision.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>

#include "atomic.h"
#include "counter.h"
#include "export.h"
#include "rule.h"
#include "sized.h"

EXPORT int shmlimit_counters(struct shmlimit *l, int rule, struct shmlimit_counters *out)
{
	struct shmlimit_counters counters = { 0 };
	uint64_t sums[COUNTERS] = { 0 };

	if (l == NULL)
		return -EINVAL;
	if (rule != SHMLIMIT_ALL_RULES && (rule < 0 || !rule_is_listed(l, (uint32_t)rule) ||
	                                   !published_in_use(load_acquire(&l->rules[rule].published))))
		return -ESRCH;
	if (rule >= 0) {
		uint64_t before[COUNTERS];

		/*
		 * What was before is read first: should the id change hands now, sums are too
		 * large, not below 0.
		 */
		for (unsigned i = 0; i < COUNTERS; i++)
			before[i] = load_acquire(&l->rules[rule].counted_before[i]);
		counter_sum(l, (uint32_t)rule, sums);
		for (unsigned i = 0; i < COUNTERS; i++)
			sums[i] -= before[i];
	} else {
		for (uint32_t i = 0, rules = rule_count(l); i < rules; i++)
			counter_sum(l, i, sums);
	}
	counters.allowed = sums[COUNT_ALLOWED];
	counters.denied = sums[COUNT_DENIED];
	counters.shadow_denied = sums[COUNT_SHADOW_DENIED];
	counters.claims = sums[COUNT_CLAIMS];
	counters.reclaims = sums[COUNT_RECLAIMS];
	counters.evictions = sums[COUNT_EVICTIONS];
	counters.no_slot = sums[COUNT_NO_SLOT];
	counters.failed_cas = sums[COUNT_FAILED_CAS];
	return sized_out(out, &counters, sizeof(counters));
}

EXPORT int shmlimit_count_undecided(struct shmlimit *l, uint32_t refused, uint64_t n)
{
	if (l == NULL || refused > 1)
		return -EINVAL;
	if (l->read_only)
		return -EROFS;
	add_relaxed(&l->header->undecided[refused], n);
	return 0;
}
