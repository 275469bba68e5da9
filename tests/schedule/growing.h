/*
 * growing: what scenes share in which the table grows while others decide: each key is migrated to the new table as it
 * is, beside processes that look for it there or still in the old table (I1, I2, I3, I4). See lib/table/migrate.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_SCHEDULE_GROWING_H
#define TESTS_SCHEDULE_GROWING_H

#ifndef SCHEDULES
#define SCHEDULES 5000 /* each is long */
#endif
#include "stage.h"

#define KEY 7
#define OTHER 8
#define CAPACITY 4

static inline struct shmlimit *set_growing(struct shmlimit_rule scene_rule)
{
	struct shmlimit *l = stage_set(SHMLIMIT_FULL_DENY, 2, scene_rule);

	stage.growing = 1;
	return l;
}

static inline void take_before(struct shmlimit *l, uint32_t key, uint64_t cost)
{
	if (shmlimit_take(l, stage.rule, &key, sizeof(key), cost, NULL) != SHMLIMIT_ALLOWED)
		bail("key %u cannot take", key);
}

/* A lease of this many, of which none is spent. */
static inline void deposit_before(struct shmlimit *l, uint32_t key, uint64_t tokens)
{
	if (shmlimit_lease_deposit(l, stage.rule, &key, sizeof(key), tokens, 0, 0, SECOND, NULL) != SHMLIMIT_ALLOWED)
		bail("nothing is deposited for key %u", key);
}

/* What was taken before the schedule began, for laws that look back. */
static inline void taken_before(uint32_t key, int64_t tokens)
{
	stage.calls[stage.n++] = (struct call){ .key = key,
		                                .tokens = tokens,
		                                .began_ns = START_NS,
		                                .ended_ns = START_NS,
		                                .began = stage.moments + 1,
		                                .ended = stage.moments + 2 };
	stage.moments += 2;
}

/* To this many slots, 0: to leave the old table. There may be keys on the way yet. */
static inline void grow(uint64_t slots)
{
	int error;

	actor_calls();
	error = shmlimit_grow(handle(), slots);
	if (error != 0 && error != -EALREADY)
		blame("grow: %s", shmlimit_strerror(error));
}

static inline void grow_twice(void)
{
	grow(2 * SLOTS);
	grow(0);
	grow(4 * SLOTS);
	grow(0);
}

/* When all have refilled there is nothing to carry, and the old table is left. */
static inline void law_left(void)
{
	uint64_t now_ns = schedule.now_ns;
	int error;

	schedule.now_ns += 200 * DAY_NS;
	error = shmlimit_grow(stage.l, 0);
	if (error != 0)
		blame("the table before is not left: %s", shmlimit_strerror(error));
	schedule.now_ns = now_ns;
	law_sound();
}

static inline void act_one_key(unsigned who)
{
	if (who == 0) {
		grow_twice();
		return;
	}
	take(KEY, 1);
	take(KEY, who);
	take(KEY, 1);
}

static inline void judge_one_key(void)
{
	law_total(KEY, CAPACITY - 1);
	law_denials(CAPACITY - 1);
	law_sound();
	law_left();
}

/* Of a lease nothing is spent twice. */
static inline void law_spent(uint64_t given)
{
	uint64_t spent = 0, rest = left(KEY);

	for (unsigned i = 0; i < stage.n; i++)
		spent += was_taken(&stage.calls[i]) ? (uint64_t)stage.calls[i].tokens : 0;
	if (spent + rest > given)
		blame("spent %" PRIu64 ", has %" PRIu64 ": were given %" PRIu64, spent, rest, given);
	law_sound();
	law_left();
}

#endif
