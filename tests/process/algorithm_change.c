/*
 * algorithm_change: a rule gets another algorithm, from each to each other one, while processes decide
 * and writers are killed. The rule is never missing: a call that its algorithm has is answered, and any other
 * fails as it does under any rule of that algorithm.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "process.h"

#include "algorithm.h"
#include "rule_writer.h"
#include "segment.h"

#define DECIDERS 3
#define KEYS 16
#define CAPACITY 5
#define HOUR_NS ((uint64_t)3600 * 1000000000)

struct play {
	struct shmlimit *l;
	int rule;
	uint64_t seed;
	_Atomic int stop;
	_Atomic uint64_t changes, calls, answers, missing, wrong;
	_Atomic int worst;
};

static struct play *play;

static struct shmlimit_rule of(uint32_t algorithm)
{
	struct shmlimit_rule rule = { .struct_size = sizeof(rule), .algorithm = algorithm, .period_ns = HOUR_NS };

	rule.capacity = algorithm == SHMLIMIT_WARMUP ? 0 : CAPACITY;
	if (algorithm == SHMLIMIT_FUNNEL || algorithm == SHMLIMIT_GCRA || algorithm == SHMLIMIT_LEASE)
		rule.refill = CAPACITY;
	if (algorithm == SHMLIMIT_WARMUP) {
		rule.refill = CAPACITY;
		rule.warmup_ns = 2 * HOUR_NS;
	}
	return rule;
}

/* One call, of whichever algorithm. */
static int call(struct rng *rng)
{
	const struct shmlimit_count_request one = { .struct_size = sizeof(one), .n = 1, .bound = INT64_MAX };
	uint64_t key = rng_below(rng, KEYS);
	struct shmlimit_place place;
	struct shmlimit_rule rule = { .struct_size = sizeof(rule) };
	int answer;

	switch (rng_below(rng, 6)) {
	case 0:
		return shmlimit_take(play->l, play->rule, &key, sizeof(key), 1, NULL);
	case 1:
		return shmlimit_peek(play->l, play->rule, &key, sizeof(key), 1, NULL);
	case 2:
		return shmlimit_refund(play->l, play->rule, &key, sizeof(key), 1, NULL);
	case 3:
		answer = shmlimit_count(play->l, play->rule, &key, sizeof(key), &one, NULL);
		return answer > 0 ? SHMLIMIT_DENIED : answer;
	case 4:
		place.struct_size = sizeof(place);
		answer = shmlimit_enter(play->l, play->rule, &key, sizeof(key), &place, NULL);
		if (answer == SHMLIMIT_ALLOWED)
			(void)shmlimit_leave(play->l, play->rule, &key, sizeof(key), &place);
		return answer;
	default:
		answer = shmlimit_rule_get(play->l, play->rule, &rule);
		return answer == 0 && shmlimit_rule_find(play->l, "live") != play->rule ? -ESRCH : answer;
	}
}

static void decider(struct crew *crew, int index)
{
	struct rng rng = { play->seed + (uint64_t)index };

	(void)crew;
	while (!atomic_load(&play->stop)) {
		int answer = call(&rng);

		if (atomic_fetch_add(&play->calls, 1) % 64 == 0)
			sched_yield();
		if (answer == SHMLIMIT_ALLOWED || answer == SHMLIMIT_DENIED) {
			atomic_fetch_add(&play->answers, 1);
		} else if (answer == -ESRCH) {
			atomic_fetch_add(&play->missing, 1);
		} else if (answer != -EOPNOTSUPP) {
			atomic_fetch_add(&play->wrong, 1);
			atomic_store(&play->worst, answer);
		}
	}
}

/* All ordered pairs of algorithms come in turn. */
static uint32_t algorithm_at(uint64_t n)
{
	uint64_t pair = n / 2 % (ALGORITHMS * ALGORITHMS);

	return (uint32_t)(n % 2 == 0 ? pair / ALGORITHMS : pair % ALGORITHMS);
}

