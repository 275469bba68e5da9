/*
 * keys: what does a decision cost, over the number of live keys?
 *
 * Beside the floor plus one access to a random line of as much memory, which is
 * what a table larger than the caches cannot do without, and beside the mutex
 * zone. And what does it cost while the keys are well within their limits, so
 * that each is full again soon after it was asked? See README.md for the figures.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>

#include "atomic.h"
#include "clock.h"
#include "hash.h"
#include "kit/bench.h"
#include "kit/rng.h"
#include "kit/rounds.h"
#include "peers/zone.h"

/* More than the most frequent key is asked for; a token comes back in a minute, so that all keys stay live. */
#define CAPACITY 1000000
#define ZIPF_S 0.99
#define ZIPF_DRAWS (1u << 20)

static uint64_t secret[2] = { 1, 2 };
static struct layout_slot cell;
static volatile uint64_t sink;

static struct table {
	uint64_t keys;
	struct shmlimit *l;
	int rule;
	struct zone *zone;
	uint64_t *memory; /* as many lines as the table has */
	uint64_t lines;
	uint32_t *zipf;
	struct rounds floor, access, uniform, skewed, zone_uniform, ideal;
} tables[] = {
	{ .keys = 1000 }, { .keys = 10000 }, { .keys = 100000 }, { .keys = 1000000 }, { .keys = 10000000 },
};
#define TABLES (sizeof(tables) / sizeof(tables[0]))

/* The largest of these tables once more, in huge pages. */
static struct table huge;

static int take_zone(struct zone *zone, uint64_t key)
{
	return zone_take(zone, &key, sizeof(key), CAPACITY, 1440, clock_read(CLOCK_MONOTONIC));
}

static void fill_limiter(struct table *t)
{
	struct shmlimit_options options = { .struct_size = sizeof(options), .slots = t->keys * 5 / 4 };

	t->l = bench_create(&options);
	t->rule = bench_rule(t->l, "open", CAPACITY, 1, 60 * (uint64_t)1000000000);
	for (uint64_t key = 0; key < t->keys; key++)
		bench_expect(shmlimit_take(t->l, t->rule, &key, sizeof(key), 1, NULL), SHMLIMIT_ALLOWED);
}

static void fill(struct table *t)
{
	struct rng rng = { 3 };

	fill_limiter(t);
	t->zone = zone_create(t->keys, t->keys);
	t->lines = t->keys * 5 / 16;
	t->memory = mmap(NULL, t->lines * 64, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	t->zipf = malloc(ZIPF_DRAWS * sizeof(*t->zipf));
	if (t->memory == MAP_FAILED || t->zipf == NULL)
		bench_fail("keys", "no memory");
	for (uint64_t line = 0; line < t->lines; line++)
		t->memory[line * 8] = rng_draw(&rng);
	rng_zipf(&rng, t->keys, ZIPF_S, t->zipf, ZIPF_DRAWS);
	for (uint64_t key = 0; key < t->keys; key++)
		bench_expect(take_zone(t->zone, key), 0);
}

/*
 * Fill a table like the last one on a /dev/shm of huge pages. Returns 0, or the errno if this process may not mount
 * one. The mount is in a mount namespace of this process alone, and undone as soon as the table is mapped: no other
 * process sees it, and the segment's name goes with it.
 */
static int fill_huge(void)
{
	huge.keys = tables[TABLES - 1].keys;
	huge.zipf = tables[TABLES - 1].zipf;
	if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
	    mount("none", "/dev/shm", "tmpfs", 0, "huge=always") != 0)
		return errno;
	fill_limiter(&huge);
	if (umount2("/dev/shm", MNT_DETACH) != 0)
		bench_fail("umount", "/dev/shm");
	return 0;
}

/* MiB of this process's shared memory that are mapped in huge pages. */
static double mapped_huge(void)
{
	FILE *f = fopen("/proc/self/smaps_rollup", "r");
	char line[256];
	double kib = 0;

	while (f != NULL && fgets(line, sizeof(line), f) != NULL && sscanf(line, "ShmemPmdMapped: %lf", &kib) != 1)
		;
	if (f != NULL)
		fclose(f);
	return kib / 1024;
}

static void run_floor(const struct table *t, struct rng *rng, uint64_t n)
{
	while (n--) {
		uint64_t key = rng_below(rng, t->keys);
		uint64_t hash = hash_bytes(secret, 0, &key, sizeof(key));
		uint64_t now = clock_read(CLOCK_MONOTONIC);

		sink = (uint64_t)slot_cas(&cell, (struct slot_seen){ cell.tag, cell.word }, hash, now);
	}
}

