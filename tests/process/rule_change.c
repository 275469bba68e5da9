/*
 * rule_change: a rule is changed thousands of times while eight processes decide, with
 * writers killed in the middle (I1, I3, I4 for rule changes).
 *
 * The clock stands still and the two versions of the rule take turns, so that a
 * key may be admitted the larger capacity and no more: converting a funnel to
 * other parameters, or forgetting to, gives nothing away. No decision fails. Then
 * the clock goes on, and what comes back is bounded by the faster rate.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "process.h"

#define SECOND ((uint64_t)1000000000)
#define T0 (1000 * SECOND)
#define DECIDERS 8
#define KEYS 64
#define SMALL 100
#define LARGE 250

struct play {
	struct shmlimit *l;
	int rule;
	uint64_t seed;
	_Atomic uint64_t now_ns;
	_Atomic int stop;
	_Atomic uint64_t changes, errors, calls;
	_Atomic uint64_t admitted[KEYS];
};

static struct play *play;

static void decider(struct crew *crew, int index)
{
	struct rng rng = { play->seed + (uint64_t)index };

	(void)crew;
	while (!atomic_load(&play->stop)) {
		uint64_t key = rng_below(&rng, KEYS), cost = 1 + rng_below(&rng, 3);
		int answer = shmlimit_take(at_time(play->l, atomic_load(&play->now_ns)), play->rule, &key, sizeof(key),
		                           cost, NULL);

		if (atomic_fetch_add(&play->calls, 1) % 64 == 0)
			sched_yield(); /* eight of them would starve the writer */
		if (answer == SHMLIMIT_ALLOWED)
			atomic_fetch_add(&play->admitted[key], cost);
		else if (answer != SHMLIMIT_DENIED)
			atomic_fetch_add(&play->errors, 1);
	}
}

static struct shmlimit_rule version(uint64_t n)
{
	return (struct shmlimit_rule){
		.struct_size = sizeof(struct shmlimit_rule),
		.capacity = n % 2 ? LARGE : SMALL,
		.refill = n % 2 ? 30 : 70,
		.period_ns = SECOND,
		.max_wait_ns = n % 3 * SECOND,
	};
}

/* One writer: changes the rule as fast as it can, until it is killed or told to stop. */
static void writer(struct crew *crew, int index)
{
	(void)crew;
	(void)index;
	while (!atomic_load(&play->stop)) {
		struct shmlimit_rule rule = version(atomic_load(&play->changes));

		if (shmlimit_rule_set(at_time(play->l, atomic_load(&play->now_ns)), "live", &rule) != play->rule)
			atomic_fetch_add(&play->errors, 1);
		atomic_fetch_add(&play->changes, 1);
	}
}

static uint64_t most_admitted(void)
{
	uint64_t most = 0;

	for (int key = 0; key < KEYS; key++)
		if (atomic_load(&play->admitted[key]) > most)
			most = atomic_load(&play->admitted[key]);
	return most;
}

static void until(uint64_t changes, uint64_t calls)
{
	while (atomic_load(&play->changes) < changes || atomic_load(&play->calls) < calls)
		sched_yield();
}

int main(void)
{
	uint64_t rounds = scaled(100), changes = scaled(10000), most;
	struct shmlimit_rule rule = version(1);
	struct crew deciders, writers;
	int killed = 0, finished = 1;

	stage_begin("rule_change");
	play = shared_memory(sizeof(*play));
	play->seed = rng_seed();
	play->l = stage_create(1024, 4, SHMLIMIT_FULL_EVICT);
	atomic_store(&play->now_ns, T0);
	play->rule = shmlimit_rule_set(at_time(play->l, T0), "live", &rule);
	atomic_store(&play->changes, 2);

	crew_start(&deciders, DECIDERS, decider, NULL);
	crew_start(&writers, 1, writer, NULL);
	until(changes, changes + 1);
	ok(atomic_load(&play->changes) >= changes, "a rule is changed %llu times while eight processes decide",
	   (unsigned long long)changes);
	most = most_admitted();
	ok(most <= LARGE, "no key is admitted more than the larger rule permits (%llu of %d)", (unsigned long long)most,
	   LARGE);

	/*
	 * Half a second passes in all, and each time a writer is killed wherever it is. No more than that: a decider
	 * that gets no turn for a while would go on with a reading of the clock that is older than the slack.
	 */
	for (uint64_t i = 1; i <= rounds; i++) {
		uint64_t seen = atomic_load(&play->changes);

		atomic_store(&play->now_ns, T0 + i * (SECOND / 2) / rounds);
		until(seen + 1 + i % 3, 0);
		killed += crew_kill(&writers, 0);
		crew_spawn(&writers, 0, 0);
		finished = finished && shmlimit_verify(stage_name, NULL, 0) == 0;
	}
	atomic_store(&play->stop, 1);
	ok(wait_for(writers.pid[0]), "the last writer ends as it should");
	is(crew_wait(&deciders), 0, "the processes that decide end as they should");
	is(killed, (long long)rounds, "writers are killed");
	ok(finished, "the segment is sound after each kill");
	most = most_admitted();
	ok(most <= LARGE + 35 + 1, "no more is admitted as time goes on than the faster rate gives");
	ok(atomic_load(&play->calls) > changes, "decisions were made all the while");
	is(atomic_load(&play->errors), 0, "no decision failed");
	is(counters_of(play->l, play->rule).evictions + counters_of(play->l, play->rule).no_slot, 0,
	   "for want of a slot neither");
	shmlimit_close(play->l);
	return tap_done();
}
