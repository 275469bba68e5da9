/*
 * grow_window: windows, whose logs are migrated beside processes that complete them, while
 * the table grows.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "growing.h"
#include "ring.h"

#define PERIOD_NS 10000

static const struct shmlimit_rule window = { .algorithm = SHMLIMIT_WINDOW,
	                                     .capacity = CAPACITY,
	                                     .period_ns = PERIOD_NS };

static struct shmlimit *set_window(void)
{
	struct shmlimit *l = set_growing(window);

	take_before(l, KEY, 1);
	return l;
}

static void begin_window(void)
{
	taken_before(KEY, 1);
}

static void judge_standing(void)
{
	law_total(KEY, CAPACITY);
	law_denials(CAPACITY);
	law_sound();
	law_left();
}

static const struct scene standing = {
	.title = "while time stands a window admits its capacity, whichever table it is in",
	.actors = 4,
	.mortals = 2,
	.set = set_window,
	.begin = begin_window,
	.act = act_one_key,
	.judge = judge_standing,
};

static void judge_sliding(void)
{
	law_period(KEY, CAPACITY, PERIOD_NS);
	law_sound();
	law_left();
}

static const struct scene sliding = {
	.title = "in each period a window admits no more than its capacity, whichever table it is in",
	.actors = 4,
	.mortals = 2,
	.away_ns = { PERIOD_NS / 3, PERIOD_NS - 1, 3 * PERIOD_NS },
	.set = set_window,
	.begin = begin_window,
	.act = act_one_key,
	.judge = judge_sliding,
};

static void clear_cells(struct shmlimit *l)
{
	unsigned size = cells_size(CAPACITY);

	memset((void *)(uintptr_t)l->regions[size], 0, layout_region_bytes(l->lines_max, size));
}

/*
 * Who took last was killed before it wrote its cell, so each decision takes the longer way. That was long ago: the
 * slot is frozen and says nothing, so no process buries it.
 */
static struct shmlimit *set_killed(void)
{
	struct shmlimit *l = set_growing(window);

	schedule.now_ns -= 3 * PERIOD_NS;
	take_before(l, KEY, 1);
	schedule.now_ns += 3 * PERIOD_NS;
	clear_cells(l);
	return l;
}

static void act_killed(unsigned who)
{
	if (who == 0)
		grow(2 * SLOTS);
	else
		take(KEY, CAPACITY - 1);
}

static const struct scene killed = {
	.title = "no call decides on a frozen slot, even if it found the slot before",
	.actors = 3,
	.mortals = 1,
	.set = set_killed,
	.act = act_killed,
	.judge = judge_standing,
};

/* The same a moment ago: the slot says something, and is carried to the larger table. */
static struct shmlimit *set_killed_now(void)
{
	struct shmlimit *l = set_window();
	clear_cells(l);
	return l;
}

static void act_carried(unsigned who)
{
	if (who == 0)
		grow(2 * SLOTS);
	take(KEY, CAPACITY - 1);
}

/* It takes two stops, each at one place: one in 100,000 schedules. */
static const struct scene carried = {
	.title = "what is decided on a slot is not lost when that is carried, even if it was found before",
	.actors = 2,
	.every = 1,
	.set = set_killed_now,
	.begin = begin_window,
	.act = act_carried,
	.judge = judge_standing,
};

/* The rule is changed, too: to a longer period and less, and back. The looser parameters are those of the beginning. */
static void act_changing(unsigned who)
{
	struct shmlimit_rule changed = window;

	if (who != 3) {
		act_one_key(who);
		return;
	}
	for (unsigned n = 1; n <= 5; n++) {
		changed.period_ns = n % 2 != 0 ? 3 * PERIOD_NS : PERIOD_NS;
		changed.capacity = n % 2 != 0 ? CAPACITY - 1 : CAPACITY;
		change(changed);
	}
}

static struct shmlimit *set_changing(void)
{
	struct shmlimit *l = set_window();

	stage.changing = 1;
	return l;
}

static const struct scene changing = {
	.title = "no call decides on a frozen slot while the rule is changed five times",
	.actors = 4,
	.mortals = 2,
	.away_ns = { PERIOD_NS / 3, PERIOD_NS - 1, 3 * PERIOD_NS },
	.set = set_changing,
	.begin = begin_window,
	.act = act_changing,
	.judge = judge_sliding,
};

/*
 * The rule is changed to more than the first table has cells for: a larger one comes first. A call that found its slot
 * in the first one, and then the rule as it is now, looks again: there is no room there for what it takes.
 */
#define LARGER (4 * CAPACITY)

static void act_larger(unsigned who)
{
	struct shmlimit_rule larger = window;

	larger.capacity = LARGER;
	if (who == 0) {
		change(larger);
		return;
	}
	take(KEY, 2 * CAPACITY);
	take(KEY, who);
	take(KEY, 2 * CAPACITY - 2);
}

static void judge_larger(void)
{
	law_between(KEY, CAPACITY, LARGER);
	law_sound();
	law_left();
}

static const struct scene larger = {
	.title = "a window of a larger capacity admits no more than that, beside calls that found the shorter ring",
	.actors = 3,
	.mortals = 1,
	.set = set_window,
	.begin = begin_window,
	.act = act_larger,
	.judge = judge_larger,
};

int main(void)
{
	play(&standing);
	play(&sliding);
	play(&changing);
	play(&killed);
	play(&carried);
	play(&larger);
	return tap_done();
}
