/*
 * denied: what do requests that a second limit denies take from the other users of the first one?
 *
 * Processes ask for two limits at once, of which the second always denies: in that order, in the other one, or after a look
 * at the second one. Another process asks for the first limit alone, more often than that refills. See README.md for the
 * figures.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <stdio.h>
#include <time.h>

#include "kit/bench.h"
#include "kit/crew.h"

#define RATE 1000u /* a second */
#define CALLS 64
#define SECOND ((uint64_t)1000000000)
#define DENIERS_MAX 4

enum order { FIRST_LAST, LAST_FIRST, LOOK };
static const char *const orders[] = { "the limit that denies last", "the limit that denies first", "looked at first" };

static struct shmlimit *limiter;
static int shared, shut;

static uint64_t ask(void *session)
{
	const enum order *order = session;
	struct shmlimit_request requests[2] = {
		{ .rule = *order == LAST_FIRST ? shut : shared, .key = "k", .key_len = 1, .cost = 1 },
		{ .rule = *order == LAST_FIRST ? shared : shut, .key = "k", .key_len = 1, .cost = 1 },
	};

	for (int i = 0; i < CALLS; i++) {
		if (*order == LOOK && shmlimit_peek(limiter, shut, "k", 1, 1, NULL) == SHMLIMIT_DENIED)
			continue;
		bench_expect(shmlimit_take_all(limiter, requests, 2, NULL, NULL), SHMLIMIT_DENIED);
	}
	return CALLS;
}

static void *begin(const void *what, int seat)
{
	static enum order order;

	(void)seat;
	order = *(const enum order *)what;
	return &order;
}

/* The part of the rate that a process gets which asks five times as often. */
static double share_of_rate(uint64_t capacity, double seconds)
{
	uint64_t began_ns, end_ns, allowed = 0;

	/* What it has at first is not of the rate. */
	for (uint64_t i = 0; i < capacity; i++)
		(void)shmlimit_take(limiter, shared, "k", 1, 1, NULL);
	began_ns = bench_ns();
	end_ns = began_ns + (uint64_t)(seconds * 1e9);
	while (bench_ns() < end_ns) {
		nanosleep(&(struct timespec){ .tv_nsec = SECOND / RATE / 5 }, NULL);
		allowed += shmlimit_take(limiter, shared, "k", 1, 1, NULL) == SHMLIMIT_ALLOWED;
	}
	return (double)allowed / ((double)(bench_ns() - began_ns) * 1e-9 * RATE);
}

static void measure(uint64_t capacity, int deniers, enum order order, double seconds)
{
	const struct crew_job job = { .open = begin, .batch = ask, .what = &order };
	pid_t children[DENIERS_MAX];
	char at[32];
	double share;

	limiter = bench_create(NULL);
	shared = bench_rule(limiter, "shared", capacity, RATE, SECOND);
	shut = bench_rule(limiter, "shut", 1, 1, 86400 * SECOND);
	bench_expect(shmlimit_take(limiter, shut, "k", 1, 1, NULL), SHMLIMIT_ALLOWED);
	for (int i = 0; i < deniers; i++)
		children[i] = crew_start(i % bench_cpus(), &job);
	share = share_of_rate(capacity, seconds);
	for (int i = 0; i < deniers; i++)
		crew_kill(children[i]);
	printf("%8llu %8d %-28s %6.0f%%\n", (unsigned long long)capacity, deniers, deniers == 0 ? "" : orders[order],
	       100 * share);
	snprintf(at, sizeof(at), "%llu, %d", (unsigned long long)capacity, deniers);
	bench_row(deniers == 0 ? "nobody else" : orders[order], at, "of the rate", share);
	shmlimit_close(limiter);
}

int main(int argc, char **argv)
{
	double seconds;

	bench_begin(argc, argv, "denied");
	seconds = bench_quick ? 0.05 : 3;
	printf("what a process gets of a limit of %u a second that asks five times as often\n\n%8s %8s %-28s %7s\n",
	       RATE, "capacity", "deniers", "they ask for", "of rate");
	for (uint64_t capacity = 1; capacity <= 100; capacity *= 10) {
		measure(capacity, 0, LOOK, seconds);
		for (int deniers = 1; deniers <= DENIERS_MAX; deniers *= 4)
			for (int order = FIRST_LAST; order <= LOOK; order++)
				measure(capacity, deniers, (enum order)order, seconds);
	}
	return bench_end();
}
