/*
 * fleet: the engine of a URL and, where that is one of a cluster, those others that
 * it named. Which has a key is learned from what it says (MOVED, ASK), and
 * forgotten with a node that fails.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef GLOBAL_FLEET_H
#define GLOBAL_FLEET_H

#include "engine.h"

#define FLEET_SLOTS 16384
#define FLEET_NODES 128        /* more than that are forgotten, and learned anew */

struct fleet {
	struct engine home;
	unsigned count;
	struct engine *node[FLEET_NODES];
	unsigned char *of_slot;        /* 1 + a node's place, 0: home. NULL: nobody has named another */
};

void fleet_begin(struct fleet *fleet, const struct url *url);
void fleet_end(struct fleet *fleet);

/* As engine_lease(). In a cluster, once that is known, one question after the other. */
void fleet_lease(struct fleet *fleet, struct engine_question *questions, size_t n, uint64_t until_ns);

/* As engine_command(), of whoever has the key. */
int fleet_command(struct fleet *fleet, const void *key, size_t key_len, int n, const char **words, const size_t *lens,
                  uint64_t until_ns, redisReply **reply, struct trouble *trouble);

/* The slot of a cluster that a key is in: by what stands in its first braces, if something does. */
unsigned fleet_slot(const void *key, size_t key_len);

#endif
