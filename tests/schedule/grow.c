/*
 * grow: the table grows while others decide: each key is carried over into the
 * larger one as it is, beside who looks for it there or still in the one before
 * (I1, I2, I3, I4). See lib/carry.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "stage.h"

#define KEY 7
#define OTHER 8
#define CAPACITY 4

static const struct shmlimit_rule rule = { .capacity = CAPACITY, .count = 1, .period_ns = SECOND };

static struct shmlimit *set(struct shmlimit_rule scene_rule)
{
	struct shmlimit *l = stage_set(SHMLIMIT_FULL_DENY, 2, scene_rule);

	stage.growing = 1;
	return l;
}

static void take_before(struct shmlimit *l, uint32_t key, uint64_t cost)
{
	if (shmlimit_take(l, stage.rule, &key, sizeof(key), cost, NULL) != SHMLIMIT_ALLOWED)
		bail("key %u cannot take", key);
}

/* To so many slots, 0: to leave the table before. There may be keys on the way yet. */
static void grow(uint64_t slots)
{
	int error;

	actor_calls();
	error = shmlimit_grow(handle(), slots);
	if (error != 0 && error != -EALREADY)
		blame("grow: %s", shmlimit_strerror(error));
}

static void grow_twice(void)
{
	grow(2 * SLOTS);
	grow(0);
	grow(4 * SLOTS);
	grow(0);
}

/* When all have refilled there is nothing to carry, and the table before is left. */
static void law_left(void)
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

/* ---- Keys that were there before, and new ones ---- */

static struct shmlimit *set_key(void)
{
	struct shmlimit *l = set(rule);

	take_before(l, KEY, 1);
	return l;
}

static void act_one_key(unsigned who)
{
	if (who == 0) {
		grow_twice();
		return;
	}
	take(KEY, 1);
	take(KEY, who);
	take(KEY, 1);
}

static void judge_one_key(void)
{
	law_total(KEY, CAPACITY - 1);
	law_denials(CAPACITY - 1);
	law_sound();
	law_left();
}

static const struct scene one_key = {
	.title = "a key gets no token and loses none while the table grows, twice",
	.actors = 3,
	.mortals = 2,
	.set = set_key,
	.act = act_one_key,
	.judge = judge_one_key,
};

static struct shmlimit *set_empty(void)
{
	return set(rule);
}

static void act_newcomers(unsigned who)
{
	if (who == 0) {
		grow_twice();
		return;
	}
	take(who == 2 ? OTHER : KEY, 3);
	take(KEY, 1);
	take(OTHER, 2);
}

static void judge_newcomers(void)
{
	law_total(KEY, CAPACITY);
	law_total(OTHER, CAPACITY);
	law_denials(CAPACITY);
	law_sound();
	law_left();
}

static const struct scene newcomers = {
	.title = "new keys are admitted exactly their capacity, whichever table they are claimed in",
	.actors = 4,
	.mortals = 2,
	.set = set_empty,
	.act = act_newcomers,
	.judge = judge_newcomers,
};

int main(void)
{
	play(&one_key);
	play(&newcomers);
	return tap_done();
}
