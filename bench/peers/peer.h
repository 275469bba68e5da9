/*
 * peer: what shmlimit is measured beside, all behind one interface.
 *
 * A peer has two limits: of PEER_OPEN no request of a bench is ever denied;
 * PEER_DRAIN admits exactly PEER_DRAIN_CAPACITY a key, and no more for a day. The
 * parent starts and ends it, each process opens a session of its own.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BENCH_PEERS_PEER_H
#define BENCH_PEERS_PEER_H

#include <stddef.h>
#include <stdint.h>

enum peer_limit { PEER_OPEN, PEER_DRAIN };

#define PEER_OPEN_CAPACITY 1000000u /* tokens, far more than are asked for; ... */
#define PEER_OPEN_A_DAY 1440u       /* ... and so few come back that a key stays live */
#define PEER_DRAIN_CAPACITY 10u     /* tokens */
#define PEER_DRAIN_A_DAY 10u
#define PEER_KEYS 10000u
#define PEER_DAY_S 86400u
#define PEER_MANY_MAX 32

struct peer_key {
	const char *bytes; /* printable, NUL-terminated */
	size_t len;
};

struct peer {
	const char *name;
	const char *file; /* a program it needs, or NULL */
	int many;         /* decisions asked for at once, 1 to PEER_MANY_MAX */
	void (*start)(void);
	void *(*open)(void);
	/* Decide n keys, n <= many; answers are 0 allowed, 1 denied. */
	void (*decide)(void *session, enum peer_limit limit, const struct peer_key *keys, int n, int *answers);
	void (*close)(void *session);
	double (*bytes)(void); /* of memory for what is stored; NULL: another peer tells */
	int reserved;          /* ... taken at the start, for PEER_KEYS keys */
	void (*end)(void);
};

extern const struct peer peer_shmlimit, peer_shmlimit_count, peer_redis_incr, peer_redis_increx, peer_redis_incr_many,
	peer_zone, peer_redis, peer_redis_three, peer_redis_zset, peer_redis_many, peer_redis_three_many,
	peer_redis_zset_many, peer_sqlite, peer_flock;

#endif
