/*
 * change: a rule is changed, removed and defined again while others decide under it
 * (I1, I2, I3). Four changes on, the two bits of a version are what they were.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "versions.h"

#include "rule_writer.h"
#include "segment.h"

#define KEY 7
#define CAPACITY 4
#define CHANGES 6

/* A change that has ended left no slot at an earlier version: its two bits will mean another one. */
static void law_converted(void)
{
	uint64_t version = published_version(stage.l->rules[stage.rule].published);

	/* Read without points: no other actor converts one in between. */
	for (uint64_t i = 0; i < SLOTS; i++) {
		uint64_t tag = stage.l->tables->slots[i].tag;

		if (tag != 0 && (tag & TAG_TENTATIVE) == 0 && tag_rule(tag) == (uint32_t)stage.rule &&
		    ((tag ^ version) & TAG_VERSION) != 0)
			blame("slot %" PRIu64 " is still of an earlier version", i);
	}
}

static void change_all(struct shmlimit_rule rule)
{
	change(rule);
	law_converted();
}

static struct shmlimit *set_empty(void)
{
	struct shmlimit *l = stage_set(SHMLIMIT_FULL_DENY, SLOTS - 3, version(CAPACITY, 0));

	stage.changing = 1;
	return l;
}

static struct shmlimit *set_key(void)
{
	struct shmlimit *l = set_empty();
	uint32_t key = KEY;

	(void)shmlimit_take(l, stage.rule, &key, sizeof(key), 1, NULL);
	return l;
}

static void act(unsigned who)
{
	if (who == 0) {
		for (unsigned n = 1; n <= CHANGES; n++)
			change_all(version(CAPACITY, n));
		return;
	}
	take(KEY, who);
	take(KEY, 1);
	take(KEY, 1);
}

static void judge_key(void)
{
	law_total(KEY, CAPACITY - 1);
	law_denials(CAPACITY - 1);
	law_sound();
}

static const struct scene has_slot = {
	.title = "a key gets no token and loses none while its rule is changed six times",
	.actors = 3,
	.mortals = 2,
	.set = set_key,
	.act = act,
	.judge = judge_key,
};

static void judge_newcomer(void)
{
	law_total(KEY, CAPACITY);
	law_denials(CAPACITY);
	law_sound();
}

static const struct scene newcomer = {
	.title = "a new key is admitted exactly its capacity, whichever version it is claimed under",
	.actors = 3,
	.mortals = 2,
	.set = set_empty,
	.act = act,
	.judge = judge_newcomer,
};

/* Two versions in turn: a word that came back would let a conversion through that began four changes ago. */
static void act_to_and_fro(unsigned who)
{
	if (who == 0) {
		for (unsigned n = 1; n <= CHANGES; n++)
			change_all(version(CAPACITY, n % 2));
		return;
	}
	take(KEY, 1);
	take(KEY, CAPACITY);
}

static const struct scene to_and_fro = {
	.title = "a new key is admitted exactly its capacity while two versions take turns",
	.actors = 2,
	.mortals = 1,
	.set = set_key,
	.act = act_to_and_fro,
	.judge = judge_key,
};

/* A full table: all keys have taken all they may, and one more looks for a place. */
static struct shmlimit *set_exhausted(void)
{
	struct shmlimit *l = stage_set(SHMLIMIT_FULL_DENY, 0, version(CAPACITY, 0));

	stage.changing = stage.peaceful = 1;
	for (uint32_t key = 1; key <= SLOTS; key++)
		(void)shmlimit_take(l, stage.rule, &key, sizeof(key), CAPACITY, NULL);
	return l;
}

static void act_exhausted(unsigned who)
{
	if (who == 0)
		act(who);
	else
		take(SLOTS + 1, 1);
}

static void judge_exhausted(void)
{
	for (uint32_t key = 1; key <= SLOTS; key++)
		if (left(key) != 0)
			blame("key %u has %" PRIu64 " of what it had taken", key, left(key));
	law_sound();
}

static const struct scene exhausted = {
	.title = "no slot is taken for a full one by the parameters of another version",
	.actors = 2,
	.mortals = 1,
	.set = set_exhausted,
	.act = act_exhausted,
	.judge = judge_exhausted,
};

/* The rule is removed, and defined again: its id is the same, its funnels are other ones. */
static struct call born;

