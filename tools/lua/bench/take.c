/*
 * What a take costs in C, for the rows beside it: "NAME: figure<TAB>nanoseconds", as the fastest of some rounds.
 *
 *	take NAME SEGMENT SECONDS
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <shmlimit.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define ROUNDS 50

static double used_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

int main(int argc, char *argv[])
{
	struct shmlimit *limiter;
	struct shmlimit_rule rule = {
		.struct_size = sizeof(rule), .capacity = 1ULL << 40, .refill = 1 << 30, .period_ns = 1000000000
	};
	struct shmlimit_result r;
	double least = 0, seconds = argc > 3 ? atof(argv[3]) : 1;
	int id, calls = 1000 + (int)(seconds / ROUNDS / 60e-9);

	if (argc < 4 || shmlimit_open(argv[2], SHMLIMIT_OPEN_CREATE | SHMLIMIT_OPEN_TRUSTED, NULL, &limiter))
		return 2;
	id = shmlimit_rule_set(limiter, "take", &rule);
	for (int round = 0; round < ROUNDS; round++) {
		double begun = used_ns();

		for (int i = 0; i < calls; i++)
			if (shmlimit_take(limiter, id, "user:42", 7, 1, &r) != SHMLIMIT_ALLOWED)
				return 1;
		begun = (used_ns() - begun) / calls;
		least = round == 0 || begun < least ? begun : least;
	}
	shmlimit_destroy(argv[2]);
	printf("%s: take\t%.1f\n", argv[1], least);
	return 0;
}
