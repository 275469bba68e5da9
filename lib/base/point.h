/*
 * point: where other processes may come in between. Nothing of it is in a release:
 * atomic.h and clock.h include it in builds with SHMLIMIT_POINTS only,
 * for tests/schedule, which has the two functions here. One is called before each
 * access to shared memory (see the end of atomic.h), and may let others run, or never
 * come back; the other is the clock: time passes when it says.
 *
 * WHY NOT at counters: they are added to atomically, and no decision depends on them.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_POINT_H
#define SHMLIMIT_LIB_POINT_H

#include <stdint.h>

enum point {
	POINT_LOAD,
	POINT_STORE,
	POINT_SWAP,      /* of a word */
	POINT_SWAP_SLOT, /* compare-and-swap of both */
	POINT_TICKET,
	POINT_CLOCK,
	POINT_PAUSE, /* back-off */
	POINT_LOCK,  /* the writers' lock is another's */
};

void point_reached(enum point what, const void *where);
uint64_t point_clock(int clock_id);

#endif
