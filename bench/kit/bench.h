/*
 * bench: what all benchmarks share: options, time, pinning, a limiter of the
 * program's own, and the rows that a report is made of.
 *
 *	bench_begin(argc, argv, "decide");
 *	...
 *	bench_row("allowed", "hot key", "ns", 39.6);
 *	return bench_end();
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BENCH_KIT_BENCH_H
#define BENCH_KIT_BENCH_H

#include <stddef.h>
#include <stdint.h>

#include "../../tests/at.h"
#include "shmlimit_lease.h"

/* Set by bench_begin(): a moment only, to see that it runs; figures mean nothing then. */
extern int bench_quick;

/*
 * Take `--quick` and `--rows FILE`, and name the program. Whatever is handed to
 * bench_at_end() is done when the program ends, also by a signal.
 */
void bench_begin(int argc, char **argv, const char *program);
int bench_end(void);

/* Async-signal-safe functions only, 8 of them at most; called in reverse. Forked children do not call them. */
void bench_at_end(void (*undo)(void));

/* Say what failed and end the program. */
_Noreturn void bench_fail(const char *what, const char *why);

/*
 * One measured value, as a tab-separated line of the file that --rows names:
 *
 *	program  subject  at  unit  value
 *
 * `at` is where on the x axis, or what else tells it from the subject's other values.
 */
void bench_row(const char *subject, const char *at, const char *unit, double value);

uint64_t bench_ns(void);
int bench_cpus(void);
void bench_pin(int cpu);

/* A limiter of the program's own. The name is good until the next. `options` may be NULL. */
struct shmlimit *bench_create(const struct shmlimit_options *options);
int bench_rule(struct shmlimit *l, const char *name, uint64_t capacity, uint64_t count, uint64_t period_ns);

/* A limiter's answer that was not the wanted one ends the program: a bench of errors is worth nothing. */
void bench_wrong(int got, int want);

static inline void bench_expect(int got, int want)
{
	if (__builtin_expect(got != want, 0))
		bench_wrong(got, want);
}

#endif
