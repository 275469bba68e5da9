/*
 * zone_peer: a zone as a peer.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "clock.h"
#include "peer.h"
#include "zone.h"

static struct zone *zones[2];

static void start(void)
{
	zones[PEER_OPEN] = zone_create(PEER_KEYS, PEER_KEYS);
	zones[PEER_DRAIN] = zone_create(16, 16);
}

static void *open_session(void)
{
	return zones;
}

static void decide(void *session, enum peer_limit limit, const struct peer_key *keys, int n, int *answers)
{
	struct zone **zone = session;
	uint64_t capacity = limit == PEER_OPEN ? PEER_OPEN_CAPACITY : PEER_DRAIN_CAPACITY;
	uint64_t rate_per_day = limit == PEER_OPEN ? PEER_OPEN_A_DAY : PEER_DRAIN_A_DAY;

	for (int i = 0; i < n; i++)
		answers[i] = zone_take(zone[limit], keys[i].bytes, keys[i].len, capacity, rate_per_day,
		                       clock_read(CLOCK_MONOTONIC));
}

static void close_session(void *session)
{
	(void)session;
}

static double bytes(void)
{
	return zone_bytes_a_key(zones[PEER_OPEN]) * PEER_KEYS;
}

static void end(void)
{
	zone_destroy(zones[PEER_OPEN]);
	zone_destroy(zones[PEER_DRAIN]);
}

const struct peer peer_zone = {
	.name = "mutex zone",
	.many = PEER_MANY_MAX,
	.start = start,
	.open = open_session,
	.decide = decide,
	.close = close_session,
	.bytes = bytes,
	.reserved = 1,
	.end = end,
};
