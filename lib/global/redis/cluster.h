/*
 * cluster: the server of a URL (home) and, if that is a node of a cluster, the other nodes that it
 * names. Which node has a key is learned from its answers (MOVED, ASK), and is forgotten when that
 * node fails. A node that fails `open_after` times in a row is left alone for about `open_ns`, and
 * it alone: its circuit breaker is this process's. That of the URL's server is all processes'
 * (breaker.h), which the caller asks.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef GLOBAL_CLUSTER_H
#define GLOBAL_CLUSTER_H

#include "backend.h"
#include "key_bytes.h"

#define CLUSTER_SLOTS 16384
#define CLUSTER_NODES 128 /* more nodes are forgotten, and learned again */

struct cluster {
	struct backend home;
	unsigned count;
	struct backend *node[CLUSTER_NODES];
	unsigned char *of_slot; /* 1 + a node's place, 0: home. NULL: no other node is known */
	unsigned open_after;
	uint64_t open_ns;
};

void cluster_begin(struct cluster *cluster, const struct url *url, unsigned open_after, uint64_t open_ns);
void cluster_end(struct cluster *cluster);

/* Like backend_lease(). Once a cluster is known, the questions are asked one after the other. */
void cluster_lease(struct cluster *cluster, struct backend_question *questions, size_t n, uint64_t until_ns);

/* Like backend_command(), on the node that has the key. */
int cluster_command(struct cluster *cluster, struct key_bytes key, const struct backend_words *command,
                    uint64_t until_ns, redisReply **reply, struct backend_error *failure);

/*
 * Returns the cluster slot of a key: that of the text in its first braces, or of the whole key if
 * there is none.
 */
unsigned cluster_slot(const void *key, size_t key_len);

/*
 * Parse "MOVED SLOT HOST:PORT" or "ASK ..." from the node `from`: *to is the node's URL. Returns 0,
 * or -1 if the text is invalid.
 */
int cluster_move(const char *said, const struct url *from, struct url *to, unsigned *slot);

#endif
