/*
 * take: several actors take from keys that have their slots (I1, I2, I5).
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "stage.h"

#define KEY 7
#define LEFT 5
#define TOKEN_NS 1000

static struct shmlimit *set_key(void)
{
	struct shmlimit *l =
		stage_set(SHMLIMIT_FULL_DENY, 2,
	                  (struct shmlimit_rule){ .capacity = LEFT + 1, .refill = 1, .period_ns = TOKEN_NS });
	uint32_t key = KEY;

	(void)shmlimit_take(l, stage.rule, &key, sizeof(key), 1, NULL);
	return l;
}

static void act(unsigned who)
{
	take(KEY, 1 + who);
	take(KEY, 1);
	take(KEY, 1);
}

static void judge_standing(void)
{
	law_total(KEY, LEFT);
	law_denials(LEFT);
	law_sound();
}

static const struct scene standing = {
	.title = "while time stands a key is admitted its capacity, and a denied call came too late",
	.actors = 3,
	.mortals = 2,
	.set = set_key,
	.act = act,
	.judge = judge_standing,
};

static void judge_refilling(void)
{
	law_burst(KEY, LEFT + 1, 1, TOKEN_NS, 2);
	law_sound();
}

static const struct scene refilling = {
	.title = "in no stretch of time a key is admitted more than its capacity and what refilled",
	.actors = 3,
	.mortals = 2,
	.away_ns = { TOKEN_NS, TOKEN_NS / 3, 10 * TOKEN_NS },
	.set = set_key,
	.act = act,
	.judge = judge_refilling,
};

/* As long as it is never full, nothing that comes back is lost; no actor is stopped for that long. */
static void judge_used(void)
{
	uint64_t refilled = (schedule.now_ns - START_NS) / TOKEN_NS;

	if (refilled == 0)
		law_denials(LEFT);
	law_total(KEY, LEFT + (int64_t)refilled);
	law_sound();
}

static void act_at_once(unsigned who)
{
	take(KEY, 2);
	take(KEY, 1 + who % 2);
	take(KEY, 1);
}

static struct shmlimit *set_large(void)
{
	struct shmlimit *l = stage_set(SHMLIMIT_FULL_DENY, 2,
	                               (struct shmlimit_rule){ .capacity = 1000, .refill = 1, .period_ns = TOKEN_NS });
	uint32_t key = KEY;

	(void)shmlimit_take(l, stage.rule, &key, sizeof(key), 1000 - LEFT, NULL);
	return l;
}

static const struct scene used = {
	.title = "all that refilled can be had, to the token",
	.actors = 3,
	.away_ns = { TOKEN_NS, TOKEN_NS / 3 },
	.set = set_large,
	.act = act_at_once,
	.judge = judge_used,
};

/* A capacity so large that state words have no quota. */
static struct shmlimit *set_many(void)
{
	struct shmlimit *l =
		stage_set(SHMLIMIT_FULL_DENY, 2,
	                  (struct shmlimit_rule){ .capacity = 10000000, .refill = 1, .period_ns = TOKEN_NS });
	uint32_t key = KEY;

	(void)shmlimit_take(l, stage.rule, &key, sizeof(key), 10000000 - LEFT, NULL);
	return l;
}

static const struct scene used_of_many = {
	.title = "a key of many tokens is admitted what it has left and all that refilled, to the token",
	.actors = 3,
	.away_ns = { TOKEN_NS, TOKEN_NS / 3 },
	.set = set_many,
	.act = act_at_once,
	.judge = judge_used,
};

/* One clock is read late: by less than half of the time to full, which is the slack. */
#define BEHIND_NS (2 * TOKEN_NS)

static void act_behind(unsigned who)
{
	schedule.actor[who].behind_ns = who == 0 ? BEHIND_NS : 0;
	act(who);
}

static void judge_behind(void)
{
	law_burst(KEY, LEFT + 1, 1, TOKEN_NS, BEHIND_NS + 2);
	if (schedule.now_ns == START_NS)
		law_total(KEY, LEFT);
	law_sound();
}

static const struct scene behind = {
	.title = "a clock that is behind gives no more than it is behind by, and takes nothing",
	.actors = 3,
	.mortals = 2,
	.away_ns = { TOKEN_NS, TOKEN_NS / 3, 10 * TOKEN_NS },
	.set = set_key,
	.act = act_behind,
	.judge = judge_behind,
};

/* Batches: each takes what is left. */
static void act_some(unsigned who)
{
	take_some(KEY, 2 + who, NULL, 1);
	take_some(KEY, 3, NULL, 1);
	take(KEY, 1);
}

static const struct scene batches = {
	.title =
		"calls that take as many as fit get what is left to the token, and no call is denied before that is gone",
	.actors = 3,
	.mortals = 2,
	.set = set_key,
	.act = act_some,
	.judge = judge_standing,
};

static const struct scene batches_refilling = {
	.title = "calls that take as many as fit get no more than the capacity and what refilled",
	.actors = 3,
	.mortals = 2,
	.away_ns = { TOKEN_NS, TOKEN_NS / 3, 10 * TOKEN_NS },
	.set = set_key,
	.act = act_some,
	.judge = judge_refilling,
};

static const struct scene batches_of_many = {
	.title = "calls that take as many as fit of a key of many tokens get all that refilled, to the token",
	.actors = 3,
	.away_ns = { TOKEN_NS, TOKEN_NS / 3 },
	.set = set_many,
	.act = act_some,
	.judge = judge_used,
};

int main(void)
{
	play(&standing);
	play(&refilling);
	play(&used);
	play(&used_of_many);
	play(&behind);
	play(&batches);
	play(&batches_refilling);
	play(&batches_of_many);
	return tap_done();
}
