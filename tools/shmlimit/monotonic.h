/*
 * monotonic.h: how long something took, by a clock that is never set.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef MONOTONIC_H
#define MONOTONIC_H

#include <stdint.h>
#include <time.h>

static inline uint64_t monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

#endif
