/*
 * fleet: the server of a URL (home) and, if that is a node of a cluster, the other nodes that it names. Which node
 * has a key is learned from its answers (MOVED, ASK), and is forgotten when that node fails.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef GLOBAL_FLEET_H
#define GLOBAL_FLEET_H

#include "engine.h"

#define FLEET_SLOTS 16384
#define FLEET_NODES 128        /* more nodes are forgotten, and learned again */

struct fleet {
	struct engine home;
	unsigned count;
	struct engine *node[FLEET_NODES];
	unsigned char *of_slot;        /* 1 + a node's place, 0: home. NULL: no other node is known */
};

void fleet_begin(struct fleet *fleet, const struct url *url);
void fleet_end(struct fleet *fleet);

/* Like engine_lease(). Once a cluster is known, the questions are asked one after the other. */
void fleet_lease(struct fleet *fleet, struct engine_question *questions, size_t n, uint64_t until_ns);

/* Like engine_command(), on the node that has the key. */
int fleet_command(struct fleet *fleet, const void *key, size_t key_len, int n, const char **words, const size_t *lens,
                  uint64_t until_ns, redisReply **reply, struct trouble *trouble);

/* Returns the cluster slot of a key: that of the text in its first braces, or of the whole key if there is none. */
unsigned fleet_slot(const void *key, size_t key_len);

/*
 * Parse "MOVED SLOT HOST:PORT" or "ASK ..." from the node `from`: *to is the node's URL. Returns 0, or -1 if the text
 * is invalid.
 */
int fleet_move(const char *said, const struct url *from, struct url *to, unsigned *slot);

#endif
