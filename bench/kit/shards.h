/*
 * shards: a cluster of three Redis servers on ports of loopback, nothing being saved, each with a third of the slots.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BENCH_KIT_SHARDS_H
#define BENCH_KIT_SHARDS_H

#include <hiredis/hiredis.h>
#include <sys/types.h>

#define SHARDS 3

struct shards {
	pid_t pid[SHARDS];
	int port[SHARDS];
	redisContext *admin[SHARDS];
};

/* Start them, and wait until each knows that the cluster is whole. */
struct shards shards_start(void);
void shards_end(struct shards *shards);

/* Returns the place of the server that has a slot. */
unsigned shards_of_slot(unsigned slot);

#endif
