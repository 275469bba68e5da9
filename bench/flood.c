/*
 * flood: which clients are denied, and which admitted, when many more keys come than a
 * table has room for?
 *
 * In simulated time: a second has FLOOD requests of visitors who come once,
 * OFFENDERS who ask too often, INNOCENTS who ask less often than they may. The
 * table, which evicts, has a slot for one in ten of the second's keys. Beside
 * it: the mutex zone, which forgets the key that was used longest ago, with the
 * same memory and with as many keys as the table has slots; and a sketch of the same
 * memory. See README.md for the figures.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kit/bench.h"
#include "kit/rng.h"
#include "peers/sketch.h"
#include "peers/zone.h"

#define CAPACITY 10u
#define RATE 1u /* a second */
#define OFFENDERS 100u
#define INNOCENTS 1000u
#define INNOCENT_RATE 0.5 /* requests a second of each, evenly spaced: never too many */
#define SECOND ((uint64_t)1000000000)

/* How often an offender asks, on the average, a second: at random moments. */
static const double speeds[] = { 5, 20, 100 };

enum kind { TABLE, LRU_MEMORY, LRU_KEYS, SKETCH, KINDS };
static const char *const names[KINDS] = { "shmlimit", "LRU, same memory", "LRU, as many keys", "sketch, same memory" };

static struct shmlimit *limiter;
static int rule;
static struct zone *zones[2];
static struct sketch *sketch;

static struct score {
	uint64_t asked[OFFENDERS], admitted[OFFENDERS];
	uint64_t innocent_asked, innocent_denied;
} scores[KINDS];

static void ask(uint64_t key, uint64_t now_ns, int answers[KINDS])
{
	answers[TABLE] = shmlimit_take_at(limiter, rule, &key, sizeof(key), 1, NULL, now_ns);
	answers[LRU_MEMORY] = zone_take(zones[0], &key, sizeof(key), CAPACITY, RATE * 86400, now_ns);
	answers[LRU_KEYS] = zone_take(zones[1], &key, sizeof(key), CAPACITY, RATE * 86400, now_ns);
	answers[SKETCH] = sketch_take(sketch, key, CAPACITY, RATE, (double)now_ns * 1e-9);
}

static void prepare(uint64_t slots)
{
	struct shmlimit_options options = { .struct_size = sizeof(options), .slots = slots };

	memset(scores, 0, sizeof(scores));
	limiter = bench_create(&options);
	rule = bench_rule(limiter, "login", CAPACITY, RATE, SECOND);
	zones[1] = zone_create(slots, slots);
	zones[0] = zone_create((uint64_t)((double)slots * 16 / zone_bytes_a_key(zones[1])), slots / 8);
	sketch = sketch_create(slots * 16);
}

static void clear(void)
{
	shmlimit_close(limiter);
	zone_destroy(zones[0]);
	zone_destroy(zones[1]);
	sketch_destroy(sketch);
}

/* Keys: offenders from 1, innocents from 1,000,000, visitors from 10^9. */
static void play(double speed, uint64_t flood, uint64_t seconds)
{
	struct rng rng = { (uint64_t)speed };
	double offence = OFFENDERS * speed / (double)flood;
	uint64_t innocent_every = (uint64_t)((double)flood / (INNOCENTS * INNOCENT_RATE));
	int answers[KINDS];

	for (uint64_t i = 0; i < flood * seconds; i++) {
		uint64_t now_ns = SECOND + i * (SECOND / flood);

		ask(1000000000 + i, now_ns, answers);
		if (i % innocent_every == 0) {
			ask(1000000 + i / innocent_every % INNOCENTS, now_ns, answers);
			for (int kind = 0; kind < KINDS; kind++) {
				scores[kind].innocent_asked++;
				scores[kind].innocent_denied += answers[kind] != 0;
			}
		}
		if (rng_unit(&rng) < offence) {
			uint64_t who = rng_below(&rng, OFFENDERS);

			ask(1 + who, now_ns, answers);
			for (int kind = 0; kind < KINDS; kind++) {
				scores[kind].asked[who]++;
				scores[kind].admitted[who] += answers[kind] == 0;
			}
		}
	}
}

static void report(double speed, uint64_t seconds)
{
	/* What a limiter that forgets nothing would let through at the most. */
	uint64_t bound = CAPACITY + RATE * seconds;

	for (int kind = 0; kind < KINDS; kind++) {
		const struct score *score = &scores[kind];
		uint64_t forgiven = 0, deserved = 0, offenders = 0;
		double innocents, tokens, heads;
		char at[16];

		for (unsigned i = 0; i < OFFENDERS; i++) {
			uint64_t beyond = score->admitted[i] > bound ? score->admitted[i] - bound : 0;

			deserved += score->asked[i] > bound ? score->asked[i] - bound : 0;
			forgiven += beyond;
			offenders += beyond > 0;
		}
		innocents = (double)score->innocent_denied / (double)score->innocent_asked;
		tokens = deserved > 0 ? (double)forgiven / (double)deserved : 0;
		heads = (double)offenders / OFFENDERS;
		printf("%6g %-22s %13.4f%% %13.2f%% %13.0f%%\n", speed, names[kind], 100 * innocents, 100 * tokens,
		       100 * heads);
		snprintf(at, sizeof(at), "%g", speed);
		bench_row(names[kind], at, "innocents denied", innocents);
		bench_row(names[kind], at, "requests forgiven", tokens);
		bench_row(names[kind], at, "offenders forgiven", heads);
	}
}

int main(int argc, char **argv)
{
	uint64_t flood, seconds;

	bench_begin(argc, argv, "flood");
	flood = bench_quick ? 10000 : 1000000;
	seconds = bench_quick ? 2 : 10;
	printf("%6s %-22s %14s %14s %14s\n", "speed", "", "innocents", "requests", "offenders");
	printf("%6s %-22s %14s %14s %14s\n", "", "", "denied", "forgiven", "forgiven");
	for (size_t i = 0; i < sizeof(speeds) / sizeof(speeds[0]); i++) {
		prepare(flood / 10);
		play(speeds[i], flood, seconds);
		report(speeds[i], seconds);
		clear();
	}
	return bench_end();
}
