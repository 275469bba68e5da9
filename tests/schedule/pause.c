/*
 * pause: a key is paused while others take from it, its rule is changed, and an earlier pause is found to be over: a
 * call that begins after it is denied, and no other loses anything.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "versions.h"

#define KEY 7
#define PAUSE 999 /* a call that pauses KEY for as many hours as it has tokens */
#define CAPACITY 40
#define HOUR_NS (3600 * SECOND)
#define LONG_AGO (START_NS - 1000 * SECOND)

static void pause_key(uint64_t for_ns)
{
	struct call *c = call_begin(PAUSE, (int64_t)(for_ns / HOUR_NS));
	uint32_t key = KEY;

	actor_calls();
	call_end(c, shmlimit_pause(handle(), stage.rule, &key, sizeof(key), for_ns));
}

/* The key has a slot, and ~pause is there: a pause of another key. */
static struct shmlimit *set_key(void)
{
	const struct shmlimit_options options = {
		.struct_size = sizeof(options), .slots = SLOTS, .rules = 4, .rules_max = 4
	};
	struct shmlimit *l = stage_make(&options, 2, version(CAPACITY, 0));
	uint32_t key = KEY, other = KEY + 1;

	(void)shmlimit_take(l, stage.rule, &key, sizeof(key), 1, NULL);
	if (shmlimit_pause(at_time(l, START_NS), stage.held, &other, sizeof(other), HOUR_NS) != SHMLIMIT_ALLOWED)
		bail("no pause");
	return at_clock(l);
}

static struct shmlimit *set_over(void)
{
	struct shmlimit *l = set_key();
	uint32_t key = KEY;

	/* Over long ago, and no process has found that yet. */
	if (shmlimit_pause(at_time(l, LONG_AGO), stage.rule, &key, sizeof(key), SECOND) != SHMLIMIT_ALLOWED)
		bail("no earlier pause");
	return at_clock(l);
}

/* Two swap one after the other, or one of them does. */
static struct shmlimit *set_twice(void)
{
	struct shmlimit *l = set_over();

	stage.peaceful = 1;
	return l;
}

static struct shmlimit *set_changing(void)
{
	struct shmlimit *l = set_over();

	stage.changing = 1;
	return l;
}

/* A call that began when a pause had begun is denied, one that ended before the first is allowed. */
static void judge(void)
{
	unsigned first = 0, paused = 0;
	uint64_t left_ns = 0, least_ns = 0;
	uint32_t key = KEY;

	for (unsigned i = 0; i < stage.n; i++)
		if (stage.calls[i].key == PAUSE) {
			if (first == 0)
				first = stage.calls[i].began;
			if (stage.calls[i].ended != 0 && (paused == 0 || stage.calls[i].ended < paused))
				paused = stage.calls[i].ended;
			if (stage.calls[i].ended != 0 && least_ns < (uint64_t)stage.calls[i].tokens * HOUR_NS)
				least_ns = (uint64_t)stage.calls[i].tokens * HOUR_NS;
		}
	for (unsigned i = 0; i < stage.n; i++) {
		const struct call *c = &stage.calls[i];

		if (c->key != KEY || c->ended == 0)
			continue;
		if (paused != 0 && c->began > paused && c->answer != SHMLIMIT_DENIED)
			blame("a call passed while its key was paused");
		if ((first == 0 || c->ended < first) && c->answer != SHMLIMIT_ALLOWED)
			blame("a call was denied before its key was paused");
	}
	(void)shmlimit_paused(stage.l, stage.rule, &key, sizeof(key), &left_ns);
	if (left_ns < least_ns)
		blame("the longer pause is over");
	if (paused != 0 && shmlimit_peek(stage.l, stage.rule, &key, sizeof(key), 1, NULL) != SHMLIMIT_DENIED)
		blame("the key passes");
	(void)shmlimit_pause(stage.l, stage.rule, &key, sizeof(key), 0);
	law_total(KEY, CAPACITY - 1);
	law_sound();
}

static void act(unsigned who)
{
	if (who == 0) {
		take(KEY, 1);
		pause_key(HOUR_NS);
		take(KEY, 1);
		return;
	}
	take(KEY, 1);
	take(KEY, 1);
	take(KEY, 1);
}

static const struct scene fresh = {
	.title = "a key that is paused gives nothing to calls that begin then, and has lost nothing after",
	.actors = 3,
	.mortals = 2,
	.set = set_key,
	.act = act,
	.judge = judge,
};

/* Two pauses of different length. */
static void act_twice(unsigned who)
{
	if (who == 2) {
		take(KEY, 1);
		take(KEY, 1);
		return;
	}
	pause_key((1 + who) * HOUR_NS);
	take(KEY, 1);
}

static const struct scene twice = {
	.title = "of two pauses that begin together the longer stays",
	.actors = 3,
	.mortals = 2,
	.set = set_twice,
	.act = act_twice,
	.judge = judge,
};

static void act_changing(unsigned who)
{
	if (who == 2) {
		change(version(CAPACITY, 1));
		change(version(CAPACITY, 2));
		return;
	}
	act(who);
}

static const struct scene changing = {
	.title = "a pause stays while its rule is changed",
	.actors = 3,
	.mortals = 2,
	.set = set_changing,
	.act = act_changing,
	.judge = judge,
};

/* There is room for these rules only, so that the one that is set again has its id. */
static struct shmlimit *set_again(void)
{
	const struct shmlimit_options options = {
		.struct_size = sizeof(options), .slots = SLOTS, .rules = 3, .rules_max = 3
	};
	struct shmlimit *l = stage_make(&options, 2, version(CAPACITY, 0));
	uint32_t other = KEY + 1;

	stage.changing = stage.peaceful = 1;
	/* Over: a rule that is set has no mark because of it. */
	if (shmlimit_pause(at_time(l, LONG_AGO), stage.held, &other, sizeof(other), SECOND) != SHMLIMIT_ALLOWED)
		bail("no pause");
	return at_clock(l);
}

static void act_again(unsigned who)
{
	if (who == 1) {
		actor_calls();
		(void)shmlimit_rule_remove(handle(), "scene");
		change(version(CAPACITY, 1));
		return;
	}
	pause_key(HOUR_NS);
	take(KEY, 1);
}

/* What a pause that has returned denies, or meets no rule. */
static void judge_again(void)
{
	unsigned paused = 0;
	uint32_t key = KEY;
	int id;

	for (unsigned i = 0; i < stage.n; i++)
		if (stage.calls[i].key == PAUSE && stage.calls[i].ended != 0 &&
		    stage.calls[i].answer == SHMLIMIT_ALLOWED)
			paused = stage.calls[i].ended;
	for (unsigned i = 0; i < stage.n; i++)
		if (stage.calls[i].key == KEY && paused != 0 && stage.calls[i].began > paused &&
		    stage.calls[i].answer == SHMLIMIT_ALLOWED)
			blame("a call passed while its key was paused");
	id = shmlimit_rule_find(stage.l, "scene");
	if (id >= 0 && paused != 0 && shmlimit_peek(stage.l, id, &key, sizeof(key), 1, NULL) != SHMLIMIT_DENIED)
		blame("the key passes");
	law_sound();
}

static const struct scene again = {
	.title = "a pause stays while its rule is removed and set again",
	.actors = 2,
	.mortals = 1,
	.every = 1,
	.set = set_again,
	.act = act_again,
	.judge = judge_again,
};

int main(void)
{
	play(&fresh);
	play(&twice);
	play(&changing);
	play(&again);
	return tap_done();
}
