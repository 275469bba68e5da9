/*
 * auto_law: how a limit that finds its number moves it: the laws, as they are published. Pure.
 *
 * A window is a stretch of time in which work was measured, from enter to leave. At its end the law
 * says the next number, from the last one, from the time that the work of the window took on
 * average, and from the base: the time that work takes where nothing waits, as far as is known.
 *
 * The source: Netflix, concurrency-limits 0.5, the classes VegasLimit, Gradient2Limit, AIMDLimit
 * and ExpAvgMeasurement (github.com/Netflix/concurrency-limits). tests/unit/auto_law.c has the
 * tables of their tests. Vegas is: Brakmo and Peterson, TCP Vegas: End to End Congestion Avoidance
 * on a Global Internet, 1995.
 *
 * What differs from there:
 *  - AIMD's time-out is three times the base. There it is a number that a person must know.
 *  - The base of Vegas and AIMD is measured again every AUTO_LAW_PROBE windows, or AUTO_LAW_PROBE_SOON
 *    where work takes twice as long, under a quarter of the number for two windows. There it becomes the time of any sample, so
 *    under lasting overload the base, and the number with it, drift upwards.
 *  - A request that is denied says that the number was reached, as half of it in use does.
 *
 * Numbers are in 1024ths, times in units of 1024 ns.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_AUTO_LAW_H
#define SHMLIMIT_LIB_AUTO_LAW_H

#include <stdint.h>

#define AUTO_LAW_ONE 1024u
#define AUTO_LAW_UNIT_SHIFT 10
#define AUTO_LAW_BASE_MAX (((uint64_t)1 << 31) - 1)
#define AUTO_LAW_PROBE 256u /* a power of two */
#define AUTO_LAW_PROBE_SOON 32u
#define AUTO_LAW_PROBE_FIRST 16u /* soon: a key may begin under overload */
#define AUTO_LAW_WARM 10u        /* windows whose plain average Gradient2 begins with */

enum auto_law_probe {
	AUTO_LAW_STEADY,
	AUTO_LAW_DRAINS,   /* what waits is to be gone by the end of this window */
	AUTO_LAW_MEASURES, /* then the time of this one is the base */
};

/* What a key has. */
struct auto_law {
	uint64_t number; /* 1 to 65,536, in 1024ths */
	uint64_t base;   /* 0: not known yet; Gradient2: the average over a long time */
	uint32_t epoch;  /* which window this is */
	uint32_t warm;   /* Gradient2: windows so far, to AUTO_LAW_WARM */
	enum auto_law_probe probe;
};

/* What was measured. */
struct auto_window {
	uint64_t took;   /* on average, 1 or more */
	uint64_t in_use; /* places, on average, in 1024ths */
	int dropped;     /* some work failed by overload */
	int denied;      /* some request was denied by the number */
};

/* The number alone, without bounds, where the base is known. */
uint64_t auto_law_vegas(uint64_t number, uint64_t base, const struct auto_window *w);
uint64_t auto_law_gradient2(uint64_t number, uint64_t base, const struct auto_window *w);
uint64_t auto_law_aimd(uint64_t number, uint64_t base, const struct auto_window *w);

/* Gradient2's base with one window more, of which there were `warm`. */
uint64_t auto_law_average(uint64_t base, uint32_t warm, uint64_t took);

/*
 * After a window, by SHMLIMIT_LAW_VEGAS ... and within the bounds, which are numbers of places. A
 * law of no such number is taken for Vegas. Total: whatever is in *a, the number is within the
 * bounds.
 */
struct auto_law auto_law_next(unsigned law, struct auto_law a, const struct auto_window *w, uint64_t least,
                              uint64_t most);

/* How many requests wait, of those in a number of places, in 1024ths: what Vegas believes. */
static inline uint64_t auto_law_queue(uint64_t number, uint64_t base, uint64_t took)
{
	return took > base && base != 0 ? number * (took - base) / took : 0;
}

#endif
