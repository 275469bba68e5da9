/*
 * repeats: what was said lately. Each handle on an engine says for itself what is
 * wrong with it, so a process of many threads would say the same as many times.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_SERVER_REPEATS_H
#define SHMLIMIT_SERVER_REPEATS_H

#include <pthread.h>
#include <stdint.h>

#define REPEATS_KEPT 8

struct repeats {
	pthread_mutex_t lock;
	uint64_t hash[REPEATS_KEPT], said_ms[REPEATS_KEPT];
	unsigned next;
};

void repeats_begin(struct repeats *repeats);
void repeats_end(struct repeats *repeats);

/* Was this said within the last minute? If not, it is now. Threads: safe. */
int repeats_has(struct repeats *repeats, const char *text, uint64_t now_ms);

#endif
