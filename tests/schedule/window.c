/*
 * window: several actors take from a sliding window. If one was stopped or killed, the next
 * one completes its log (I1, I2, I4).
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "stage.h"

#define KEY 7
#define OTHER 8
#define CAPACITY 4
#define PERIOD_NS 10000

static const struct shmlimit_rule rule = { .algorithm = SHMLIMIT_WINDOW, .capacity = CAPACITY, .period_ns = PERIOD_NS };

static struct shmlimit *set_empty(void)
{
	return stage_set(SHMLIMIT_FULL_DENY, 2, rule);
}

static void act(unsigned who)
{
	take(KEY, 2);
	take(KEY, 1 + who % 2);
	take(KEY, 1);
}

static void judge_standing(void)
{
	law_total(KEY, CAPACITY);
	law_denials(CAPACITY);
	law_sound();
}

static const struct scene standing = {
	.title = "while time stands a window admits its capacity, and a denied call came too late",
	.actors = 3,
	.mortals = 2,
	.set = set_empty,
	.act = act,
	.judge = judge_standing,
};

static void judge_sliding(void)
{
	law_period(KEY, CAPACITY, PERIOD_NS);
	law_sound();
}

static const struct scene sliding = {
	.title = "in each period it admits no more than its capacity",
	.actors = 3,
	.mortals = 2,
	.away_ns = { PERIOD_NS / 3, PERIOD_NS - 1, 3 * PERIOD_NS },
	.set = set_empty,
	.act = act,
	.judge = judge_sliding,
};

/* Keys take turns at one slot, and at its ring. */
static struct shmlimit *set_one_place(void)
{
	return stage_set(SHMLIMIT_FULL_DENY, SLOTS - 1, rule);
}

static void act_in_turns(unsigned who)
{
	take(who % 2 != 0 ? KEY : OTHER, 2);
	take(who % 2 != 0 ? OTHER : KEY, 2);
	take(KEY, 1);
}

static void judge_in_turns(void)
{
	law_period(KEY, CAPACITY, PERIOD_NS);
	law_period(OTHER, CAPACITY, PERIOD_NS);
	law_sound();
}

static const struct scene in_turns_at_it = {
	.title = "a window admits no more than its capacity in a slot and ring that were another key's",
	.actors = 3,
	.mortals = 2,
	.away_ns = { PERIOD_NS / 3, PERIOD_NS, 3 * PERIOD_NS },
	.set = set_one_place,
	.act = act_in_turns,
	.judge = judge_in_turns,
};

/*
 * Who does not get the other gives back what it took; what is given back does not count. Where waits of several
 * periods can be had, no time that is ahead makes a call doubt its own.
 */
static struct shmlimit *set_patient(void)
{
	struct shmlimit_rule patient = rule;

	patient.max_wait_ns = 10 * PERIOD_NS;
	return stage_set(SHMLIMIT_FULL_DENY, 2, patient);
}

static void act_giving_back(unsigned who)
{
	if (who == 2) {
		act(who);
		return;
	}
	for (int i = 0; i < 2; i++) {
		take_in_vain(KEY, 1);
		take(KEY, 1);
	}
}

static const struct scene giving_back = {
	.title = "a window admits no more than its capacity when some of it is given back",
	.actors = 3,
	.mortals = 2,
	.away_ns = { PERIOD_NS / 3, PERIOD_NS - 1, 3 * PERIOD_NS },
	.set = set_patient,
	.act = act_giving_back,
	.judge = judge_sliding,
};

/* The rule is changed, to a longer period and back. */
static void act_changing(unsigned who)
{
	struct shmlimit_rule changed = rule;

	if (who != 0) {
		act(who);
		return;
	}
	stage.changing = 1;
	for (unsigned n = 1; n <= 5; n++) {
		changed.period_ns = n % 2 != 0 ? 3 * PERIOD_NS : PERIOD_NS;
		change(changed);
	}
}

static const struct scene changing = {
	.title = "a window admits no more than its capacity while its rule is changed five times",
	.actors = 3,
	.mortals = 2,
	.away_ns = { PERIOD_NS / 3, PERIOD_NS - 1, 3 * PERIOD_NS },
	.set = set_empty,
	.act = act_changing,
	.judge = judge_sliding,
};

int main(void)
{
	play(&standing);
	play(&sliding);
	play(&in_turns_at_it);
	play(&giving_back);
	play(&changing);
	return tap_done();
}
