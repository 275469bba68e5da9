/*
 * zone: see zone.h. It has what nginx's zone has: whole keys, addresses that
 * hold in all processes since they were mapped before the fork, nodes in
 * classes of powers of two (so that keys of any length can follow each other in
 * one place), and a rate in tokens a second with a fraction of a thousandth.
 *
 * The hash is the library's own, so that nothing but the structure differs.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include "../kit/bench.h"
#include "hash.h"
#include "zone.h"

/* The class of nodes for keys of up to 56 bytes; there are no longer ones here. */
#define NODE_BYTES 128u

struct node {
	struct node *next; /* of the bucket, or of the free ones */
	struct node *newer, *older;
	uint64_t hash;
	uint64_t used_ns;
	uint64_t missing; /* thousandths of a token */
	uint64_t full_ns; /* when none will be missing */
	uint16_t key_len;
	char key[];
};

struct zone {
	pthread_mutex_t mutex;
	size_t size;
	uint64_t buckets, nodes;
	struct node *newest, *oldest, *unused;
	struct node **bucket;
};

static const uint64_t secret[2] = { 0x243f6a8885a308d3u, 0x13198a2e03707344u };

struct zone *zone_create(uint64_t nodes, uint64_t buckets)
{
	size_t size = sizeof(struct zone) + buckets * sizeof(struct node *) + (nodes + 1) * NODE_BYTES;
	void *base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct zone *zone = base;
	pthread_mutexattr_t attributes;
	char *p;

	if (base == MAP_FAILED)
		bench_fail("zone", "no memory");
	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&zone->mutex, &attributes);
	zone->size = size;
	zone->buckets = buckets;
	zone->nodes = nodes;
	zone->bucket = (struct node **)(zone + 1);
	p = (char *)(zone->bucket + buckets);
	p += NODE_BYTES - (uintptr_t)p % NODE_BYTES;
	for (uint64_t i = 0; i < nodes; i++) {
		struct node *node = (struct node *)(void *)(p + i * NODE_BYTES);

		node->next = zone->unused;
		zone->unused = node;
	}
	return zone;
}

void zone_destroy(struct zone *zone)
{
	munmap(zone, zone->size);
}

double zone_bytes_a_key(const struct zone *zone)
{
	return NODE_BYTES + (double)(zone->buckets * sizeof(struct node *)) / (double)zone->nodes;
}

static struct node **bucket_of(struct zone *zone, uint64_t hash)
{
	return &zone->bucket[(uint64_t)((unsigned __int128)hash * zone->buckets >> 64)];
}

static void list_remove(struct zone *zone, struct node *node)
{
	*(node->newer != NULL ? &node->newer->older : &zone->newest) = node->older;
	*(node->older != NULL ? &node->older->newer : &zone->oldest) = node->newer;
}

static void list_put_first(struct zone *zone, struct node *node)
{
	node->newer = NULL;
	node->older = zone->newest;
	*(zone->newest != NULL ? &zone->newest->newer : &zone->oldest) = node;
	zone->newest = node;
}

static void forget_oldest(struct zone *zone)
{
	struct node *node = zone->oldest, **p = bucket_of(zone, node->hash);

	while (*p != node)
		p = &(*p)->next;
	*p = node->next;
	list_remove(zone, node);
	node->next = zone->unused;
	zone->unused = node;
}

/* A new node; up to two that are full again go, as in nginx, and one that is not where there is no other room. */
static struct node *add(struct zone *zone, uint64_t hash, const void *key, size_t key_len, uint64_t now_ns)
{
	struct node *node;

	for (int i = 0; i < 2 && zone->oldest != NULL && zone->oldest->full_ns <= now_ns; i++)
		forget_oldest(zone);
	if (zone->unused == NULL)
		forget_oldest(zone);
	node = zone->unused;
	zone->unused = node->next;
	node->hash = hash;
	node->used_ns = now_ns;
	node->missing = 0;
	node->full_ns = now_ns;
	node->key_len = (uint16_t)key_len;
	memcpy(node->key, key, key_len);
	node->next = *bucket_of(zone, hash);
	*bucket_of(zone, hash) = node;
	list_put_first(zone, node);
	return node;
}

static struct node *find(struct zone *zone, uint64_t hash, const void *key, size_t key_len)
{
	struct node *node = *bucket_of(zone, hash);

	while (node != NULL && (node->hash != hash || node->key_len != key_len || memcmp(node->key, key, key_len) != 0))
		node = node->next;
	return node;
}

static int charge(struct node *node, uint64_t capacity, uint64_t rate_per_day, uint64_t now_ns)
{
	const uint64_t day_us = (uint64_t)86400 * 1000000;
	uint64_t elapsed_us = now_ns > node->used_ns ? (now_ns - node->used_ns) / 1000 : 0;
	uint64_t back = (uint64_t)((unsigned __int128)elapsed_us * rate_per_day * 1000 / day_us);
	uint64_t missing = node->missing > back ? node->missing - back : 0;

	if (missing + 1000 > capacity * 1000)
		return 1;
	node->missing = missing + 1000;
	node->used_ns = now_ns;
	node->full_ns = now_ns + (uint64_t)((unsigned __int128)node->missing * day_us / rate_per_day);
	return 0;
}

static void lock(struct zone *zone)
{
	/* The process that held it may have left anything: the only choice is to go on. */
	if (pthread_mutex_lock(&zone->mutex) == EOWNERDEAD)
		pthread_mutex_consistent(&zone->mutex);
}

int zone_take(struct zone *zone, const void *key, size_t key_len, uint64_t capacity, uint64_t rate_per_day,
              uint64_t now_ns)
{
	uint64_t hash = hash_bytes(secret, 0, key, key_len);
	struct node *node;
	int answer;

	if (key_len > NODE_BYTES - offsetof(struct node, key))
		return -EMSGSIZE;
	lock(zone);
	node = find(zone, hash, key, key_len);
	if (node == NULL) {
		node = add(zone, hash, key, key_len, now_ns);
	} else if (node != zone->newest) {
		list_remove(zone, node);
		list_put_first(zone, node);
	}
	answer = charge(node, capacity, rate_per_day, now_ns);
	pthread_mutex_unlock(&zone->mutex);
	return answer;
}
