/*
 * nodes: the servers of an agent: that of the URL and, in a cluster, those that it names.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef GLOBAL_NODES_H
#define GLOBAL_NODES_H

#include "agent_state.h"

/* Make a node, which has no place yet. Returns NULL if out of memory. */
struct node *nodes_new(struct agent *agent, const struct url *url);

/* Report the name of the node at a place. The server of the URL is called by the URL, whichever of its hosts is in use. */
void nodes_name(struct agent *agent, unsigned place);

/* Returns the place of a node, which is added if it is new; -1 without room or memory. */
int nodes_at(struct agent *agent, const struct url *url);

#endif
