/*
 * repeats: suppresses texts that were reported recently. Each handle on a Redis server reports its problems, so a
 * process with many threads would report the same text once per thread.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_GATE_REPEATS_H
#define SHMLIMIT_GATE_REPEATS_H

#include <stdint.h>

#define REPEATS_KEPT 16

/* All zero: nothing was reported. A forked process may continue to use it: there is no lock to inherit. */
struct repeats {
	uint64_t reported[REPEATS_KEPT]; /* a text's hash and its time, see repeats.c */
};

/* Was this text reported within the last minute? If not, it is recorded now. Threads: safe. */
int repeats_has(struct repeats *repeats, const char *text, uint64_t now_ms);

#endif
