/*
 * shmlimit: the library itself.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "../kit/bench.h"
#include "peer.h"

/* A load of 0.8. */
#define SLOTS (PEER_KEYS * 5 / 4)

static struct shmlimit *limiter;
static int rules[2];

static void start(void)
{
	struct shmlimit_options options = { .struct_size = sizeof(options), .slots = SLOTS };
	uint64_t second = 1000000000;

	limiter = bench_create(&options);
	rules[PEER_OPEN] = bench_rule(limiter, "open", PEER_OPEN_CAPACITY, PEER_OPEN_A_DAY,
	                              PEER_DAY_S * second);
	rules[PEER_DRAIN] = bench_rule(limiter, "drain", PEER_DRAIN_CAPACITY, PEER_DRAIN_A_DAY,
	                               PEER_DAY_S * second);
}

/* A handle from before the fork serves in the child too. */
static void *open_session(void)
{
	return limiter;
}

static void decide(void *session, enum peer_limit limit, const struct peer_key *keys, int n, int *answers)
{
	for (int i = 0; i < n; i++)
		answers[i] = shmlimit_take(session, rules[limit], keys[i].bytes, keys[i].len, 1, NULL);
}

static void close_session(void *session)
{
	(void)session;
}

static double bytes(void)
{
	return (double)SLOTS * 16;
}

static void end(void)
{
	shmlimit_close(limiter);
}

const struct peer peer_shmlimit = {
	.name = "shmlimit", .many = PEER_MANY_MAX, .start = start, .open = open_session, .decide = decide,
	.close = close_session, .bytes = bytes, .reserved = 1, .end = end,
};
