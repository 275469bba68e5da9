/*
 * latency: how long do single decisions take, the slowest ones too?
 *
 * Each decision is timed by itself, alone and with other processes at work, and
 * those right after another process was killed in the middle of its own. The
 * library and the mutex zone. See README.md for the figures.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <stdio.h>

#include "clock.h"
#include "kit/bench.h"
#include "kit/crew.h"
#include "kit/histogram.h"
#include "peers/zone.h"

#define BATCH 64
#define AFTER_KILL 100 /* decisions after each kill */

static const char key[] = "client:192.168.100.1";
#define KEY_LEN (sizeof(key) - 1)

static struct shmlimit *limiter;
static int rule;
static struct zone *zone;

static void decide_nothing(void)
{
}

static void decide(void)
{
	bench_expect(shmlimit_take(limiter, rule, key, KEY_LEN, 1, NULL), SHMLIMIT_ALLOWED);
}

static void decide_in_zone(void)
{
	bench_expect(zone_take(zone, key, KEY_LEN, 1000000000, 86400000, clock_read(CLOCK_MONOTONIC)), 0);
}

static uint64_t many(void *session)
{
	(void)session;
	for (int i = 0; i < BATCH; i++)
		decide();
	return BATCH;
}

static uint64_t many_in_zone(void *session)
{
	(void)session;
	for (int i = 0; i < BATCH; i++)
		decide_in_zone();
	return BATCH;
}

static void time_some(struct histogram *h, void (*once)(void), uint64_t n)
{
	uint64_t start = bench_ns();

	while (n--) {
		uint64_t end;

		once();
		end = bench_ns();
		histogram_add(h, end - start);
		start = end;
	}
}

/* This number of other processes do the same, the first on the other core. */
static void beside(struct histogram *h, void (*once)(void), uint64_t (*batch)(void *), int others, uint64_t n)
{
	struct crew_job job = { NULL, batch, NULL };
	pid_t children[CREW_MAX];

	for (int i = 0; i < others; i++)
		children[i] = crew_start(i + 1, &job);
	time_some(h, once, n);
	for (int i = 0; i < others; i++)
		crew_kill(children[i]);
}

static void after_kill(struct histogram *h, void (*once)(void), uint64_t (*batch)(void *), int kills)
{
	struct crew_job job = { NULL, batch, NULL };

	for (int i = 0; i < kills; i++) {
		pid_t child = crew_start(1, &job);

		time_some(&(struct histogram){ .total = 0 }, once, 1000);
		crew_kill(child);
		time_some(h, once, AFTER_KILL);
	}
}

static void report(const char *subject, const char *at, const struct histogram *h)
{
	static const struct {
		const char *name;
		double share;
	} quantiles[] = { { "p50", 0.5 }, { "p99", 0.99 }, { "p99.9", 0.999 }, { "p99.99", 0.9999 } };

	printf("%-12s %-28s", subject, at);
	for (size_t i = 0; i < sizeof(quantiles) / sizeof(quantiles[0]); i++) {
		double ns = (double)histogram_quantile(h, quantiles[i].share);
		char unit[16];

		printf(" %9.0f", ns);
		snprintf(unit, sizeof(unit), "%s ns", quantiles[i].name);
		bench_row(subject, at, unit, ns);
	}
	printf(" %10.0f\n", (double)h->max_ns);
	bench_row(subject, at, "max ns", (double)h->max_ns);
}

static const struct contender {
	const char *name;
	void (*once)(void);
	uint64_t (*batch)(void *session);
} contenders[] = { { "shmlimit", decide, many }, { "mutex zone", decide_in_zone, many_in_zone } };

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int others;
	} loads[] = { { "alone", 0 }, { "2 processes, one key", 1 }, { "8 processes, one key", 7 } };
	uint64_t n;
	int kills;

	bench_begin(argc, argv, "latency");
	n = bench_quick ? 1000 : 3000000;
	kills = bench_quick ? 3 : 1000;
	limiter = bench_create(NULL);
	rule = bench_rule(limiter, "open", 1000000000, 1000, 1000000000);
	zone = zone_create(16, 16);
	bench_pin(0);
	printf("%-12s %-28s %9s %9s %9s %9s %10s\n", "ns", "", "p50", "p99", "p99.9", "p99.99", "max");
	for (size_t load = 0; load < sizeof(loads) / sizeof(loads[0]); load++) {
		if (load == 0) {
			struct histogram h = { .total = 0 };

			time_some(&h, decide_nothing, n);
			report("nothing", "alone", &h);
		}
		for (size_t i = 0; i < sizeof(contenders) / sizeof(contenders[0]); i++) {
			const struct contender *c = &contenders[i];
			struct histogram h = { .total = 0 };

			beside(&h, c->once, c->batch, loads[load].others, n);
			report(c->name, loads[load].name, &h);
		}
	}
	for (size_t i = 0; i < sizeof(contenders) / sizeof(contenders[0]); i++) {
		const struct contender *c = &contenders[i];
		struct histogram h = { .total = 0 };

		after_kill(&h, c->once, c->batch, kills);
		report(c->name, "after a SIGKILL", &h);
	}
	shmlimit_close(limiter);
	return bench_end();
}
