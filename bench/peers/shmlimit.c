/*
 * shmlimit: the library itself: a funnel, and a count that expires.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "../kit/bench.h"
#include "peer.h"

/* A load of 0.8. */
#define SLOTS (2 * PEER_KEYS * 5 / 4)

static struct shmlimit *limiter;
static int started;
static int rules[2], counted;
static const int64_t bounds[] = { PEER_OPEN_CAPACITY, PEER_DRAIN_CAPACITY };

/* Both peers of this file share the segment. */
static void start(void)
{
	struct shmlimit_rule counter = { .struct_size = sizeof(counter),
		                         .algorithm = SHMLIMIT_COUNTER,
		                         .period_ns = PEER_DAY_S * UINT64_C(1000000000) };
	struct shmlimit_options options = { .struct_size = sizeof(options), .slots = SLOTS };
	uint64_t second = 1000000000;

	if (started++ > 0)
		return;
	limiter = bench_create(&options);
	counted = shmlimit_rule_set(limiter, "counted", &counter);
	rules[PEER_OPEN] = bench_rule(limiter, "open", PEER_OPEN_CAPACITY, PEER_OPEN_A_DAY, PEER_DAY_S * second);
	rules[PEER_DRAIN] = bench_rule(limiter, "drain", PEER_DRAIN_CAPACITY, PEER_DRAIN_A_DAY, PEER_DAY_S * second);
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

static void decide_count(void *session, enum peer_limit limit, const struct peer_key *keys, int n, int *answers)
{
	struct shmlimit_count count = { .struct_size = sizeof(count) };

	for (int i = 0; i < n; i++)
		answers[i] = shmlimit_count(
			session, counted, keys[i].bytes, keys[i].len,
			&(struct shmlimit_count_request){
				.struct_size = sizeof(struct shmlimit_count_request), .n = 1, .bound = bounds[limit] },
			&count);
}

static void close_session(void *session)
{
	(void)session;
}

static double bytes(void)
{
	return (double)SLOTS / 2 * 16;
}

static void end(void)
{
	if (--started == 0)
		shmlimit_close(limiter);
}

const struct peer peer_shmlimit = {
	.name = "shmlimit",
	.many = PEER_MANY_MAX,
	.start = start,
	.open = open_session,
	.decide = decide,
	.close = close_session,
	.bytes = bytes,
	.reserved = 1,
	.end = end,
};

const struct peer peer_shmlimit_count = {
	.name = "shmlimit, a count",
	.many = PEER_MANY_MAX,
	.start = start,
	.open = open_session,
	.decide = decide_count,
	.close = close_session,
	.end = end,
};
