/*
 * log_once: suppresses texts that were reported recently. Each handle on a Redis server reports its
 * problems, so a process with many threads would report the same text once per thread.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_GATE_LOG_ONCE_H
#define SHMLIMIT_GATE_LOG_ONCE_H

#include <stdint.h>

#define LOG_ONCE_KEPT 16
#define LOG_ONCE_AGAIN_MS 60000u

/*
 * All zero: nothing was reported. A forked process may continue to use it: there is no lock to
 * inherit.
 */
struct log_once {
	uint64_t reported[LOG_ONCE_KEPT]; /* a text's hash and its time, see log_once.c */
};

/* Was this text reported within the last minute? If not, it is recorded now. Threads: safe. */
int log_once_has(struct log_once *log_once, const char *text, uint64_t now_ms);

#endif
