/*
 * zone: the limiter that a careful C programmer writes, after the manner of
 * nginx's limit_req: memory shared by fork, a chained hash of keys, a list of
 * them by time of last use, and one robust mutex around it all.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BENCH_PEERS_ZONE_H
#define BENCH_PEERS_ZONE_H

#include <stddef.h>
#include <stdint.h>

struct zone;

/* Room for this number of nodes; a new key without room replaces the key that was used longest ago. */
struct zone *zone_create(uint64_t nodes, uint64_t buckets);
void zone_destroy(struct zone *zone);

/* Take a token from a bucket of `capacity` that gets `rate` a second. Returns 0 allowed, 1 denied. */
int zone_take(struct zone *zone, const void *key, size_t key_len, uint64_t capacity, uint64_t rate_per_day,
              uint64_t now_ns);

/* Bytes a key takes: its node, as it was allocated, and its share of the buckets. */
double zone_bytes_a_key(const struct zone *zone);

#endif
