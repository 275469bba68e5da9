/*
 * batch: what does a key of a batch cost, beside a key asked alone?
 *
 * See README.md for the figures.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <stdio.h>

#include "kit/bench.h"
#include "kit/rng.h"
#include "kit/rounds.h"

#define BATCH_MAX 128

static const unsigned sizes[] = { 1, 8, 32, BATCH_MAX };
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

static struct table {
	uint64_t keys;
	struct shmlimit *l;
	int rule;
	struct rounds single, many[SIZES];
} tables[] = { { .keys = 10000 }, { .keys = 10000000 } };
#define TABLES (sizeof(tables) / sizeof(tables[0]))

/* All keys are live, and stay so: a token an hour comes back. */
static void fill(struct table *t)
{
	struct shmlimit_options options = { .struct_size = sizeof(options), .slots = t->keys * 5 / 4 };

	t->l = bench_create(&options);
	t->rule = bench_rule(t->l, "open", 10000, 1, 3600 * (uint64_t)1000000000);
	for (uint64_t key = 0; key < t->keys; key++)
		shmlimit_take(t->l, t->rule, &key, sizeof(key), 1, NULL);
}

static double time_single(const struct table *t, uint64_t n, uint64_t seed)
{
	struct rng rng = { seed };
	uint64_t start = bench_ns();

	for (uint64_t i = 0; i < n; i++) {
		uint64_t key = rng_below(&rng, t->keys);

		bench_expect(shmlimit_take(t->l, t->rule, &key, sizeof(key), 1, NULL), SHMLIMIT_ALLOWED);
	}
	return (double)(bench_ns() - start) / (double)n;
}

static double time_many(const struct table *t, unsigned size, uint64_t n, uint64_t seed)
{
	struct shmlimit_request requests[BATCH_MAX];
	uint64_t keys[BATCH_MAX], start;
	int answers[BATCH_MAX];
	struct rng rng = { seed };

	for (unsigned i = 0; i < size; i++)
		requests[i] = (struct shmlimit_request){
			.rule = t->rule, .key = &keys[i], .key_len = sizeof(keys[i]), .cost = 1
		};
	start = bench_ns();
	for (uint64_t done = 0; done < n; done += size) {
		for (unsigned i = 0; i < size; i++)
			keys[i] = rng_below(&rng, t->keys);
		bench_expect(shmlimit_take_many(t->l, requests, size, answers, NULL), 0);
		for (unsigned i = 0; i < size; i++)
			bench_expect(answers[i], SHMLIMIT_ALLOWED);
	}
	return (double)(bench_ns() - start) / (double)n;
}

static void report(const struct table *t)
{
	char subject[32], at[16];
	double ns = rounds_least(&t->single);

	snprintf(subject, sizeof(subject), "%llu keys", (unsigned long long)t->keys);
	printf("%-16s %8s %10.1f\n", subject, "single", ns);
	bench_row(subject, "single", "ns", ns);
	for (size_t i = 0; i < SIZES; i++) {
		double many = rounds_least(&t->many[i]), ratio = rounds_least_ratio(&t->single, &t->many[i]);

		printf("%-16s %8u %10.1f %10.2f\n", subject, sizes[i], many, ratio);
		snprintf(at, sizeof(at), "%u", sizes[i]);
		bench_row(subject, at, "ns", many);
		bench_row(subject, at, "single / it", ratio);
	}
}

int main(int argc, char **argv)
{
	uint64_t n;
	int rounds;

	bench_begin(argc, argv, "batch");
	n = bench_quick ? 1280 : 256000;
	rounds = bench_quick ? 1 : 11;
	bench_pin(0);
	for (struct table *t = tables; t < tables + TABLES; t++) {
		if (bench_quick)
			t->keys /= 10;
		fill(t);
	}
	for (int round = -1; round < rounds; round++)
		for (struct table *t = tables; t < tables + TABLES; t++) {
			uint64_t seed = (uint64_t)(round + 2) << 32;

			rounds_add(&t->single, round, time_single(t, n, seed));
			for (size_t i = 0; i < SIZES; i++)
				rounds_add(&t->many[i], round, time_many(t, sizes[i], n, seed + i + 1));
		}
	printf("%-16s %8s %10s %10s\n", "live keys", "batch of", "ns a key", "single /");
	for (struct table *t = tables; t < tables + TABLES; t++) {
		report(t);
		shmlimit_close(t->l);
	}
	return bench_end();
}
