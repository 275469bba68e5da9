/*
 * grow_change: a rule is changed while the table grows: keys are converted on their way.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "growing.h"
#include "versions.h"

/* I3: a key is in one table, unless a process was killed, which may have copied it. */
static void law_one_table(void)
{
	const struct layout_slot *s, *other;
	const struct table *t, *its;
	struct generation tables;

	for (unsigned i = 0; i < ACTORS_MAX; i++)
		if (schedule.actor[i].state == KILLED)
			return;
	if (!generation_read(stage.l, &tables))
		blame("the tables are damaged");
	for (uint64_t i = 0; (s = generation_slot(&tables, i, &t)) != NULL; i++)
		for (uint64_t j = 0; j < i && (other = generation_slot(&tables, j, &its)) != NULL; j++)
			if ((s->tag & ~TAG_FROZEN) != 0 && ((s->tag | other->tag) & TAG_TENTATIVE) == 0 &&
			    tag_same_key(rule_plain(stage.l, s->tag), rule_plain(stage.l, other->tag)))
				blame("slots %" PRIu64 " and %" PRIu64 " are one key's", j, i);
}

static struct shmlimit *set_changing(void)
{
	struct shmlimit *l = set_growing(version(CAPACITY, 0));

	take_before(l, KEY, 1);
	stage.changing = 1;
	return l;
}

static void act_changing(unsigned who)
{
	if (who == 3) {
		for (unsigned n = 1; n <= 5; n++)
			change(version(CAPACITY, n));
		return;
	}
	act_one_key(who);
}

static void judge_changing(void)
{
	law_one_table();
	judge_one_key();
}

static const struct scene changing = {
	.title = "a key gets no token and loses none while the table grows and its rule is changed five times",
	.actors = 4,
	.mortals = 2,
	.set = set_changing,
	.act = act_changing,
	.judge = judge_changing,
};

/* ---- Other capacities, and so other bits for the quota ---- */

#define LARGE 9
#define MIDDLE 6
#define REST 3

static struct shmlimit *set_large(uint64_t taken)
{
	struct shmlimit *l = set_growing(version(LARGE, 0));

	if (taken != 0)
		take_before(l, KEY, taken);
	stage.changing = 1;
	return l;
}

/* Each version has room for what the key has left, so nothing is lost to it, and none finds it full. */
static struct shmlimit *set_rest(void)
{
	return set_large(LARGE - REST);
}

static void act_to_and_fro(unsigned who)
{
	if (who == 3) {
		for (unsigned n = 1; n <= 5; n++)
			change(version(n % 2 != 0 ? MIDDLE : LARGE, n));
		return;
	}
	act_one_key(who);
}

static void judge_rest(void)
{
	law_one_table();
	law_total(KEY, REST);
	law_denials(REST);
	law_sound();
	law_left();
}

static const struct scene to_and_fro = {
	.title =
		"a key gains and loses nothing while the table grows and its capacity changes with room for what it has",
	.actors = 4,
	.mortals = 2,
	.set = set_rest,
	.act = act_to_and_fro,
	.judge = judge_rest,
};

/*
 * Lower twice: a key has no more than it had under the first capacity, and no less than there is room for under the
 * last.
 * WHY NOT up again: a key that is left full is one that was never seen, and those have the capacity of the day.
 */
static struct shmlimit *set_seen(void)
{
	return set_large(1);
}

static struct shmlimit *set_unseen(void)
{
	return set_large(0);
}

static void act_lower(unsigned who)
{
	if (who == 3) {
		change(version(MIDDLE, 1));
		change(version(CAPACITY, 2));
		return;
	}
	if (who == 0) {
		grow_twice();
		return;
	}
	take(KEY, 1);
	take(KEY, 2 + who);
	take(KEY, 3);
}

static void judge_lower(int64_t most)
{
	law_between(KEY, CAPACITY, most);
	law_denials(CAPACITY);
	law_sound();
	law_left();
}

static void judge_seen(void)
{
	judge_lower(LARGE - 1);
}

static const struct scene seen = {
	.title = "when its capacity is lowered it has what it had, as far as there is room",
	.actors = 4,
	.mortals = 2,
	.set = set_seen,
	.act = act_lower,
	.judge = judge_seen,
};

static void judge_unseen(void)
{
	judge_lower(LARGE);
}

static const struct scene unseen = {
	.title = "a new key has the capacity of one version or another, whichever table it is claimed in",
	.actors = 4,
	.mortals = 2,
	.set = set_unseen,
	.act = act_lower,
	.judge = judge_unseen,
};

/*
 * The key refilled before the table grows, and is used again while its capacity is raised twice. Once it was asked for
 * after all this, it is in the new table alone, whatever was killed: nothing keeps the old one.
 */
static struct shmlimit *set_refilled(void)
{
	struct shmlimit *l = stage_set(SHMLIMIT_FULL_DENY, 0, version(CAPACITY, 0));
	uint32_t key = KEY;

	stage.growing = stage.changing = 1;
	if (shmlimit_take(at_time(l, START_NS - CAPACITY * SECOND), stage.rule, &key, sizeof(key), CAPACITY, NULL) !=
	    SHMLIMIT_ALLOWED)
		bail("the key cannot take");
	return at_clock(l);
}

static void act_raise(unsigned who)
{
	if (who == 0) {
		grow(2 * SLOTS);
		grow(0);
	} else if (who == 3) {
		change(version(MIDDLE, 1));
		change(version(LARGE, 2));
	} else {
		take(KEY, 1);
		take(KEY, CAPACITY - 1);
		take(KEY, 1);
	}
}

static void judge_raised(void)
{
	uint32_t key = KEY;
	int error;

	law_between(KEY, CAPACITY, LARGE);
	law_no_duplicate();
	law_one_table();
	(void)shmlimit_take(stage.l, stage.rule, &key, sizeof(key), 1, NULL);
	error = shmlimit_grow(stage.l, 0);
	if (error != 0)
		blame("the key has moved, and the old table is not left: %s", shmlimit_strerror(error));
	law_sound();
}

static const struct scene raised = {
	.title =
		"a key that refilled and is used again has one slot when the table has grown and its capacity was raised",
	.actors = 4,
	.mortals = 4,
	.set = set_refilled,
	.act = act_raise,
	.judge = judge_raised,
};

int main(void)
{
	play(&changing);
	play(&to_and_fro);
	play(&seen);
	play(&unseen);
	play(&raised);
	return tap_done();
}
