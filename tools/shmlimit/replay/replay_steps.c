/*
 * replay_steps.c: how many when, whatever time a log spans: when the steps do
 * not suffice, each two become one of twice the length.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <string.h>

#include "log_time.h"
#include "replay.h"

static void pair(uint64_t each[STEPS])
{
	for (size_t i = 0; i < STEPS / 2; i++)
		each[i] = each[2 * i] + each[2 * i + 1];
	memset(each + STEPS / 2, 0, STEPS / 2 * sizeof(*each));
}

size_t step_at(struct replay_steps *steps, int64_t unix_ns)
{
	int64_t unix_s = unix_ns / LOG_SECOND;
	uint64_t since_s;
	size_t step;

	if (steps->step_s == 0) {
		steps->step_s = 1;
		steps->from_s = unix_s;
	}
	since_s = (uint64_t)(unix_s - steps->from_s);
	/* BOUND: a log has less than 2^63 seconds, and each round doubles a step. */
	while (since_s / steps->step_s >= STEPS) {
		pair(steps->requests);
		for (size_t rule = 0; rule < REPEATED_MAX; rule++)
			pair(steps->denied[rule]);
		steps->step_s *= 2;
		steps->count = (steps->count + 1) / 2;
	}
	step = (size_t)(since_s / steps->step_s);
	if (step >= steps->count)
		steps->count = step + 1;
	return step;
}

size_t step_worst(const struct replay_steps *steps, size_t rule)
{
	const uint64_t *denied = steps->denied[rule];
	size_t worst = 0;

	for (size_t i = 1; i < steps->count; i++)
		if (denied[i] > denied[worst])
			worst = i;
	return worst;
}
