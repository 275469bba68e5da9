/*
 * rounds: a figure, measured several times.
 *
 * Contenders are measured in rounds that take turns, so that a change of the
 * machine's speed meets all of them. What is reported is each one's median, and
 * where two are compared the median of the rounds' ratios.
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

double rounds_median(const struct rounds *rounds);
double rounds_ratio(const struct rounds *a, const struct rounds *b);

#endif
