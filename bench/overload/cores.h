/*
 * cores: a service in simulated time, and a limit before it. Work arrives by chance (Poisson), needs a time that is
 * drawn (exponential), and shares the cores evenly with all that is in progress (processor sharing). The limit is a
 * HOLD rule of a real segment, whose calls are given the simulated time. The same seed gives the same figures.
 *
 * Work was served in time if it took no longer than CORES_LATE times what one takes alone, on average.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BENCH_OVERLOAD_CORES_H
#define BENCH_OVERLOAD_CORES_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "../kit/rng.h"
#include "../../tests/at.h"

#define CORES_MOST 4096u /* in progress: beyond that work is lost, with and without a limit */
#define CORES_LATE 10.0
#define CORES_T0 UINT64_C(1000000000000)

/* What holds from a moment on. */
struct cores_step {
	double from_s;   /* since the beginning of the scene */
	double cores;    /* 8 ... */
	double work_ms;  /* one takes alone, on average */
	double arrivals; /* a second */
};

struct cores_job {
	double left_s; /* of its own work */
	double begin_s;
	struct shmlimit_place place;
};

/* What was counted in a stretch of time. */
struct cores_count {
	uint64_t asked, denied, served, in_time;
};

struct cores {
	struct shmlimit *l; /* NULL: no limit */
	int rule;
	double now_s;
	uint64_t base_ns; /* the segment's time when now_s is 0 */
	struct rng rng;
	struct cores_job jobs[CORES_MOST];
	unsigned n;
	double next_s; /* arrival */
	struct cores_count count;
};

static inline double cores_draw(struct cores *c, double mean)
{
	return -mean * log(1 - rng_unit(&c->rng));
}

static inline uint64_t cores_ns(const struct cores *c)
{
	return c->base_ns + (uint64_t)(c->now_s * 1e9);
}

static inline void cores_begin(struct cores *c, struct shmlimit *l, int rule, uint64_t base_ns, uint64_t seed)
{
	memset(c, 0, sizeof(*c));
	c->l = l;
	c->rule = rule;
	c->base_ns = base_ns;
	c->rng = (struct rng){ seed };
}

/* Work that is done is left. */
static inline void cores_end(struct cores *c, unsigned i, const struct cores_step *step)
{
	struct cores_job *job = &c->jobs[i];

	if (c->l != NULL)
		(void)shmlimit_leave(at_time(c->l, cores_ns(c)), c->rule, "service", 7, &job->place);
	c->count.served++;
	c->count.in_time += c->now_s - job->begin_s <= CORES_LATE * step->work_ms / 1000;
	*job = c->jobs[--c->n];
}

static inline void cores_arrive(struct cores *c, const struct cores_step *step)
{
	struct cores_job *job = &c->jobs[c->n];

	c->next_s = c->now_s + cores_draw(c, 1 / step->arrivals);
	c->count.asked++;
	if (c->n == CORES_MOST) {
		c->count.denied++;
		return;
	}
	*job = (struct cores_job){ .left_s = cores_draw(c, step->work_ms / 1000),
		                   .begin_s = c->now_s,
		                   .place.struct_size = sizeof(job->place) };
	if (c->l != NULL &&
	    shmlimit_enter(at_time(c->l, cores_ns(c)), c->rule, "service", 7, &job->place, NULL) != SHMLIMIT_ALLOWED)
		c->count.denied++;
	else
		c->n++;
}

/* Go on until a moment of the scene, under one step. */
static inline void cores_run(struct cores *c, const struct cores_step *step, double until_s)
{
	if (c->next_s == 0)
		c->next_s = c->now_s + cores_draw(c, 1 / step->arrivals);
	while (c->now_s < until_s) {
		double speed = c->n <= step->cores ? 1 : step->cores / c->n, done_s = INFINITY, to_s;
		unsigned first = 0;

		for (unsigned i = 0; i < c->n; i++)
			if (c->jobs[i].left_s < done_s) {
				done_s = c->jobs[i].left_s;
				first = i;
			}
		to_s = fmin(until_s, fmin(c->next_s, c->now_s + done_s / speed));
		for (unsigned i = 0; i < c->n; i++)
			c->jobs[i].left_s -= (to_s - c->now_s) * speed;
		c->now_s = to_s;
		if (c->n != 0 && c->jobs[first].left_s <= 1e-12)
			cores_end(c, first, step);
		else if (to_s >= c->next_s)
			cores_arrive(c, step);
	}
}

/* The same, and what was counted in it. */
static inline struct cores_count cores_count(struct cores *c, const struct cores_step *step, double until_s)
{
	memset(&c->count, 0, sizeof(c->count));
	cores_run(c, step, until_s);
	return c->count;
}

/* The number in force. */
static inline uint64_t cores_number(const struct cores *c)
{
	struct shmlimit_result r = { 0 };

	(void)shmlimit_peek(at_time(c->l, cores_ns(c)), c->rule, "service", 7, 0, &r);
	return r.limit;
}

#endif
