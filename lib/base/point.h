/*
 * point: where other processes may come in between. Nothing of it is in a release:
 * atomic.h includes it, behind its functions, in builds with SHMLIMIT_POINTS only,
 * for tests/schedule, which has the two functions here. One is called before each
 * access to shared memory, and may let others run, or never come back; the other is
 * the clock: time passes when it says.
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

/* A macro is not expanded within itself: each of these is followed by the function of its name. */
#define load_relaxed(p) (point_reached(POINT_LOAD, p), load_relaxed(p))
#define load_relaxed32(p) (point_reached(POINT_LOAD, p), load_relaxed32(p))
#define load_acquire(p) (point_reached(POINT_LOAD, p), load_acquire(p))
#define load_word(p) (point_reached(POINT_LOAD, p), load_word(p))
#define load_again(p) (point_reached(POINT_LOAD, p), load_again(p))
#define load_is_older(now, since, after) (point_reached(POINT_LOAD, since), load_is_older(now, since, after))
#define publish(p, value) (point_reached(POINT_SWAP, p), publish(p, value))
#define store_relaxed(p, value) (point_reached(POINT_STORE, p), store_relaxed(p, value))
#define set_bits(p, bits) (point_reached(POINT_STORE, p), set_bits(p, bits))
#define clear_bits(p, bits) (point_reached(POINT_STORE, p), clear_bits(p, bits))
#define word_cas(p, ...) (point_reached(POINT_SWAP, p), word_cas(p, __VA_ARGS__))
#define pair_cas(p, ...) (point_reached(POINT_SWAP, p), pair_cas(p, __VA_ARGS__))
#define take_ticket(p) (point_reached(POINT_TICKET, p), take_ticket(p))
#define slot_cas(slot, ...) (point_reached(POINT_SWAP_SLOT, slot), slot_cas(slot, __VA_ARGS__))
#define cell_cas(cell, ...) (point_reached(POINT_SWAP, cell), cell_cas(cell, __VA_ARGS__))
#define ck_backoff_eb(backoff) ((void)(backoff), point_reached(POINT_PAUSE, NULL))

#endif
