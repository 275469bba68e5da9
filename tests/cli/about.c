/*
 * about: a time that is shown in few digits is never shorter than it is, and longer by a day in 100, an hour in a day, a
 * minute in an hour, a second in a minute, or one in a hundred.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "../rng.h"
#include "../unit/unit.h"
#include "about.h"
#include "duration.h"

#define MINUTE (60 * SECOND)
#define DAY (1440 * MINUTE)

static uint64_t most_ns(uint64_t ns)
{
	if (ns >= 100 * DAY)
		return DAY;
	if (ns >= DAY)
		return 60 * MINUTE;
	return ns >= 60 * MINUTE ? MINUTE : ns >= MINUTE ? SECOND : ns / 100 + 1;
}

static int is_right(uint64_t ns)
{
	char text[TEXT_LEN];
	const char *shown = duration_about(text, ns);
	uint64_t read_ns = 0;

	return duration_scan(&shown, 0, &read_ns) == 0 && *shown == '\0' && read_ns >= ns && read_ns - ns < most_ns(ns);
}

int main(void)
{
	struct rng rng = { rng_seed() };
	char text[TEXT_LEN];
	int wrong = 0;

	for (int i = 0; i < 200000; i++)
		wrong += !is_right(1 + (rng_below(&rng, (uint64_t)1 << 55) >> rng_below(&rng, 55)));
	is(wrong, 0, "a time is shown as long as it is, or a little longer");
	is_str(duration_about(text, 1234567891), "1.24s", "a time below a minute has three digits");
	is_str(duration_about(text, UINT64_MAX), "never", "what never comes is never");
	return tap_done();
}
