/*
 * world: what is around the library in a simulation of many hosts: a clock that is made up, chance,
 * and the way to a backend that has the library's own script. Link with --wrap of clock_gettime,
 * clock_nanosleep, getrandom and cluster_lease.
 *
 * Each handle's options.arg is a struct world_caller. All calls are made by tasks (virtual.h).
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BENCH_WORLD_H
#define BENCH_WORLD_H

#include <stddef.h>
#include <stdint.h>

#include "../kit/rng.h"

/* What is asked through one handle. */
struct world_caller {
	uint64_t latency_ns; /* one way: that, and a fourth of it more on average, at random */
	uint64_t debited_ns; /* when the backend debited what this take asked for; 0: it did not */
};

extern struct world {
	struct rng rng;
	uint64_t deaf_from_ns, deaf_until_ns; /* the backend hears nothing */
	uint64_t commands, unheard;
	uint64_t left, left_ns; /* tokens of the backend, by its last answer; and when */
} world;

/* Exponential. */
double world_draw(double mean);

/*
 * When the tokens of one funnel were admitted. `here`: a token of a lease when it was spent, one
 * that the call leased when the backend debited it; `answered`: all when the call had its answer.
 */
struct world_times {
	uint64_t *ns;
	size_t n, max;
};
struct world_ledger {
	struct world_times here, there, answered;
};
void world_admitted(struct world_ledger *ledger, const struct world_caller *caller);

/*
 * The most by which any stretch of time, from one admission to another, had more than capacity +
 * count / period_ns * time. Sorts the ledger.
 */
double world_excess(struct world_ledger *ledger, uint64_t capacity, uint64_t count, uint64_t period_ns);
double world_excess_answered(const struct world_ledger *ledger, uint64_t capacity, uint64_t count, uint64_t period_ns);

void world_ledger_clear(struct world_ledger *ledger);

#endif
