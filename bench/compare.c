/*
 * compare: decisions a second, beside what people would pick instead.
 *
 * Keys are drawn from PEER_KEYS evenly, none is ever denied. Before that, each peer
 * has to admit exactly a capacity: a limiter that does not limit is fast. See
 * README.md for the figures.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "kit/bench.h"
#include "kit/crew.h"
#include "kit/rng.h"
#include "kit/rounds.h"
#include "peers/peer.h"

#define KEY_LEN 20

static char key_bytes[PEER_KEYS][KEY_LEN + 1];

static const int crews[] = { 1, 2, 4 };
#define CREWS (sizeof(crews) / sizeof(crews[0]))

static struct contender {
	const struct peer *peer;
	int missing;
	struct rounds rate[CREWS];
} contenders[] = {
	/* clang-format off */
	{ .peer = &peer_shmlimit }, { .peer = &peer_zone }, { .peer = &peer_redis }, { .peer = &peer_redis_three },
	{ .peer = &peer_redis_zset }, { .peer = &peer_redis_many }, { .peer = &peer_redis_three_many },
	{ .peer = &peer_redis_zset_many }, { .peer = &peer_shmlimit_count }, { .peer = &peer_redis_incr },
	{ .peer = &peer_redis_increx }, { .peer = &peer_redis_incr_many }, { .peer = &peer_sqlite }, { .peer = &peer_flock },
	/* clang-format on */
};
#define CONTENDERS (sizeof(contenders) / sizeof(contenders[0]))

/* What a process does. */
static const struct peer *current;
static struct rng rng;

static void *open_session(const void *what, int seat)
{
	current = what;
	rng.state = (uint64_t)seat << 32;
	return current->open();
}

static uint64_t decide_some(void *session)
{
	struct peer_key keys[PEER_MANY_MAX];
	int answers[PEER_MANY_MAX], n = 0;

	do {
		keys[n] = (struct peer_key){ key_bytes[rng_below(&rng, PEER_KEYS)], KEY_LEN };
	} while (++n < current->many);
	current->decide(session, PEER_OPEN, keys, n, answers);
	for (int i = 0; i < n; i++)
		bench_expect(answers[i], SHMLIMIT_ALLOWED);
	return (uint64_t)n;
}

static void check(const struct peer *peer)
{
	void *session = peer->open();
	char name[64];
	struct peer_key key = { name, (size_t)snprintf(name, sizeof(name), "drained%p", (const void *)peer) };

	for (unsigned i = 0; i < 2 * PEER_DRAIN_CAPACITY; i++) {
		int answer = -1;

		peer->decide(session, PEER_DRAIN, &key, 1, &answer);
		if (answer != (i < PEER_DRAIN_CAPACITY ? SHMLIMIT_ALLOWED : SHMLIMIT_DENIED))
			bench_fail(peer->name, "does not limit");
	}
	peer->close(session);
}

/* Make all keys live. Returns the bytes that each takes, 0 where the peer cannot tell. */
static double fill(const struct peer *peer)
{
	void *session = peer->open();
	double before = peer->bytes == NULL || peer->reserved ? 0 : peer->bytes(), after;

	for (unsigned i = 0; i < PEER_KEYS; i++) {
		struct peer_key key = { key_bytes[i], KEY_LEN };
		int answer;

		peer->decide(session, PEER_OPEN, &key, 1, &answer);
	}
	after = peer->bytes == NULL ? 0 : peer->bytes();
	peer->close(session);
	return (after - before) / PEER_KEYS;
}

static void report(const struct contender *c)
{
	const struct contender *ours = &contenders[0];

	printf("%-32s", c->peer->name);
	for (size_t i = 0; i < CREWS; i++) {
		double rate = rounds_median(&c->rate[i]), ratio = rounds_ratio(&ours->rate[i], &c->rate[i]);
		char at[16];

		printf(" %12.0f %8.1f", rate, ratio);
		snprintf(at, sizeof(at), "%d", crews[i]);
		bench_row(c->peer->name, at, "decisions/s", rate);
		bench_row(c->peer->name, at, "shmlimit / it", ratio);
	}
	putchar('\n');
}

int main(int argc, char **argv)
{
	double seconds;
	int rounds;

	bench_begin(argc, argv, "compare");
	seconds = bench_quick ? 0.005 : 0.2;
	rounds = bench_quick ? 1 : 7;
	for (unsigned i = 0; i < PEER_KEYS; i++)
		snprintf(key_bytes[i], sizeof(key_bytes[i]), "client:%013u", i);
	for (struct contender *c = contenders; c < contenders + CONTENDERS; c++) {
		double bytes;

		c->missing = c->peer->file != NULL && access(c->peer->file, X_OK) != 0;
		if (c->missing) {
			printf("not measured: %s: no %s\n", c->peer->name, c->peer->file);
			continue;
		}
		c->peer->start();
		check(c->peer);
		bytes = fill(c->peer);
		if (bytes > 0) {
			printf("%-32s %8.0f bytes a live key\n", c->peer->name, bytes);
			bench_row(c->peer->name, "live key", "bytes", bytes);
		}
	}
	for (int round = -1; round < rounds; round++)
		for (struct contender *c = contenders; c < contenders + CONTENDERS; c++)
			for (size_t i = 0; i < CREWS && !c->missing; i++) {
				struct crew_job job = { open_session, decide_some, c->peer };

				rounds_add(&c->rate[i], round, crew_rate(crews[i], seconds, &job));
			}
	printf("\n%-32s", "decisions a second, processes:");
	for (size_t i = 0; i < CREWS; i++)
		printf(" %12d %8s", crews[i], "ours /");
	putchar('\n');
	for (struct contender *c = contenders; c < contenders + CONTENDERS; c++)
		if (!c->missing) {
			report(c);
			c->peer->end();
		}
	return bench_end();
}