/* Each line says where the next one is: an access begins when the last one has ended, as decisions' do. */
static void run_access(const struct table *t, struct rng *rng, uint64_t n)
{
	uint64_t found = rng_draw(rng);

	while (n--) {
		struct rng next = { found ^ n };

		found = t->memory[rng_below(&next, t->lines) * 8];
	}
	sink = found;
}

static void run_uniform(const struct table *t, struct rng *rng, uint64_t n)
{
	while (n--) {
		uint64_t key = rng_below(rng, t->keys);

		bench_expect(shmlimit_take(t->l, t->rule, &key, sizeof(key), 1, NULL), SHMLIMIT_ALLOWED);
	}
}

static void run_skewed(const struct table *t, struct rng *rng, uint64_t n)
{
	uint64_t from = rng_below(rng, ZIPF_DRAWS);

	while (n--) {
		uint64_t key = t->zipf[(from + n) % ZIPF_DRAWS];

		bench_expect(shmlimit_take(t->l, t->rule, &key, sizeof(key), 1, NULL), SHMLIMIT_ALLOWED);
	}
}

static void run_zone(const struct table *t, struct rng *rng, uint64_t n)
{
	while (n--)
		bench_expect(take_zone(t->zone, rng_below(rng, t->keys)), 0);
}

static double timed(void (*run)(const struct table *, struct rng *, uint64_t), const struct table *t, int round,
                    uint64_t n)
{
	struct rng rng = { (uint64_t)(round + 2) << 32 };
	uint64_t start = bench_ns();

	run(t, &rng, n);
	return (double)(bench_ns() - start) / (double)n;
}

static void measure_limiter(struct table *t, int round, uint64_t n)
{
	rounds_add(&t->uniform, round, timed(run_uniform, t, round, n));
	rounds_add(&t->skewed, round, timed(run_skewed, t, round, n));
}

static void measure(struct table *t, int round, uint64_t n)
{
	double floor = timed(run_floor, t, round, n), access = timed(run_access, t, round, n);

	rounds_add(&t->floor, round, floor);
	rounds_add(&t->access, round, access);
	rounds_add(&t->ideal, round, floor + access);
	measure_limiter(t, round, n);
	rounds_add(&t->zone_uniform, round, timed(run_zone, t, round, n));
}

static void report(const struct table *t)
{
	char at[24];
	const struct {
		const char *subject, *unit;
		double value;
	} rows[] = {
		{ "floor", "ns", rounds_least(&t->floor) },
		{ "random line", "ns", rounds_least(&t->access) },
		{ "uniform", "ns", rounds_least(&t->uniform) },
		{ "uniform", "/ (floor + line)", rounds_least_ratio(&t->uniform, &t->ideal) },
		{ "Zipf", "ns", rounds_least(&t->skewed) },
		{ "mutex zone, uniform", "ns", rounds_least(&t->zone_uniform) },
		{ "mutex zone, uniform", "/ uniform", rounds_least_ratio(&t->zone_uniform, &t->uniform) },
	};

	snprintf(at, sizeof(at), "%llu", (unsigned long long)t->keys);
	printf("%10s", at);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		printf(" %10.*f", rows[i].unit[0] == '/' ? 2 : 1, rows[i].value);
		bench_row(rows[i].subject, at, rows[i].unit, rows[i].value);
	}
	putchar('\n');
}

static void report_huge(void)
{
	const struct table *small = &tables[TABLES - 1];
	char at[24];
	const struct {
		const char *subject;
		double ns, ratio;
	} rows[] = {
		{ "uniform, huge pages", rounds_least(&huge.uniform),
		  rounds_least_ratio(&huge.uniform, &small->uniform) },
		{ "Zipf, huge pages", rounds_least(&huge.skewed), rounds_least_ratio(&huge.skewed, &small->skewed) },
	};

	snprintf(at, sizeof(at), "%llu", (unsigned long long)small->keys);
	printf("\nof %s keys, with %.0f MiB in huge pages\n", at, mapped_huge());
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		printf("%-20s %10.1f ns %6.2f of it without\n", rows[i].subject, rows[i].ns, rows[i].ratio);
		bench_row(rows[i].subject, at, "ns", rows[i].ns);
		bench_row(rows[i].subject, at, "/ without", rows[i].ratio);
	}
}

/*
 * Keys that refill: after each request a key is full again this much later. Its slot may then be taken by any other
 * key, so what is measured is also how often keys take each other's slots.
 */
#define REFILL_SLOTS ((uint64_t)1 << 17)
#define REFILL_CAPACITY 1000

