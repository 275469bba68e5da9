/*
 * auto: what a service serves in time, with and without a limit on how many requests are in progress, in simulated
 * time. The library is the real one. tests/unit/overload.c demands some of these figures.
 *
 *	auto     a table, by the SEED of the environment, or 1: served in time a second after 10 seconds of a
 *	         step, and the number in the end
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <stdlib.h>

#include "kit/bench.h"
#include "overload/found.h"

int main(int argc, char **argv)
{
	static const uint64_t fixed[] = { 4, 6, 8, 9, 10, 11, 12, 14, 16, 20, 24, 32, 40, 80, 200 };
	static const char *const laws[] = { "", "vegas", "gradient2", "aimd" };
	struct shmlimit_options options = { .struct_size = sizeof(options), .slots = 1024 };
	uint64_t base_ns = CORES_T0, seed = getenv("SEED") != NULL ? strtoull(getenv("SEED"), NULL, 0) : 1;
	struct shmlimit *l;
	struct found_row rows[FOUND_STEPS];
	char name[24];

	bench_begin(argc, argv, "auto");
	l = bench_create(&options);
	printf("%-12s", "limit");
	for (int i = 0; i < FOUND_STEPS; i++)
		printf("  %12s", found_titles[i]);
	putchar('\n');
	found_run(l, 0, 0, &base_ns, seed, rows);
	found_print(stdout, "none", rows);
	for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++) {
		found_run(l, 0, fixed[i], &base_ns, seed, rows);
		snprintf(name, sizeof(name), "%" PRIu64, fixed[i]);
		found_print(stdout, name, rows);
	}
	for (unsigned law = SHMLIMIT_LAW_VEGAS; law <= SHMLIMIT_LAW_AIMD; law++) {
		found_run(l, law, 0, &base_ns, seed, rows);
		found_print(stdout, laws[law], rows);
		for (int i = 0; i < FOUND_STEPS; i++)
			printf("   %s: first 10 s %.1f/s, denied %.1f %% (late %.3f %%), highest %" PRIu64 "\n",
			       found_titles[i], found_rate(&rows[i].soon, 10),
			       100.0 * (double)rows[i].soon.denied / (double)rows[i].soon.asked,
			       100.0 * (double)rows[i].late.denied / (double)rows[i].late.asked, rows[i].highest);
	}
	shmlimit_close(l);
	return 0;
}
