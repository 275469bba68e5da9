/*
 * overload: what a limit that finds its number serves, in simulated time, beside every fixed one: bench/overload/found.h
 * has the scene. No figure depends on this machine.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "unit.h"

#include "../../bench/overload/found.h"

#define SEED 7

static const uint64_t fixed[] = { 6, 8, 10, 12, 14, 16, 20, 24, 32, 40, 60, 80 };
#define FIXED (sizeof(fixed) / sizeof(fixed[0]))

static struct found_row without[FOUND_STEPS], by_number[FIXED][FOUND_STEPS];
static double best[FOUND_STEPS];    /* in time, a second */
static uint64_t upper[FOUND_STEPS]; /* the largest number that serves 95 % of that */

static double in_time(const struct found_row *rows, int i)
{
	return found_rate(&rows[i].late, found_seconds(i));
}

static void compare(void)
{
	for (int i = 0; i < FOUND_STEPS; i++)
		for (size_t j = 0; j < FIXED; j++)
			best[i] = fmax(best[i], in_time(by_number[j], i));
	for (int i = 0; i < FOUND_STEPS; i++)
		for (size_t j = 0; j < FIXED; j++)
			if (in_time(by_number[j], i) >= 0.95 * best[i])
				upper[i] = fixed[j];
}

static void law(const char *name, const struct found_row *rows, double part, double over)
{
	is(rows[0].soon.denied + rows[0].late.denied, 0, "%s: under half of what the cores bear nobody is denied",
	   name);
	for (int i = 1; i < FOUND_STEPS; i++) {
		ok(in_time(rows, i) >= part * best[i], "%s, %s: after 10 s it serves %.0f of %.0f in time", name,
		   found_titles[i], in_time(rows, i), best[i]);
		ok((double)rows[i].highest <= over * (double)upper[i],
		   "%s, %s: its number is at most %" PRIu64 ", where %" PRIu64 " serves well", name, found_titles[i],
		   rows[i].highest, upper[i]);
	}
	ok(in_time(rows, 1) >= 20 * in_time(without, 1),
	   "%s: under twice what the cores bear it serves many times what no limit does", name);
}

int main(void)
{
	struct shmlimit_options options = { .struct_size = sizeof(options), .slots = 1024 };
	struct shmlimit *l = unit_create("overload", &options);
	struct found_row rows[FOUND_STEPS];
	uint64_t base_ns = CORES_T0;

	found_run(l, 0, 0, &base_ns, SEED, without);
	for (size_t i = 0; i < FIXED; i++)
		found_run(l, 0, fixed[i], &base_ns, SEED, by_number[i]);
	compare();
	found_run(l, SHMLIMIT_LAW_VEGAS, 0, &base_ns, SEED, rows);
	law("vegas", rows, 0.95, 1.2);
	found_run(l, SHMLIMIT_LAW_AIMD, 0, &base_ns, SEED, rows);
	law("aimd", rows, 0.9, 4);
	/* What its authors say of it: "the baseline grows", so under lasting overload the number does. */
	found_run(l, SHMLIMIT_LAW_GRADIENT2, 0, &base_ns, SEED, rows);
	law("gradient2", rows, 0.5, 10);
	return tap_done();
}
