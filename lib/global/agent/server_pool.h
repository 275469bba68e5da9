/*
 * server_pool: the servers of an agent: that of the URL and, in a cluster, those that it names.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef GLOBAL_SERVER_POOL_H
#define GLOBAL_SERVER_POOL_H

#include "agent_state.h"

/* Make a node, which has no place yet. Returns NULL if out of memory. */
struct node *server_pool_new(struct agent *agent, const struct url *url);

/*
 * Report the name of the node at a place. The server of the URL is called by the URL, whichever of
 * its hosts is in use.
 */
void server_pool_name(struct agent *agent, unsigned place);

/* Returns the place of a node, which is added if it is new; -1 without room or memory. */
int server_pool_at(struct agent *agent, const struct url *url);

#endif
