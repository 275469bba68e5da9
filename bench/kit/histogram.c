/*
 * histogram: see histogram.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "histogram.h"

#define SUB_BITS 5
#define SUBS (1u << SUB_BITS)

/* Below 64 ns each has a bucket; above, the leading one and the five bits after it choose. */
static unsigned bucket_of(uint64_t ns)
{
	unsigned shift;

	if (ns < 2 * SUBS)
		return (unsigned)ns;
	shift = 63u - (unsigned)__builtin_clzll(ns) - SUB_BITS;
	return shift * SUBS + (unsigned)(ns >> shift);
}

static uint64_t bucket_end(unsigned bucket)
{
	unsigned shift = bucket < 2 * SUBS ? 0 : bucket / SUBS - 1;

	return ((uint64_t)(bucket - shift * SUBS + 1) << shift) - 1;
}

void histogram_add(struct histogram *h, uint64_t ns)
{
	unsigned bucket = bucket_of(ns);

	h->count[bucket < HISTOGRAM_BUCKETS ? bucket : HISTOGRAM_BUCKETS - 1]++;
	h->total++;
	if (ns > h->max_ns)
		h->max_ns = ns;
}

uint64_t histogram_quantile(const struct histogram *h, double share)
{
	uint64_t wanted = (uint64_t)(share * (double)h->total), seen = 0;

	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
		seen += h->count[i];
		if (seen > wanted)
			return bucket_end(i) < h->max_ns ? bucket_end(i) : h->max_ns;
	}
	return h->max_ns;
}
