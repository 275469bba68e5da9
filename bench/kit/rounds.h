/*
 * rounds: a figure, measured several times.
 *
 * Contenders are measured in rounds that take turns, so that a change of the
 * machine's speed meets all of them. What is reported of durations is the median of
 * the least quarter, and where two are compared its ratio: what else the machine or
 * its host does only adds to a duration, and can double it. Of rates and shares it is
 * the median, and that of the rounds' ratios.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BENCH_KIT_ROUNDS_H
#define BENCH_KIT_ROUNDS_H

#define ROUNDS_MAX 99

struct rounds {
	double value[ROUNDS_MAX];
	int n;
};

/* Round -1 is for warming up: not kept. */
void rounds_add(struct rounds *rounds, int round, double value);

/* Of durations: the median of the least quarter. */
double rounds_least(const struct rounds *rounds);
double rounds_least_ratio(const struct rounds *a, const struct rounds *b);

double rounds_median(const struct rounds *rounds);
double rounds_ratio(const struct rounds *a, const struct rounds *b);

#endif
