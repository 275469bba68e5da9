/*
 * verbs: the other operations, beside one another: each token is taken, borrowed, charged or given back exactly once
 * (I1, I2, I3).
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "stage.h"

#define KEY 7
#define OTHER 8
#define CAPACITY 100
#define LEFT 50

static struct shmlimit *set_half(void)
{
	struct shmlimit *l = stage_set(
		SHMLIMIT_FULL_DENY, 2,
		(struct shmlimit_rule){
			.capacity = CAPACITY, .refill = 1, .period_ns = SECOND, .max_wait_ns = CAPACITY * SECOND });
	uint32_t key = KEY;

	(void)shmlimit_take(l, stage.rule, &key, sizeof(key), CAPACITY - LEFT, NULL);
	return l;
}

static void reserve(uint32_t key, uint64_t tokens)
{
	struct call *c = call_begin(key, (int64_t)tokens);

	actor_calls();
	call_end(c, shmlimit_reserve(stage.l, stage.rule, &key, sizeof(key), tokens, SECOND, NULL));
}

static void act_all_verbs(unsigned who)
{
	take(KEY, 90);
	reserve(KEY, 1 + who);
	refund(KEY, 2);
	charge(KEY, 1 + who);
	take(KEY, 1);
}

static void judge(void)
{
	law_total(KEY, LEFT);
	law_sound();
}

/* A capacity so large that state words have no quota. */
static struct shmlimit *set_many(void)
{
	struct shmlimit *l = stage_set(
		SHMLIMIT_FULL_DENY, 2,
		(struct shmlimit_rule){
			.capacity = 10000000, .refill = 1, .period_ns = 1000, .max_wait_ns = CAPACITY * 1000 });
	uint32_t key = KEY;

	(void)shmlimit_take(l, stage.rule, &key, sizeof(key), 10000000 - LEFT, NULL);
	return l;
}

static const struct scene all_verbs_of_many = {
	.title =
		"what is taken of many tokens, reserved and charged goes off once, and what is given back comes on once",
	.actors = 3,
	.mortals = 2,
	.set = set_many,
	.act = act_all_verbs,
	.judge = judge,
};

static const struct scene all_verbs = {
	.title = "what is taken, reserved and charged goes off once, and what is given back comes on once",
	.actors = 3,
	.mortals = 2,
	.set = set_half,
	.act = act_all_verbs,
	.judge = judge,
};

/* Of OTHER there is one: all but one of the calls that ask for both give back what they had of KEY. */
static struct shmlimit *set_scarce(void)
{
	struct shmlimit *l = set_half();
	uint32_t key = OTHER;

	(void)shmlimit_take(l, stage.rule, &key, sizeof(key), CAPACITY - 1, NULL);
	return l;
}

static void act_both(unsigned who)
{
	uint32_t keys[2] = { KEY, OTHER };
	struct shmlimit_request requests[2] = {
		{ .rule = stage.rule, .key = &keys[0], .key_len = sizeof(keys[0]), .cost = 3 },
		{ .rule = stage.rule, .key = &keys[1], .key_len = sizeof(keys[1]), .cost = 1 },
	};

	for (int i = 0; i < 2; i++) {
		struct call *first = call_begin(KEY, 3), *second = call_begin(OTHER, 1);
		int answer;

		actor_calls();
		answer = shmlimit_take_all(stage.l, requests, 2, NULL, NULL);
		call_end(second, answer);
		call_end(first, answer);
	}
	take(KEY, 1 + who);
}

static void judge_both(void)
{
	law_total(KEY, LEFT);
	law_total(OTHER, 1);
	law_sound();
}

static const struct scene both = {
	.title = "a call that gets one key and not the other gives back what it took, and no more",
	.actors = 3,
	.mortals = 2,
	.set = set_scarce,
	.act = act_both,
	.judge = judge_both,
};

/* The scarce one first: nothing is given back, and each call's one time may be from before others took. */
#define FAST 5
#define TOKEN_NS 1000

static struct shmlimit *set_fast(void)
{
	return stage_set(SHMLIMIT_FULL_DENY, 2,
	                 (struct shmlimit_rule){ .capacity = FAST, .refill = 1, .period_ns = TOKEN_NS });
}

static void act_fast(unsigned who)
{
	uint32_t keys[2] = { KEY, OTHER + who };
	struct shmlimit_request requests[2] = {
		{ .rule = stage.rule, .key = &keys[0], .key_len = sizeof(keys[0]), .cost = 2 },
		{ .rule = stage.rule, .key = &keys[1], .key_len = sizeof(keys[1]), .cost = 1 },
	};

	for (int i = 0; i < 3; i++) {
		struct call *c = call_begin(KEY, 2);

		actor_calls();
		call_end(c, shmlimit_take_all(stage.l, requests, 2, NULL, NULL));
	}
}

static void judge_fast(void)
{
	law_burst(KEY, FAST, 1, TOKEN_NS, 2);
	law_sound();
}

static const struct scene fast = {
	.title = "several limits at once are no way to get more of one than refilled",
	.actors = 3,
	.mortals = 2,
	.away_ns = { TOKEN_NS, FAST *TOKEN_NS, 20 * TOKEN_NS },
	.set = set_fast,
	.act = act_fast,
	.judge = judge_fast,
};

/* One key is made full again and again: that takes nothing from the other, nor gives it anything. */
static void act_resetting(unsigned who)
{
	uint32_t key = OTHER;

	if (who != 0) {
		take(who == 1 ? KEY : OTHER, 90);
		take(KEY, 20);
		take(OTHER, 1);
		take(KEY, 20);
		return;
	}
	for (int i = 0; i < 3; i++) {
		actor_calls();
		if (shmlimit_reset(stage.l, stage.rule, &key, sizeof(key)) < 0)
			blame("reset failed");
	}
}

static const struct scene resetting = {
	.title = "a key that is reset is full, and no other key is",
	.actors = 3,
	.mortals = 1,
	.set = set_scarce,
	.act = act_resetting,
	.judge = judge,
};

int main(void)
{
	play(&all_verbs);
	play(&all_verbs_of_many);
	play(&both);
	play(&fast);
	play(&resetting);
	return tap_done();
}
