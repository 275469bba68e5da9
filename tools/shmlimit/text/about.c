/*
 * about.c: see about.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "about.h"
#include "duration.h"

#define SECOND UINT64_C(1000000000)
#define MINUTE (60 * SECOND)
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)

static uint64_t step_of(uint64_t ns)
{
	uint64_t step = 1;

	if (ns >= 100 * DAY)
		return DAY;
	if (ns >= DAY)
		return HOUR;
	if (ns >= HOUR)
		return MINUTE;
	if (ns >= MINUTE)
		return SECOND;
	while (ns / step >= 1000)
		step *= 10;
	return step;
}

/* WHY up: a caller that waits for a time that was rounded down comes too early. */
const char *duration_about(char text[TEXT_LEN], uint64_t ns)
{
	uint64_t step = step_of(ns);

	if (ns % step != 0 && ns <= DURATION_MAX - step)
		ns += step - ns % step;
	return duration_text(text, ns);
}
