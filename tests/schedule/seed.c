/*
 * seed: the scheduler itself. It finds what is planted, and a seed shows it again.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "stage.h"

static uint64_t *word(void)
{
	return &stage.l->tables->slots[SLOTS - 1].word;
}

static struct shmlimit *set(void)
{
	return stage_set(SHMLIMIT_FULL_DENY, 2,
	                 (struct shmlimit_rule){ .capacity = 1, .refill = 1, .period_ns = SECOND });
}

static void add_in_two_steps(unsigned who)
{
	uint64_t before = load_relaxed(word());

	take(1, 1);
	store_relaxed(word(), before + 1);
	(void)who;
}

static void judge_sum(void)
{
	if (*word() != 3)
		blame("the sum is %" PRIu64, *word());
}

static const struct scene lost_update = {
	.title = "a sum", .actors = 3, .set = set, .act = add_in_two_steps, .judge = judge_sum
};

/* The second must come in between the steps of the first, and the first between those of the second. */
static void leapfrog(unsigned who)
{
	if (who == 0) {
		for (uint64_t i = 0; i < 2; i++)
			if (load_relaxed(word()) == 2 * i)
				store_relaxed(word(), 2 * i + 1);
		return;
	}
	for (uint64_t i = 0; i < 2; i++)
		if (load_relaxed(word()) == 2 * i + 1)
			store_relaxed(word(), 2 * i + 2);
}

static void judge_leapfrog(void)
{
	if (*word() == 4)
		blame("four steps in turn");
}

static const struct scene three_stops = {
	.title = "four steps", .actors = 2, .set = set, .act = leapfrog, .judge = judge_leapfrog
};

/* A swap that is the last thing it did; no other process learns of it. */
static void swap_and_tell(unsigned who)
{
	if (who == 0) {
		store_relaxed(word(), 1);
		store_relaxed(word() - 1, 0);
		store_relaxed(word(), 2);
	} else {
		(void)load_relaxed(word());
	}
}

static void judge_killed(void)
{
	if (*word() == 1)
		blame("killed in between");
}

static const struct scene killed = {
	.title = "two stores", .actors = 2, .mortals = 1, .set = set, .act = swap_and_tell, .judge = judge_killed
};

static void wait_for_nobody(unsigned who)
{
	while (who == 0 && load_relaxed(word()) == 0)
		;
	if (who == 1)
		store_relaxed(word(), 1);
}

static void judge_nothing(void)
{
}

static const struct scene waiting = {
	.title = "a wait", .actors = 2, .set = set, .act = wait_for_nobody, .judge = judge_nothing
};

static void find(const struct scene *scene, const char *law)
{
	char blamed[sizeof(schedule.blamed)];
	unsigned char *after;
	uint64_t seed;

	stage_open(scene);
	ok(!search(), "%s", law);
	seed = schedule.seed;
	strcpy(blamed, schedule.blamed);
	after = malloc(stage.l->size);
	memcpy(after, stage.l->header, stage.l->size);
	(void)run_one(seed + 1);
	(void)run_one(seed);
	ok(strcmp(blamed, schedule.blamed) == 0 && memcmp(after, stage.l->header, stage.l->size) == 0,
	   "a schedule's seed shows it again, to the byte");
	free(after);
	stage_close();
}

int main(void)
{
	find(&lost_update, "an update that is lost is found");
	find(&three_stops, "what needs three stops at the right places is found");
	find(&killed, "what a process leaves that is killed between two stores is found");
	find(&waiting, "a process that waits for another is found");
	return tap_done();
}
