/*
 * found: scenes in which a limit finds its number, beside no limit and fixed ones. See bench/auto.c.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BENCH_OVERLOAD_FOUND_H
#define BENCH_OVERLOAD_FOUND_H

#include <inttypes.h>
#include <stdio.h>

#include "cores.h"

#define FOUND_MOST 200u
#define FOUND_LEAST 4u

/* 8 cores of 20 ms: 400 a second. */
static const struct cores_step found_steps[] = {
	{ 0, 8, 20, 200 },     /* half of what they bear */
	{ 30, 8, 20, 800 },    /* twice that */
	{ 90, 4, 20, 800 },    /* half of the cores are lost */
	{ 150, 16, 20, 1600 }, /* they are back, and as many more */
	{ 210, 8, 60, 800 },   /* work takes three times as long, for a minute */
	{ 270, 8, 20, 800 },   /* and as before */
	{ 330, 0, 0, 0 },
};
#define FOUND_STEPS 6
static const char *const found_titles[FOUND_STEPS] = { "half load",     "twice the load", "half the cores",
	                                               "cores doubled", "work x 3",       "as before" };

/* What a limit did in a step: after 10 seconds, and in the end. */
struct found_row {
	struct cores_count soon, late;
	uint64_t number, highest; /* in the end; in what is late */
};

static inline double found_rate(const struct cores_count *c, double seconds)
{
	return (double)c->in_time / seconds;
}

/*
 * A limit: `law` and 0, or a fixed number, or both 0: none. A fixed one is reset by nothing. *rows: of each step.
 */
static inline void found_run(struct shmlimit *l, unsigned law, uint64_t number, uint64_t *base_ns, uint64_t seed,
                             struct found_row rows[FOUND_STEPS])
{
	static struct cores c;
	struct shmlimit_rule rule = { .struct_size = sizeof(rule),
		                      .algorithm = SHMLIMIT_HOLD,
		                      .capacity = law != 0 ? FOUND_MOST : number,
		                      .period_ns = UINT64_C(60000000000),
		                      .law = law,
		                      .least = law != 0 ? FOUND_LEAST : 0 };
	int id = law == 0 && number == 0 ? 0 : shmlimit_rule_set(at_time(l, *base_ns), "overload", &rule);

	if (id >= 0 && l != NULL)
		shmlimit_reset(l, id, NULL, 0);
	cores_begin(&c, law == 0 && number == 0 ? NULL : l, id, *base_ns, seed);
	for (int i = 0; i < FOUND_STEPS; i++) {
		const struct cores_step *step = &found_steps[i];
		double from_s = step->from_s, to_s = step[1].from_s;
		struct found_row *row = &rows[i];

		memset(row, 0, sizeof(*row));
		row->soon = cores_count(&c, step, from_s + 10);
		for (double at_s = from_s + 11; at_s <= to_s; at_s++) {
			struct cores_count one = cores_count(&c, step, at_s);
			uint64_t now = c.l != NULL ? cores_number(&c) : 0;

			row->late.asked += one.asked;
			row->late.denied += one.denied;
			row->late.served += one.served;
			row->late.in_time += one.in_time;
			row->highest = now > row->highest ? now : row->highest;
			row->number = now;
		}
	}
	*base_ns += (uint64_t)(c.now_s * 1e9) + UINT64_C(3600000000000);
}

static inline double found_seconds(int i)
{
	return found_steps[i + 1].from_s - found_steps[i].from_s - 10;
}

static inline void found_print(FILE *to, const char *name, const struct found_row rows[FOUND_STEPS])
{
	fprintf(to, "%-12s", name);
	for (int i = 0; i < FOUND_STEPS; i++)
		fprintf(to, "  %6.1f (%3" PRIu64 ")", found_rate(&rows[i].late, found_seconds(i)), rows[i].number);
	fputc('\n', to);
}

#endif
