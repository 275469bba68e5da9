/*
 * cluster: see cluster.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backoff.h"
#include "cluster.h"

/*
 * Most nodes that one question is sent to: a node, the node that the key is being moved to, and one
 * more if that changes.
 */
#define HOPS 4

void cluster_begin(struct cluster *c, const struct url *url, unsigned open_after, uint64_t open_ns)
{
	*c = (struct cluster){ .open_after = open_after, .open_ns = open_ns };
	backend_begin(&c->home, url);
}

static void forget_nodes(struct cluster *c)
{
	for (unsigned i = 0; i < c->count; i++) {
		backend_end(c->node[i]);
		free(c->node[i]);
	}
	c->count = 0;
	if (c->of_slot != NULL)
		memset(c->of_slot, 0, CLUSTER_SLOTS);
}

void cluster_end(struct cluster *c)
{
	forget_nodes(c);
	free(c->of_slot);
	backend_end(&c->home);
}

/* CRC-16/XMODEM, as the cluster's specification demands. */
static unsigned crc16(const unsigned char *bytes, size_t len)
{
	unsigned crc = 0;

	for (size_t i = 0; i < len; i++) {
		crc ^= (unsigned)bytes[i] << 8;
		for (int bit = 0; bit < 8; bit++)
			crc = (crc & 0x8000 ? crc << 1 ^ 0x1021 : crc << 1) & 0xffff;
	}
	return crc;
}

unsigned cluster_slot(const void *key, size_t key_len)
{
	const unsigned char *bytes = key, *open = memchr(bytes, '{', key_len), *shut = NULL;

	if (open != NULL)
		shut = memchr(open + 1, '}', key_len - (size_t)(open + 1 - bytes));
	if (shut != NULL && shut > open + 1)
		return crc16(open + 1, (size_t)(shut - open - 1)) % CLUSTER_SLOTS;
	return crc16(bytes, key_len) % CLUSTER_SLOTS;
}

/* Parses "MOVED 3999 10.0.0.1:6381" and "ASK ...". An empty host means the node that answered. */
int cluster_move(const char *said, const struct url *from, struct url *to, unsigned *slot)
{
	char where[sizeof(to->host)];
	char *colon;
	unsigned port;

	*to = *from;
	to->others = 0;
	to->primary[0] = '\0';
	if (sscanf(said, "%*s %u %255s", slot, where) != 2 || *slot >= CLUSTER_SLOTS)
		return -1;
	colon = strrchr(where, ':');
	if (colon == NULL || sscanf(colon + 1, "%u", &port) != 1 || port == 0 || port > 65535)
		return -1;
	*colon = '\0';
	to->path[0] = '\0';
	if (where[0] != '\0')
		strcpy(to->host, where);
	else if (from->path[0] != '\0')
		strcpy(to->host, "127.0.0.1");
	snprintf(to->port, sizeof(to->port), "%u", port);
	return 0;
}

/* The place of a node, new or known; -1 without memory. */
static int node_at(struct cluster *c, const struct url *url)
{
	for (unsigned i = 0; i < c->count; i++)
		if (strcmp(c->node[i]->url.host, url->host) == 0 && strcmp(c->node[i]->url.port, url->port) == 0)
			return (int)i;
	if (c->count == CLUSTER_NODES)
		forget_nodes(c);
	if (c->of_slot == NULL)
		c->of_slot = calloc(CLUSTER_SLOTS, 1);
	c->node[c->count] = malloc(sizeof(*c->node[0]));
	if (c->of_slot == NULL || c->node[c->count] == NULL) {
		free(c->node[c->count]);
		return -1;
	}
	backend_begin(c->node[c->count], url);
	return (int)c->count++;
}

/*
 * Returns the place of the node that an answer names, or -1. *asking: the key is there for this
 * question only (ASK).
 */
