/*
 * occupancy: how full can the table get, and what does it cost near the end?
 *
 * A table for each load is filled; then its keys are asked in random order. See
 * README.md for the figures.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <stdio.h>

#include "kit/bench.h"
#include "kit/rng.h"
#include "kit/rounds.h"
#include "limiter.h"
#include "table.h"

/* Where keys were found: how many lines were looked at, and in how many cases one. */
struct probes {
	uint64_t found, lines, first;
};

static struct probes probe_all(struct shmlimit *l, int rule, uint64_t keys)
{
	struct probes probes = { 0, 0, 0 };

	for (uint64_t key = 0; key < keys; key++) {
		uint64_t hash = hash_bytes(l->secret, (uint32_t)rule, &key, sizeof(key));
		uint64_t wanted = tag_fingerprint(tag_pack(hash, (uint32_t)rule, 0));

		for (unsigned i = 0, hit = 0; i < WINDOW_LINES && !hit; i++) {
			const struct layout_slot *line = table_line(l->tables, table_window(l->tables, hash), i);

			for (unsigned j = 0; j < SLOTS_PER_LINE; j++)
				hit |= tag_fingerprint(load_relaxed(&line[j].tag)) == wanted;
			probes.lines += hit ? i + 1 : 0;
			probes.found += hit;
			probes.first += hit && i == 0;
		}
	}
	return probes;
}

static struct load {
	double load;
	struct shmlimit *l;
	int rule;
	uint64_t keys, unplaced;
	struct rounds ns;
} loads[] = {
	{ .load = 0.3 }, { .load = 0.5 },  { .load = 0.7 },  { .load = 0.8 },
	{ .load = 0.9 }, { .load = 0.95 }, { .load = 0.98 },
};
#define LOADS (sizeof(loads) / sizeof(loads[0]))

static void fill(struct load *load, uint64_t slots)
{
	struct shmlimit_options options = { .struct_size = sizeof(options), .slots = slots };
	struct shmlimit_counters counters = { .struct_size = sizeof(counters) };

	load->l = bench_create(&options);
	load->rule = bench_rule(load->l, "r", 1, 1, 86400 * (uint64_t)1000000000);
	load->keys = (uint64_t)(load->load * (double)slots);
	for (uint64_t key = 0; key < load->keys; key++)
		shmlimit_take(at_time(load->l, 0), load->rule, &key, sizeof(key), 1, NULL);
	/* The table evicts where it has no room: one more key without a slot. */
	shmlimit_counters(load->l, load->rule, &counters);
	load->unplaced = counters.evictions + counters.no_slot;
}

/* Nanoseconds a peek takes: what finding a key costs, nothing being changed. */
static double time_peeks(const struct load *load, uint64_t n)
{
	struct rng rng = { 7 };
	uint64_t start = bench_ns();

	for (uint64_t i = 0; i < n; i++) {
		uint64_t key = rng_below(&rng, load->keys);

		shmlimit_peek(at_time(load->l, 0), load->rule, &key, sizeof(key), 1, NULL);
	}
	return (double)(bench_ns() - start) / (double)n;
}

static void report(const struct load *load, uint64_t slots)
{
	struct probes probes = probe_all(load->l, load->rule, load->keys);
	double unplaced = (double)load->unplaced / (double)load->keys;
	double first = (double)probes.first / (double)probes.found, lines = (double)probes.lines / (double)probes.found;
	double bytes = (double)(slots * sizeof(struct layout_slot)) / (double)(load->keys - load->unplaced);
	double ns = rounds_least(&load->ns);
	char at[16];

	printf("%6.2f %14.4f%% %11.1f%% %10.2f %10.1f %12.1f\n", load->load, 100 * unplaced, 100 * first, lines, ns,
	       bytes);
	snprintf(at, sizeof(at), "%g", load->load);
	bench_row("table", at, "share without a slot", unplaced);
	bench_row("table", at, "share in the first line", first);
	bench_row("table", at, "lines", lines);
	bench_row("table", at, "ns", ns);
	bench_row("table", at, "bytes a key", bytes);
}

int main(int argc, char **argv)
{
	uint64_t slots;
	int rounds;

	bench_begin(argc, argv, "occupancy");
	bench_pin(0);
	slots = bench_quick ? 1024 : 1 << 20;
	rounds = bench_quick ? 3 : 9;
	for (struct load *load = loads; load < loads + LOADS; load++)
		fill(load, slots);
	for (int round = -1; round < rounds; round++)
		for (struct load *load = loads; load < loads + LOADS; load++)
			rounds_add(&load->ns, round, time_peeks(load, bench_quick ? 1000 : 500000));
	printf("%llu slots\n%6s %15s %12s %10s %10s %12s\n", (unsigned long long)slots, "load", "without a slot",
	       "first line", "lines", "ns", "bytes a key");
	for (struct load *load = loads; load < loads + LOADS; load++) {
		report(load, slots);
		shmlimit_close(load->l);
	}
	return bench_end();
}
