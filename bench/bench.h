/*
 * bench: what all benchmarks share: pinning, timing in interleaved rounds,
 * medians, and a segment that is gone afterwards.
 *
 * A figure is measured in ROUNDS rounds; in each round every contender of the
 * program runs once, for the same number of operations, so that a change of the
 * machine's speed meets all of them. What is reported is each contender's
 * median, and, where two are compared, the median of the rounds' ratios.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "shmlimit.h"

#define BENCH_ROUNDS_MAX 99

static char bench_segment[64];

static inline uint64_t bench_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline void bench_pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set) != 0)
		perror("bench: not pinned");
}

static int bench_compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static inline double bench_median(const double *values, int n)
{
	double sorted[BENCH_ROUNDS_MAX];

	memcpy(sorted, values, (size_t)n * sizeof(*sorted));
	qsort(sorted, (size_t)n, sizeof(*sorted), bench_compare);
	return n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

static inline double bench_median_ratio(const double *a, const double *b, int n)
{
	double ratios[BENCH_ROUNDS_MAX];

	for (int i = 0; i < n; i++)
		ratios[i] = a[i] / b[i];
	return bench_median(ratios, n);
}

static inline void bench_fail(const char *what, int error)
{
	fprintf(stderr, "bench: %s: %s\n", what, shmlimit_strerror(error));
	exit(1);
}

static void bench_gone(void)
{
	shmlimit_destroy(bench_segment);
}

static void bench_interrupted(int signo)
{
	bench_gone();
	_exit(128 + signo);
}

/* A segment of the program's own, destroyed when it ends or is interrupted. */
static inline struct shmlimit *bench_create(const char *program, uint64_t slots)
{
	struct shmlimit_options options = { .struct_size = sizeof(options), .slots = slots };
	struct shmlimit *l;
	int error;

	snprintf(bench_segment, sizeof(bench_segment), "bench.%s.%ld", program, (long)getpid());
	error = shmlimit_create(bench_segment, &options, &l);
	if (error != 0)
		bench_fail("create", error);
	atexit(bench_gone);
	signal(SIGINT, bench_interrupted);
	signal(SIGTERM, bench_interrupted);
	signal(SIGPIPE, bench_interrupted);
	return l;
}

static inline int bench_rule(struct shmlimit *l, const char *name, uint64_t capacity, uint64_t count,
                             uint64_t period_ns)
{
	struct shmlimit_rule rule = { .struct_size = sizeof(rule), .capacity = capacity, .count = count,
		.period_ns = period_ns };
	int id = shmlimit_rule_set(l, name, &rule);

	if (id < 0)
		bench_fail("rule_set", id);
	return id;
}

/* `--quick`: a moment only, to see that it runs; figures mean nothing then. */
static inline int bench_quick(int argc, char **argv)
{
	return argc > 1 && strcmp(argv[1], "--quick") == 0;
}

#endif
