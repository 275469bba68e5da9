/*
 * processes: how do decisions a second grow with the processes that decide?
 *
 * One hot key that is allowed, one that is denied, many keys; the library, the
 * mutex zone, and a compare-and-swap loop without anything around it. See
 * README.md for the figures.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <stdio.h>
#include <sys/mman.h>

#include "atomic.h"
#include "clock.h"
#include "kit/bench.h"
#include "kit/crew.h"
#include "kit/rng.h"
#include "kit/rounds.h"
#include "peers/zone.h"

#define KEYS 100000u
#define BATCH 64
#define A_DAY_NS (86400 * (uint64_t)1000000000)

static const char hot[] = "client:192.168.100.1";
#define KEY_LEN (sizeof(hot) - 1)

static struct shmlimit *limiter;
static int open_rule, shut_rule;
static struct zone *zone, *shut_zone;
static struct layout_slot *cell;
static struct rng rng;

static void *seat_at(const void *what, int seat)
{
	(void)what;
	rng.state = (uint64_t)seat << 32;
	return NULL;
}

static const char *spread_key(char key[KEY_LEN])
{
	uint64_t n = rng_below(&rng, KEYS);

	__builtin_memcpy(key, &n, sizeof(n));
	return key;
}

static uint64_t swap(void *session)
{
	(void)session;
	for (int i = 0; i < BATCH; i++) {
		struct slot_seen seen;

		do {
			seen = slot_read(cell);
		} while (!slot_cas(cell, seen, seen.tag, seen.word + 1));
	}
	return BATCH;
}

static uint64_t allow(void *session)
{
	(void)session;
	for (int i = 0; i < BATCH; i++)
		bench_expect(shmlimit_take(limiter, open_rule, hot, KEY_LEN, 1, NULL), SHMLIMIT_ALLOWED);
	return BATCH;
}

static uint64_t deny(void *session)
{
	(void)session;
	for (int i = 0; i < BATCH; i++)
		bench_expect(shmlimit_take(limiter, shut_rule, hot, KEY_LEN, 1, NULL), SHMLIMIT_DENIED);
	return BATCH;
}

static uint64_t spread(void *session)
{
	char key[KEY_LEN] = { 0 };

	(void)session;
	for (int i = 0; i < BATCH; i++)
		bench_expect(shmlimit_take(limiter, open_rule, spread_key(key), KEY_LEN, 1, NULL), SHMLIMIT_ALLOWED);
	return BATCH;
}

static uint64_t zone_allow(void *session)
{
	(void)session;
	for (int i = 0; i < BATCH; i++)
		bench_expect(zone_take(zone, hot, KEY_LEN, 1000000000, 86400000, clock_read(CLOCK_MONOTONIC)), 0);
	return BATCH;
}

static uint64_t zone_deny(void *session)
{
	(void)session;
	for (int i = 0; i < BATCH; i++)
		bench_expect(zone_take(shut_zone, hot, KEY_LEN, 1, 1, clock_read(CLOCK_MONOTONIC)), 1);
	return BATCH;
}

static uint64_t zone_spread(void *session)
{
	char key[KEY_LEN] = { 0 };

	(void)session;
	for (int i = 0; i < BATCH; i++)
		bench_expect(
			zone_take(zone, spread_key(key), KEY_LEN, 1000000000, 86400000, clock_read(CLOCK_MONOTONIC)),
			0);
	return BATCH;
}

static const int crews[] = { 1, 2, 4, 8, 64 };
#define CREWS (sizeof(crews) / sizeof(crews[0]))

static struct contender {
	const char *name;
	uint64_t (*batch)(void *session);
	struct rounds rate[CREWS];
} contenders[] = {
	{ .name = "bare CAS, one word", .batch = swap },
	{ .name = "allowed, one key", .batch = allow },
	{ .name = "denied, one key", .batch = deny },
	{ .name = "allowed, spread", .batch = spread },
	{ .name = "zone: allowed, one key", .batch = zone_allow },
	{ .name = "zone: denied, one key", .batch = zone_deny },
	{ .name = "zone: allowed, spread", .batch = zone_spread },
};
#define CONTENDERS (sizeof(contenders) / sizeof(contenders[0]))

static void prepare(void)
{
	struct shmlimit_options options = { .struct_size = sizeof(options), .slots = KEYS * 5 / 4 };

	limiter = bench_create(&options);
	open_rule = bench_rule(limiter, "open", 1000000000, 1000, 1000000000);
	shut_rule = bench_rule(limiter, "shut", 1, 1, A_DAY_NS);
	bench_expect(shmlimit_take(limiter, shut_rule, hot, KEY_LEN, 1, NULL), SHMLIMIT_ALLOWED);
	zone = zone_create(KEYS + 1, KEYS);
	shut_zone = zone_create(1, 1);
	bench_expect(zone_take(shut_zone, hot, KEY_LEN, 1, 1, clock_read(CLOCK_MONOTONIC)), 0);
	cell = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (cell == MAP_FAILED)
		bench_fail("mmap", "no memory");
}

int main(int argc, char **argv)
{
	double seconds;
	int rounds;

	bench_begin(argc, argv, "processes");
	seconds = bench_quick ? 0.002 : 0.1;
	rounds = bench_quick ? 1 : 9;
	prepare();
	for (int round = -1; round < rounds; round++)
		for (size_t i = 0; i < CREWS; i++)
			for (struct contender *c = contenders; c < contenders + CONTENDERS; c++) {
				struct crew_job job = { seat_at, c->batch, NULL };

				rounds_add(&c->rate[i], round, crew_rate(crews[i], seconds, &job));
			}
	printf("%-24s", "M/s; / one process");
	for (size_t i = 0; i < CREWS; i++)
		printf(" %8d      ", crews[i]);
	putchar('\n');
	for (struct contender *c = contenders; c < contenders + CONTENDERS; c++) {
		printf("%-24s", c->name);
		for (size_t i = 0; i < CREWS; i++) {
			double rate = rounds_median(&c->rate[i]), ratio = rounds_ratio(&c->rate[i], &c->rate[0]);
			char at[16];

			printf(" %8.2f %5.2f", rate / 1e6, ratio);
			snprintf(at, sizeof(at), "%d", crews[i]);
			bench_row(c->name, at, "decisions/s", rate);
			bench_row(c->name, at, "/ one process", ratio);
		}
		putchar('\n');
	}
	printf("%d cores\n", bench_cpus());
	shmlimit_close(limiter);
	return bench_end();
}
