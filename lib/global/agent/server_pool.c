/*
 * server_pool: see server_pool.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <stdlib.h>
#include <string.h>

#include "server_pool.h"

/*
 * A backend that sends nothing for this long has failed once; the deadline is used instead if it is
 * longer.
 */
#define SILENCE_NS UINT64_C(50000000)

struct node *server_pool_new(struct agent *a, const struct url *url)
{
	const struct shmlimit_global_options *o = &a->g->options;
	struct node *node = malloc(sizeof(*node));
	struct node_patience patience = {
		.silence_ns = o->deadline_ns > SILENCE_NS ? o->deadline_ns : SILENCE_NS,
		.open_ns = o->open_ns,
		.open_after = o->open_after,
	};

	if (node != NULL)
		node_begin(node, url, &patience, handle_rng(a->g));
	return node;
}

/*
 * Returns a free place, or that of the least recently used node without questions. -1: there is
 * none.
 */
static int free_place(struct agent *a)
{
	unsigned oldest = 0;

	if (a->count < CLUSTER_NODES)
		return (int)a->count;
	for (unsigned i = 1; i < a->count; i++) {
		const struct node *node = a->nodes[i];

		if (node->queued.first == NULL && !node_is_asked(node) && node->done.first == NULL &&
		    (oldest == 0 || node->used_ns < a->nodes[oldest]->used_ns))
			oldest = i;
	}
	if (oldest == 0)
		return -1;
	node_end(a->nodes[oldest]);
	free(a->nodes[oldest]);
	a->nodes[oldest] = NULL;
	for (unsigned slot = 0; slot < CLUSTER_SLOTS; slot++)
		if (a->of_slot[slot] == oldest)
			a->of_slot[slot] = 0;
	return (int)oldest;
}

void server_pool_name(struct agent *a, unsigned place)
{
	char text[URL_TEXT_MAX];

	if (place < SHMLIMIT_GLOBAL_SERVERS)
		mailbox_name_server(a->g->mailbox, place,
		                    place == 0 ? a->g->breaker.key
		                               : url_text(&a->nodes[place]->line->backend.url, text));
}

int server_pool_at(struct agent *a, const struct url *url)
{
	struct node *node;
	int place;

	for (unsigned i = 0; i < a->count; i++)
		if (strcmp(a->nodes[i]->line->backend.url.host, url->host) == 0 &&
		    strcmp(a->nodes[i]->line->backend.url.port, url->port) == 0)
			return (int)i;
	node = server_pool_new(a, url);
	if (node == NULL)
		return -1;
	place = free_place(a);
	if (place < 0) {
		node_end(node);
		free(node);
		return -1;
	}
	a->nodes[place] = node;
	a->openings[place] = 0;
	a->warned[place] = 0;
	server_pool_name(a, (unsigned)place);
	a->count += (unsigned)place == a->count;
	return place;
}
