/*
 * histogram: durations, to 3 % of each, from a nanosecond to an hour. In
 * buckets of 32 a doubling, as HdrHistogram has it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BENCH_KIT_HISTOGRAM_H
#define BENCH_KIT_HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_BUCKETS 1280

struct histogram {
	uint64_t count[HISTOGRAM_BUCKETS];
	uint64_t total, max_ns;
};

void histogram_add(struct histogram *h, uint64_t ns);

/* The duration that a share of them, 0 to 1, does not exceed: the upper end of its bucket. */
uint64_t histogram_quantile(const struct histogram *h, double share);

#endif
