/*
 * occupancy: how full can the table get before a key finds no slot?
 *
 *	without a slot = keys answered by on_full / keys, at a load of
 *	                 keys / slots
 *	first line     = keys found in the first line looked at / keys found
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "bench.h"
#include "limiter.h"
#include "table.h"

static uint64_t count_first(struct shmlimit *l, int rule, uint64_t keys)
{
	uint64_t first = 0;

	for (uint64_t key = 0; key < keys; key++) {
		uint64_t hash = hash_bytes(l->secret, (uint32_t)rule, &key, sizeof(key));
		const struct layout_slot *line = table_line(l, table_window(l, hash), 0);

		for (unsigned i = 0; i < SLOTS_PER_LINE; i++)
			first += tag_fingerprint(load_relaxed(&line[i].tag)) ==
			         tag_fingerprint(tag_pack(hash, (uint32_t)rule, 0));
	}
	return first;
}

int main(int argc, char **argv)
{
	static const double loads[] = { 0.5, 0.7, 0.8, 0.9, 0.95, 0.98 };
	uint64_t slots = bench_quick(argc, argv) ? 1024 : 1 << 20;
	struct shmlimit_counters counters = { .struct_size = sizeof(counters) };
	struct shmlimit *l = bench_create("occupancy", slots);
	int rule = bench_rule(l, "r", 1, 1, 86400 * (uint64_t)1000000000);
	uint64_t key = 0;

	printf("%llu slots\n%8s %16s %12s\n", (unsigned long long)slots, "load", "without a slot", "first line");
	for (size_t i = 0; i < sizeof(loads) / sizeof(loads[0]); i++) {
		uint64_t keys = (uint64_t)(loads[i] * (double)slots), unplaced;

		for (; key < keys; key++)
			shmlimit_take_at(l, rule, &key, sizeof(key), 1, 0, NULL);
		/* The table evicts where it has no room: one more key without a slot. */
		shmlimit_counters(l, rule, &counters);
		unplaced = counters.evictions + counters.no_slot;
		printf("%8.2f %15.4f%% %11.1f%%\n", loads[i], 100.0 * (double)unplaced / (double)keys,
		       100.0 * (double)count_first(l, rule, keys) / (double)(keys - unplaced));
	}
	shmlimit_close(l);
	return 0;
}
