/*
 * limits: several processes, one GCRA rule and a limit for each key: each key passes its own capacity, however the processes
 * meet. Then one key whose limits change: each is admitted no more than alone, and all together spend no more time than
 * there was (see gcra.h).
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "process.h"

#define WORKERS 4
#define T0 ((uint64_t)1000 * 86400 * 1000000000)
#define ROUNDS 20000

struct play {
	struct shmlimit *l;
	int rule;
	uint64_t keys;
	_Atomic uint64_t passed, spent[2], wrong;
};

/* A key's own: no two alike, and whole numbers for the capacity to be seen. */
static struct shmlimit_limit limit_of(uint64_t key)
{
	return (struct shmlimit_limit){ .struct_size = sizeof(struct shmlimit_limit),
		                        .capacity = 1 + key % 5,
		                        .refill = 1 + key % 3,
		                        .period_ns = 1000000000 + key };
}

/* All at one instant: of each key all processes together get the capacity. */
static void distinct(struct crew *crew, int index)
{
	struct play *play = crew->arg;
	uint64_t passed = 0;

	for (uint64_t i = 0; i < play->keys; i++) {
		uint64_t key = (i + (uint64_t)index * 7) % play->keys;
		struct shmlimit_limit limit = limit_of(key);

		for (int n = 0; n < 3; n++)
			passed += by_limit(at_time(play->l, T0), SHMLIMIT_TAKE, play->rule, &key, sizeof(key), 1,
			                   &limit, NULL) == SHMLIMIT_ALLOWED;
	}
	atomic_fetch_add(&play->passed, passed);
}

/* One key, at one instant, by two limits: 100 tokens of which each costs 1 s, and 1000 of which each costs 50 ms. */
static const struct shmlimit_limit alternate[2] = {
	{ .struct_size = sizeof(struct shmlimit_limit), .capacity = 100, .refill = 1, .period_ns = 1000000000 },
	{ .struct_size = sizeof(struct shmlimit_limit), .capacity = 1000, .refill = 1, .period_ns = 50000000 },
};

static void changing(struct crew *crew, int index)
{
	struct play *play = crew->arg;

	preempt_often();
	for (uint64_t i = 0; i < ROUNDS / WORKERS; i++) {
		unsigned which = (unsigned)(i + (uint64_t)index) % 2;
		struct shmlimit_result r;
		int answer = by_limit(at_time(play->l, T0), SHMLIMIT_TAKE, play->rule, "changing", 8, 1,
		                      &alternate[which], &r);

		if (answer == SHMLIMIT_ALLOWED)
			atomic_fetch_add(&play->spent[which], 1);
		else if (answer != SHMLIMIT_DENIED || r.retry_after_ns == 0)
			atomic_fetch_add(&play->wrong, 1);
	}
}

int main(void)
{
	struct shmlimit_rule rule = { .struct_size = sizeof(rule), .algorithm = SHMLIMIT_GCRA };
	struct play *play = shared_memory(sizeof(*play));
	uint64_t want = 0, spent_ms;

	play->keys = scaled(SWAPS_ARE_PRIVATE ? 1000 : 1000000);
	stage_begin("limits");
	play->l = stage_create(2 * play->keys + 64, 4, SHMLIMIT_FULL_DENY);
	play->rule = shmlimit_rule_set(play->l, "limits", &rule);
	for (uint64_t key = 0; key < play->keys; key++)
		want += limit_of(key).capacity;
	is(crew_run(WORKERS, distinct, play), 0, "all workers end well");
	if (!SWAPS_ARE_PRIVATE)
		is(atomic_load(&play->passed), want, "each of many keys passes its own limit, over all processes");
	is(crew_run(WORKERS, changing, play), 0, "all workers end well that change limits");
	spent_ms = 1000 * atomic_load(&play->spent[0]) + 50 * atomic_load(&play->spent[1]);
	if (!SWAPS_ARE_PRIVATE)
		ok(atomic_load(&play->spent[0]) <= 100 && atomic_load(&play->spent[1]) <= 1000,
		   "each limit is admitted no more than its capacity");
	if (!SWAPS_ARE_PRIVATE)
		ok(spent_ms <= 100000, "no more time is spent than the longer limit has (%" PRIu64 " ms)", spent_ms);
	ok(spent_ms >= 50000, "the limits are used (%" PRIu64 " ms)", spent_ms);
	is(atomic_load(&play->wrong), 0, "each denial says when");
	is(shmlimit_verify(stage_name, NULL, 0), 0, "the segment is sound");
	shmlimit_close(play->l);
	return tap_done();
}
