/*
 * grow: keys, new and old, under each verb, while the table grows.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "growing.h"

static const struct shmlimit_rule rule = { .capacity = CAPACITY, .refill = 1, .period_ns = SECOND };

static struct shmlimit *set_key(void)
{
	struct shmlimit *l = set_growing(rule);

	take_before(l, KEY, 1);
	return l;
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
	return set_growing(rule);
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

#define MANY 100
#define HALF 50

static struct shmlimit *set_half(void)
{
	struct shmlimit *l = set_growing((struct shmlimit_rule){ .capacity = MANY, .refill = 1, .period_ns = SECOND });

	take_before(l, KEY, MANY - HALF);
	return l;
}

static void act_all_verbs(unsigned who)
{
	if (who == 0) {
		grow_twice();
		return;
	}
	refund(KEY, 2);
	take(KEY, 40 + who);
	charge(KEY, 1 + who);
	refund(KEY, 1);
	take(KEY, 1);
}

static void judge_half(void)
{
	law_total(KEY, HALF);
	law_sound();
	law_left();
}

static const struct scene all_verbs = {
	.title = "what is charged beside that goes off once, and what is given back comes on once",
	.actors = 3,
	.mortals = 2,
	.set = set_half,
	.act = act_all_verbs,
	.judge = judge_half,
};

/* One resets the key, or the rule. */
static struct call born;

static void act_reset(unsigned who)
{
	uint32_t key = KEY;
	int error;

	if (who < 2) {
		act_one_key(who);
		take(KEY, CAPACITY);
		return;
	}
	born = (struct call){ .began = ++stage.moments };
	actor_calls();
	error = shmlimit_reset(handle(), stage.rule, schedule.seed % 2 != 0 ? &key : NULL, sizeof(key));
	if (error < 0)
		blame("reset: %s", shmlimit_strerror(error));
	born.ended = ++stage.moments;
	take(KEY, 1);
}

static void judge_reset(void)
{
	law_since(KEY, &born, CAPACITY);
	law_sound();
	law_left();
}

static const struct scene reset = {
	.title = "what was there before a reset does not come back",
	.actors = 3,
	.mortals = 2,
	.set = set_key,
	.act = act_reset,
	.judge = judge_reset,
};

#define GIVEN 10

static struct shmlimit *set_lease(void)
{
	struct shmlimit *l = set_growing((struct shmlimit_rule){
		.algorithm = SHMLIMIT_LEASE, .capacity = GIVEN, .refill = 1, .period_ns = SECOND });

	deposit_before(l, KEY, GIVEN);
	return l;
}

static void act_lease(unsigned who)
{
	if (who == 0) {
		grow_twice();
		return;
	}
	take(KEY, 3);
	take(KEY, 2);
	take(KEY, who);
}

static void judge_lease(void)
{
	law_spent(GIVEN);
}

static const struct scene lease = {
	.title = "what was leased is spent once at most",
	.actors = 4,
	.mortals = 3,
	.set = set_lease,
	.act = act_lease,
	.judge = judge_lease,
};

int main(void)
{
	play(&one_key);
	play(&newcomers);
	play(&all_verbs);
	play(&reset);
	play(&lease);
	return tap_done();
}
