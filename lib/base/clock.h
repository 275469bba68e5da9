/*
 * clock: the only place that reads the time. Both clocks are answered by the
 * vDSO, without a system call.
 *
 * CLOCK_MONOTONIC never steps and stands still while the machine is suspended:
 * funnels do not refill during suspend.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_CLOCK_H
#define SHMLIMIT_LIB_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t clock_read(int clock_id)
{
	struct timespec now;

	/*
	 * Cannot fail: the ids are those of shmlimit_options.clock, and both exist since Linux
	 * 2.6.32.
	 */
	clock_gettime(clock_id, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The real-time clock that keeps step with it: a coarse one goes on when the other does. */
static inline int clock_wall(int clock_id)
{
	return clock_id == CLOCK_MONOTONIC_COARSE ? CLOCK_REALTIME_COARSE : CLOCK_REALTIME;
}

#ifdef SHMLIMIT_POINTS
#include "point.h"
#define clock_read(clock_id) point_clock(clock_id)
#endif

#endif