static const struct refill {
	const char *name;
	uint64_t period_ns;
	int strangers; /* the table has been filled by keys that are asked no more */
} refills[] = {
	{ "never", 60 * (uint64_t)1000000000, 0 }, /* the first: the others are compared with it */
	{ "1 s", 1000000000, 0 },
	{ "1 ms", 1000000, 0 },
	{ "at once", 100, 0 },
	{ "at once, used table", 100, 1 },
};
#define REFILLS (sizeof(refills) / sizeof(refills[0]))

static const char *const loads[] = { "0.3", "0.5", "0.7", "0.8", "0.9", "0.95" };
#define LOADS (sizeof(loads) / sizeof(loads[0]))

static struct refilled {
	struct table table;
	struct rounds ns, claims;
} refilled[LOADS][REFILLS];

static void fill_refilled(struct refilled *to, const struct refill *refill, double load)
{
	struct shmlimit_options options = { .struct_size = sizeof(options), .slots = REFILL_SLOTS };
	struct table *t = &to->table;

	if (bench_quick)
		options.slots /= 64;
	t->l = bench_create(&options);
	t->rule = bench_rule(t->l, "open", REFILL_CAPACITY, 1, refill->period_ns);
	t->keys = (uint64_t)((double)options.slots * load);
	for (uint64_t key = refill->strangers ? t->keys + 4 * options.slots : t->keys; key-- > 0;)
		bench_expect(shmlimit_take(t->l, t->rule, &key, sizeof(key), 1, NULL), SHMLIMIT_ALLOWED);
}

static uint64_t claims(const struct table *t)
{
	struct shmlimit_counters counters = { .struct_size = sizeof(counters) };

	bench_expect(shmlimit_counters(t->l, t->rule, &counters), 0);
	return counters.claims;
}

static void measure_refilled(struct refilled *to, int round, uint64_t n)
{
	uint64_t before = claims(&to->table);

	rounds_add(&to->ns, round, timed(run_uniform, &to->table, round, n));
	rounds_add(&to->claims, round, (double)(claims(&to->table) - before) / (double)n);
}

static void report_refilled(void)
{
	printf("\n%-20s %6s %10s %10s %10s\n", "keys that refill", "load", "ns", "/ never", "claims");
	for (size_t i = 0; i < REFILLS; i++) {
		for (size_t j = 0; j < LOADS; j++) {
			const struct refilled *r = &refilled[j][i];
			double ns = rounds_least(&r->ns), ratio = rounds_least_ratio(&r->ns, &refilled[j][0].ns);
			char subject[40];

			snprintf(subject, sizeof(subject), "refill %s", refills[i].name);
			printf("%-20s %6s %10.1f %10.2f %10.4f\n", refills[i].name, loads[j], ns, ratio,
			       rounds_median(&r->claims));
			bench_row(subject, loads[j], "ns", ns);
			bench_row(subject, loads[j], "/ never", ratio);
			bench_row(subject, loads[j], "claims / decision", rounds_median(&r->claims));
		}
	}
}

static void keys_that_refill(int rounds, uint64_t n)
{
	for (size_t j = 0; j < LOADS; j++)
		for (size_t i = 0; i < REFILLS; i++)
			fill_refilled(&refilled[j][i], &refills[i], strtod(loads[j], NULL));
	for (int round = -1; round < rounds; round++)
		for (size_t j = 0; j < LOADS; j++)
			for (size_t i = 0; i < REFILLS; i++)
				measure_refilled(&refilled[j][i], round, n);
	report_refilled();
	for (size_t j = 0; j < LOADS; j++)
		for (size_t i = 0; i < REFILLS; i++)
			shmlimit_close(refilled[j][i].table.l);
}

int main(int argc, char **argv)
{
	uint64_t n;
	int rounds, not_huge;

	bench_begin(argc, argv, "keys");
	n = bench_quick ? 1000 : 300000;
	rounds = bench_quick ? 1 : 11;
	bench_pin(0);
	for (struct table *t = tables; t < tables + TABLES; t++) {
		if (bench_quick)
			t->keys /= 10;
		fill(t);
	}
	not_huge = fill_huge();
	for (int round = -1; round < rounds; round++) {
		for (struct table *t = tables; t < tables + TABLES; t++)
			measure(t, round, n);
		if (!not_huge)
			measure_limiter(&huge, round, n);
	}
	printf("%10s %10s %10s %10s %10s %10s %10s %10s\n", "live keys", "floor", "line", "uniform", "/ (f + l)",
	       "Zipf", "zone", "zone /");
	for (struct table *t = tables; t < tables + TABLES; t++) {
		report(t);
		shmlimit_close(t->l);
	}
	if (!not_huge) {
		report_huge();
		shmlimit_close(huge.l);
	} else {
		printf("\nhuge pages: not measured (%s)\n", strerror(not_huge));
	}
	keys_that_refill(rounds, n);
	return bench_end();
}
