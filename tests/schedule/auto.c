/*
 * auto: several actors enter and leave places of a key whose number is found, as a window of it is due: the number is
 * within its bounds at any moment, and a window is closed once (see lib/algorithm/hold/auto_state.h). Places are as in
 * hold.c.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#define SCHEDULES 6000 /* of each of some scenes */
#include "growing.h"

#include "../unit/unit_cells.h"
#include "auto_state.h"

#define LEAST 2
#define MOST 4
#define PERIOD_NS (60 * SECOND)
#define BEFORE (AUTO_STATE_COUNT - 2) /* places left before the actors begin */
#define TICKS 10
#define ROUNDS 3

static const struct shmlimit_rule rule = {
	.algorithm = SHMLIMIT_HOLD, .capacity = MOST, .period_ns = PERIOD_NS, .law = SHMLIMIT_LAW_AIMD, .least = LEAST
};

static unsigned held, done, inside;

static void begin(void)
{
	held = done = inside = 0;
}

/* The pairs of the key, which is the only one of its rule. */
static struct auto_key pairs_of_key(void)
{
	struct auto_key k = { .bounds = { SHMLIMIT_LAW_AIMD, LEAST, MOST } };
	struct layout_slot *slots = stage.l->tables[0].slots;

	for (uint64_t i = 0; i < SLOTS_PER_LINE * stage.l->tables[0].lines; i++) {
		struct slot_seen seen = slot_read(&slots[i]);

		if (seen.tag == 0 || (seen.tag & TAG_TENTATIVE) != 0 || tag_rule(seen.tag) != (uint32_t)stage.rule)
			continue;
		k.slot = &slots[i];
		k.seen = seen;
		k.pairs = &unit_cells(
			stage.l, k.slot)[2 * (cells_tokens(cells_size(MOST + AUTO_STATE_PAIRS)) - AUTO_STATE_PAIRS)];
	}
	return k;
}

static void in_and_out(uint32_t key)
{
	struct shmlimit_place place = { .struct_size = sizeof(place) };
	struct call *c = call_begin(key, 1);
	int answer;

	actor_calls();
	inside++;
	answer = shmlimit_enter(handle(), stage.rule, &key, sizeof(key), &place, NULL);
	call_end(c, answer);
	inside--;
	if (answer != SHMLIMIT_ALLOWED)
		return;
	if (++held > MOST)
		blame("%u places are held", held);
	actor_calls();
	inside++;
	held--;
	answer = shmlimit_leave(handle(), stage.rule, &key, sizeof(key), &place);
	inside--;
	if (answer != 0 && answer != -ETIME)
		blame("leave: %s", shmlimit_strerror(answer));
	done++;
}

static struct shmlimit *set(void)
{
	struct shmlimit *l = stage_set(SHMLIMIT_FULL_DENY, 2, rule);
	struct shmlimit_place place;
	uint32_t key = KEY;

	for (unsigned i = 0; i < BEFORE; i++) {
		place = (struct shmlimit_place){ .struct_size = sizeof(place) };
		if (shmlimit_enter(l, stage.rule, &key, sizeof(key), &place, NULL) != SHMLIMIT_ALLOWED)
			bail("enter");
		schedule.now_ns += TICKS * HOLD_TICK_NS;
		if (shmlimit_leave(l, stage.rule, &key, sizeof(key), &place) != 0)
			bail("leave");
	}
	schedule.now_ns += SECOND;
	stage.peaceful = 1;
	return l;
}

static void act(unsigned who)
{
	(void)who;
	for (unsigned i = 0; i < ROUNDS; i++)
		in_and_out(KEY);
}

/* A window has 30 times of its own at least. */
static void judge_windows(uint64_t times)
{
	struct auto_key k = pairs_of_key();
	struct auto_window w;
	struct auto_law a;

	if (k.slot == NULL || !auto_state_read(&k, &a, &w))
		return;
	if (auto_state_now(k.pairs, k.seen.word, &k.bounds) < LEAST ||
	    auto_state_now(k.pairs, k.seen.word, &k.bounds) > MOST)
		blame("the number is %" PRIu64, auto_state_now(k.pairs, k.seen.word, &k.bounds));
	if (a.epoch > times / AUTO_STATE_COUNT)
		blame("%" PRIu64 " times closed %u windows", times, (unsigned)a.epoch);
	if (inside == 0 && a.epoch == 0 && times >= AUTO_STATE_COUNT + AUTO_STATE_TRIES)
		blame("%" PRIu64 " times closed no window", times);
}

static void judge(void)
{
	judge_windows(BEFORE + done + inside);
	law_sound();
}

static const struct scene closing = {
	.title = "a window is closed once, by 30 times of its own, and no place is entered beyond the bounds",
	.actors = 3,
	.mortals = 2,
	.set = set,
	.begin = begin,
	.act = act,
	.judge = judge,
};

static const struct scene closing_late = {
	.title = "a window is closed once as time passes between its steps",
	.actors = 3,
	.mortals = 2,
	.away_ns = { SECOND / 2, SECOND, 5 * SECOND },
	.set = set,
	.begin = begin,
	.act = act,
	.judge = judge,
};

int main(void)
{
	play(&closing);
	play(&closing_late);
	return tap_done();
}
