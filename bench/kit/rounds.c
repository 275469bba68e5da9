/*
 * rounds: see rounds.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <stdlib.h>
#include <string.h>

#include "rounds.h"

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

void rounds_add(struct rounds *rounds, int round, double value)
{
	if (round >= 0 && rounds->n < ROUNDS_MAX)
		rounds->value[rounds->n++] = value;
}

/* The median of the least n values. */
static double median_of_least(const struct rounds *rounds, int n)
{
	struct rounds sorted = *rounds;

	if (n == 0)
		return 0;
	qsort(sorted.value, (size_t)sorted.n, sizeof(sorted.value[0]), compare);
	return n % 2 ? sorted.value[n / 2] : (sorted.value[n / 2 - 1] + sorted.value[n / 2]) / 2;
}

double rounds_median(const struct rounds *rounds)
{
	return median_of_least(rounds, rounds->n);
}

double rounds_least(const struct rounds *rounds)
{
	return median_of_least(rounds, (rounds->n + 3) / 4);
}

double rounds_least_ratio(const struct rounds *a, const struct rounds *b)
{
	return rounds_least(a) / rounds_least(b);
}

double rounds_ratio(const struct rounds *a, const struct rounds *b)
{
	struct rounds ratios = { .n = 0 };

	for (int i = 0; i < a->n && i < b->n; i++)
		rounds_add(&ratios, i, a->value[i] / b->value[i]);
	return rounds_median(&ratios);
}
