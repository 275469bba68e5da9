/*
 * sketch: see sketch.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <stdlib.h>

#include "../kit/bench.h"
#include "../kit/rng.h"
#include "sketch.h"

#define ROWS 4

/* 8 bytes: half of a slot, without a tag. */
struct counter {
	float missing; /* tokens, at `time_s` */
	float time_s;
};

struct sketch {
	uint64_t width;
	struct counter *counters;
};

struct sketch *sketch_create(uint64_t bytes)
{
	struct sketch *sketch = malloc(sizeof(*sketch));

	if (sketch == NULL)
		bench_fail("sketch", "no memory");
	sketch->width = bytes / sizeof(struct counter) / ROWS;
	sketch->counters = calloc(sketch->width * ROWS, sizeof(struct counter));
	if (sketch->counters == NULL)
		bench_fail("sketch", "no memory");
	return sketch;
}

void sketch_destroy(struct sketch *sketch)
{
	free(sketch->counters);
	free(sketch);
}

int sketch_take(struct sketch *sketch, uint64_t key, double capacity, double rate, double now_s)
{
	struct rng rng = { key };
	struct counter *counters[ROWS];
	double missing[ROWS], least = capacity;

	for (int i = 0; i < ROWS; i++) {
		counters[i] = &sketch->counters[(uint64_t)i * sketch->width + rng_below(&rng, sketch->width)];
		missing[i] = counters[i]->missing - (now_s - counters[i]->time_s) * rate;
		if (missing[i] < 0)
			missing[i] = 0;
		if (missing[i] < least)
			least = missing[i];
	}
	if (least + 1 > capacity)
		return 1;
	for (int i = 0; i < ROWS; i++) {
		counters[i]->missing = (float)(missing[i] < least + 1 ? least + 1 : missing[i]);
		counters[i]->time_s = (float)now_s;
	}
	return 0;
}