static void writer(struct crew *crew, int index)
{
	(void)crew;
	(void)index;
	while (!atomic_load(&play->stop)) {
		struct shmlimit_rule rule = of(algorithm_at(atomic_load(&play->changes)));
		int id = rule_replace(play->l, "live", &rule, SEGMENT_LOCK_WAIT_NS, when_clock());

		if (id != play->rule) {
			atomic_fetch_add(&play->wrong, 1);
			atomic_store(&play->worst, id);
		}
		atomic_fetch_add(&play->changes, 1);
	}
}

static void until(uint64_t changes, uint64_t answers)
{
	while (atomic_load(&play->changes) < changes || atomic_load(&play->answers) < answers)
		sched_yield();
}

/* Slots that no rule counts any more, once a writer has been through. */
static uint64_t stale(void)
{
	struct shmlimit_info info = { .struct_size = sizeof(info) };
	uint64_t n = 0;

	shmlimit_info(play->l, &info);
	for (uint64_t i = 0; i < info.slots; i++) {
		struct shmlimit_slot slot = { .struct_size = sizeof(slot) };

		n += shmlimit_slot(play->l, i, &slot, 0) == 0 && slot.state == SHMLIMIT_SLOT_STALE;
	}
	return n;
}

int main(void)
{
	uint64_t kills = scaled(200);
	struct shmlimit_rule rule = of(SHMLIMIT_FUNNEL);
	struct crew deciders, writers;
	int killed = 0, sound = 1;

	stage_begin("algorithm_change");
	play = shared_memory(sizeof(*play));
	play->seed = rng_seed();
	play->l = stage_create(256, 4, SHMLIMIT_FULL_EVICT);
	play->rule = shmlimit_rule_set(play->l, "live", &rule);
	atomic_store(&play->changes, 1);

	crew_start(&deciders, DECIDERS, decider, NULL);
	crew_start(&writers, 1, writer, NULL);
	until(2 * ALGORITHMS * ALGORITHMS, 1000);
	for (uint64_t i = 1; i <= kills; i++) {
		until(atomic_load(&play->changes) + 1 + i % 3, 0);
		killed += crew_kill(&writers, 0);
		sound = sound && shmlimit_verify(stage_name, NULL, 0) == 0;
		crew_spawn(&writers, 0, 0);
	}
	until(atomic_load(&play->changes) + 2 * ALGORITHMS * ALGORITHMS, atomic_load(&play->answers) + 1000);
	atomic_store(&play->stop, 1);
	ok(wait_for(writers.pid[0]), "the last writer ends as it should");
	is(crew_wait(&deciders), 0, "the processes that decide end as they should");
	is(killed, (long long)kills, "writers are killed");
	ok(sound, "the segment is sound after each kill");
	is(atomic_load(&play->missing), 0, "the rule was never missing");
	is(atomic_load(&play->wrong), 0, "no call failed in another way (%s)",
	   shmlimit_strerror(atomic_load(&play->worst)));
	rule = of(SHMLIMIT_FUNNEL);
	if (rule_replace(play->l, "live", &rule, SEGMENT_LOCK_WAIT_NS, when_clock()) != play->rule)
		bail("rule_replace");
	rule = of(SHMLIMIT_GCRA);
	is(rule_replace(play->l, "live", &rule, SEGMENT_LOCK_WAIT_NS, when_clock()), play->rule,
	   "the rule keeps its id");
	is((long long)stale(), 0, "no slot of an algorithm before is left");
	for (uint64_t key = 0; key < KEYS; key++) {
		int answer, n = 0;

		while ((answer = shmlimit_take(play->l, play->rule, &key, sizeof(key), 1, NULL)) == SHMLIMIT_ALLOWED)
			n++;
		if (n != CAPACITY)
			bail("key %d is admitted %d times", (int)key, n);
	}
	ok(1, "each key is full under the last algorithm");
	shmlimit_close(play->l);
	return tap_done();
}