static int moved_to(struct cluster *c, const struct backend_error *failure, const struct backend *at, int *asking)
{
	struct url url;
	unsigned slot;
	int place = -1;

	*asking = 0;
	if (failure->kind == ERROR_MOVED && cluster_move(failure->said, &at->url, &url, &slot) == 0)
		place = node_at(c, &url);
	if (place < 0)
		return -1;
	*asking = strncmp(failure->said, "ASK ", 4) == 0;
	if (!*asking)
		c->of_slot[slot] = (unsigned char)(1 + place);
	return place;
}

static struct backend *backend_of(struct cluster *c, const void *key, size_t key_len)
{
	unsigned place = c->of_slot == NULL ? 0 : c->of_slot[cluster_slot(key, key_len)];

	return place == 0 ? &c->home : c->node[place - 1];
}

/*
 * A node that fails may have lost its slots to another one. Forget that it has the key: the home
 * node says which one does.
 */
static void forget_owner(struct cluster *c, const struct backend_error *failure, const void *key, size_t key_len)
{
	if (c->of_slot != NULL && failure->kind != ERROR_NONE && failure->kind != ERROR_CONNECTED &&
	    !backend_error_is_of_key(failure))
		c->of_slot[cluster_slot(key, key_len)] = 0;
}

/* Ask a node, unless its breaker is open. */
static void ask(struct cluster *c, struct backend *at, struct backend_question *q, uint64_t until_ns)
{
	uint64_t now_ns = monotonic_now_ns();

	if (now_ns < at->open_until_ns) {
		q->failure = at->failure;
		return;
	}
	backend_lease(at, q, 1, until_ns);
	if (at == &c->home)
		return;
	if (q->failure.kind == ERROR_NONE || q->failure.kind == ERROR_MOVED || backend_error_is_of_key(&q->failure)) {
		at->failure.kind = ERROR_NONE;
		at->failures = 0;
		return;
	}
	q->failure.at = q->failure.kind == at->failure.kind ? ERROR_OF_KNOWN : ERROR_OF_NODE;
	at->failure = q->failure;
	at->failure.at = ERROR_OF_KNOWN;
	if (++at->failures < c->open_after)
		return;
	at->failures = 0;
	/* Low bits of a time are at random. */
	at->open_until_ns = now_ns + backoff_ns(c->open_ns, monotonic_now_ns() * UINT64_C(0x9e3779b97f4a7c15));
}

/*
 * Ask one question of the node that has the key. `asked`: home has answered it already. BOUND:
 * HOPS, and the deadline.
 */
static void follow_question(struct cluster *c, struct backend_question *q, int asked, uint64_t until_ns)
{
	struct backend *at = asked ? &c->home : backend_of(c, q->key, q->key_len);

	for (int hop = 0; hop < HOPS; hop++) {
		int place;

		if (!asked || hop > 0)
			ask(c, at, q, until_ns);
		place = moved_to(c, &q->failure, at, &q->ask_first);
		if (place < 0)
			break;
		at = c->node[place];
	}
	forget_owner(c, &q->failure, q->key, q->key_len);
}

void cluster_lease(struct cluster *c, struct backend_question *questions, size_t n, uint64_t until_ns)
{
	int asked = c->of_slot == NULL;

	if (asked)
		backend_lease(&c->home, questions, n, until_ns);
	for (size_t i = 0; i < n; i++)
		if (!asked || questions[i].failure.kind == ERROR_MOVED)
			follow_question(c, &questions[i], asked, until_ns);
}

int cluster_command(struct cluster *c, struct key_bytes key, const struct backend_words *command, uint64_t until_ns,
                    redisReply **reply, struct backend_error *failure)
{
	struct backend *at = backend_of(c, key.bytes, key.len);

	for (int hop = 0; hop < HOPS; hop++) {
		int asking, place;

		if (backend_command(at, command, until_ns, reply, failure) == 0)
			return 0;
		place = moved_to(c, failure, at, &asking);
		if (place < 0 || asking)
			break;
		at = c->node[place];
	}
	forget_owner(c, failure, key.bytes, key.len);
	return 1;
}