static void act_removed(unsigned who)
{
	if (who != 0) {
		act(who);
		return;
	}
	for (unsigned n = 1; n <= 2; n++) {
		int error;

		actor_calls();
		error = shmlimit_rule_remove(stage.l, "scene");
		if (error != 0)
			blame("rule_remove: %s", shmlimit_strerror(error));
		born.began = ++stage.moments;
		change(version(CAPACITY, n));
		born.ended = ++stage.moments;
	}
}

static void judge_removed(void)
{
	law_since(KEY, &born, CAPACITY);
	law_sound();
}

static const struct scene removed = {
	.title = "a rule that is defined anew has funnels of its own, all full",
	.actors = 3,
	.set = set_key,
	.act = act_removed,
	.judge = judge_removed,
};

/* The algorithm changes: the rule is never missing, and its keys begin again. */
static void replace(unsigned n)
{
	struct shmlimit_rule rule = version(CAPACITY, n);
	int id;

	rule.struct_size = sizeof(rule);
	rule.algorithm = n % 2 != 0 ? SHMLIMIT_GCRA : SHMLIMIT_FUNNEL;
	actor_calls();
	id = rule_replace(handle(), "scene", &rule, SEGMENT_LOCK_WAIT_NS, when_clock());
	if (id != stage.rule)
		blame("rule_replace: %s", shmlimit_strerror(id));
}

static void act_replaced(unsigned who)
{
	if (who != 0) {
		act(who);
		return;
	}
	for (unsigned n = 1; n <= 3; n++) {
		born.began = ++stage.moments;
		replace(n);
		born.ended = ++stage.moments;
	}
}

static const struct scene replaced = {
	.title = "a rule that gets another algorithm is never missing, and its keys are full under the last one",
	.actors = 3,
	.set = set_key,
	.act = act_replaced,
	.judge = judge_removed,
};

/* The writer may be killed at any step, and another one goes on. */
static void act_replaced_by_two(unsigned who)
{
	if (who == 0) {
		replace(1);
		replace(2);
	} else if (who == 1) {
		replace(3);
		replace(2);
	} else {
		take(KEY, 1);
		take(KEY, CAPACITY);
	}
}

static void judge_replaced(void)
{
	if (left(KEY) > CAPACITY)
		blame("has %" PRIu64, left(KEY));
	law_no_duplicate();
	law_sound();
}

static const struct scene replaced_by_two = {
	.title = "of two writers of algorithms one is killed, and a key has no second slot",
	.actors = 4,
	.mortals = 1,
	.set = set_key,
	.act = act_replaced_by_two,
	.judge = judge_replaced,
};

/* Two writers, by their lock one after the other, of whom one may be killed. */
static void act_two_writers(unsigned who)
{
	if (who < 2) {
		for (unsigned n = 1; n <= 3; n++)
			change(version(CAPACITY, n + 2 * who));
		return;
	}
	take(KEY, 1);
	take(KEY, 1);
}

static const struct scene two_writers = {
	.title = "of two writers the second finishes what the first, which was killed, has left",
	.actors = 4,
	.mortals = 1,
	.set = set_key,
	.act = act_two_writers,
	.judge = judge_key,
};

/* To and fro between dry runs and denials, which is no new version. */
static struct shmlimit *set_dry(void)
{
	struct shmlimit *l = set_key();

	stage.dry = 1;
	return l;
}

static void act_dry(unsigned who)
{
	struct shmlimit_rule rule = version(CAPACITY, 0);

	if (who != 0) {
		act(who);
		return;
	}
	for (unsigned n = 1; n <= 3; n++) {
		rule.mode = n % 2 != 0 ? SHMLIMIT_DRY_RUN : SHMLIMIT_ENFORCE;
		change(rule);
	}
}

static const struct scene dry = {
	.title = "a dry run takes what there is and no more",
	.actors = 3,
	.mortals = 2,
	.set = set_dry,
	.act = act_dry,
	.judge = judge_key,
};

int main(void)
{
	play(&has_slot);
	play(&to_and_fro);
	play(&newcomer);
	play(&exhausted);
	play(&removed);
	play(&replaced);
	play(&replaced_by_two);
	play(&two_writers);
	play(&dry);
	return tap_done();
}
