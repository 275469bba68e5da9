/*
 * repeats: which texts were reported lately. Each handle on a Redis server reports what is wrong with it, so a process with
 * many threads would report the same text as many times.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_GATE_REPEATS_H
#define SHMLIMIT_GATE_REPEATS_H

#include <stdint.h>

#define REPEATS_KEPT 16

/* Zeros: nothing was reported. A process that forks goes on with it: there is no lock to inherit. */
struct repeats {
	uint64_t reported[REPEATS_KEPT]; /* a text's hash and when, see repeats.c */
};

/* Was this text reported within the last minute? If not, it is now. Threads: safe. */
int repeats_has(struct repeats *repeats, const char *text, uint64_t now_ms);

#endif
