/*
 * bench: see bench.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <getopt.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"

#define UNDOS_MAX 8
#define SEGMENTS_MAX 1100

int bench_quick;

static const char *bench_program;
static FILE *bench_rows;
static pid_t bench_owner;
static void (*bench_undos[UNDOS_MAX])(void);
static volatile sig_atomic_t bench_undo_count;
static char bench_segments[SEGMENTS_MAX][64];
static volatile sig_atomic_t bench_segment_count;

static void undo_all(void)
{
	if (getpid() != bench_owner)
		return;
	while (bench_undo_count > 0)
		bench_undos[--bench_undo_count]();
}

static void interrupted(int signo)
{
	undo_all();
	signal(signo, SIG_DFL);
	raise(signo);
}

static void destroy_segments(void)
{
	while (bench_segment_count > 0)
		shmlimit_destroy(bench_segments[--bench_segment_count]);
}

void bench_at_end(void (*undo)(void))
{
	if (bench_undo_count == UNDOS_MAX)
		bench_fail("bench_at_end", "too many");
	bench_undos[bench_undo_count] = undo;
	bench_undo_count++;
}

void bench_begin(int argc, char **argv, const char *program)
{
	static const struct option options[] = {
		{ "quick", no_argument, NULL, 'q' },
		{ "rows", required_argument, NULL, 'r' },
		{ NULL, 0, NULL, 0 },
	};
	int option;

	bench_program = program;
	bench_owner = getpid();
	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 'q':
			bench_quick = 1;
			break;
		case 'r':
			bench_rows = fopen(optarg, "a");
			if (bench_rows == NULL)
				bench_fail("--rows", optarg);
			break;
		default:
			fprintf(stderr, "usage: %s [--quick] [--rows FILE]\n", argv[0]);
			exit(2);
		}
	}
	/* What is printed appears at once, and a forked child has none of it to print again. */
	setvbuf(stdout, NULL, _IONBF, 0);
	atexit(undo_all);
	signal(SIGINT, interrupted);
	signal(SIGTERM, interrupted);
	signal(SIGHUP, interrupted);
	signal(SIGPIPE, interrupted);
	bench_at_end(destroy_segments);
}

int bench_end(void)
{
	return bench_rows == NULL || fclose(bench_rows) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

_Noreturn void bench_fail(const char *what, const char *why)
{
	fprintf(stderr, "bench: %s: %s: %s\n", bench_program, what, why);
	exit(1);
}

void bench_row(const char *subject, const char *at, const char *unit, double value)
{
	if (bench_rows == NULL)
		return;
	fprintf(bench_rows, "%s\t%s\t%s\t%s\t%.6g\n", bench_program, subject, at, unit, value);
	fflush(bench_rows);
}

uint64_t bench_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

int bench_cpus(void)
{
	cpu_set_t set;
	static int cpus;

	/* Those that the program may use when it first asks: later it may be pinned to one of them. */
	if (cpus == 0)
		cpus = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
	return cpus;
}

void bench_pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu % bench_cpus(), &set);
	if (sched_setaffinity(0, sizeof(set), &set) != 0)
		perror("bench: not pinned");
}

struct shmlimit *bench_create(const struct shmlimit_options *options)
{
	char *name = bench_segments[bench_segment_count];
	struct shmlimit *l;
	int error;

	if (bench_segment_count == SEGMENTS_MAX)
		bench_fail("bench_create", "too many");
	snprintf(name, sizeof(bench_segments[0]), "bench.%s.%ld.%d", bench_program, (long)bench_owner,
	         (int)bench_segment_count);
	bench_segment_count++;
	error = shmlimit_create(name, options, &l);
	if (error != 0)
		bench_fail("create", shmlimit_strerror(error));
	return l;
}

int bench_rule(struct shmlimit *l, const char *name, uint64_t capacity, uint64_t count, uint64_t period_ns)
{
	struct shmlimit_rule rule = {
		.struct_size = sizeof(rule), .capacity = capacity, .refill = count, .period_ns = period_ns
	};
	int id = shmlimit_rule_set(l, name, &rule);

	if (id < 0)
		bench_fail("rule_set", shmlimit_strerror(id));
	return id;
}

void bench_wrong(int got, int want)
{
	char why[64];

	snprintf(why, sizeof(why), "%d instead of %d", got, want);
	bench_fail("an answer", why);
}
