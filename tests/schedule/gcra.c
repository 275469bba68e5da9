/*
 * gcra: the header's numbers of GCRA, the longest time to full of each place and the longest debt, are raised by several
 * processes, of which some are killed between that and the word that needs it (I1, I2, I8). See gcra_row.h.
 *
 * Costs are counted in minutes of refill: so those of limits that differ add up, and nothing is rounded.
 *
 * In the variants, which must fail, one actor has the header's numbers from elsewhere: it raises them after its word is there, or
 * has read them before it read the word.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "stage.h"

#include "../by_limit.h"
#include "gcra_row.h"

#define KEY 7
#define OTHER 8
#define CAPACITY 4
#define MINUTE (60 * SECOND)

/* Of one place, which the longer one's time to full raises: 60 minutes and 72, that is 15 and 18 a token. */
static const struct shmlimit_limit shorter = { .struct_size = sizeof(shorter),
	                                       .capacity = CAPACITY,
	                                       .refill = 1,
	                                       .period_ns = 15 * MINUTE,
	                                       .max_wait_ns = 30 * MINUTE };
static const struct shmlimit_limit longer = { .struct_size = sizeof(longer),
	                                      .capacity = CAPACITY,
	                                      .refill = 1,
	                                      .period_ns = 18 * MINUTE,
	                                      .max_wait_ns = 72 * MINUTE };

static int waits[CALLS_MAX]; /* does a call of this schedule owe, by its place in stage.calls? */

static int64_t minutes(const struct shmlimit_limit *limit, uint64_t tokens)
{
	return (int64_t)(tokens * limit->period_ns / MINUTE);
}

static uint64_t full_ticks(const struct shmlimit_limit *limit)
{
	return limit->capacity * limit->period_ns << GCRA_TICK_BITS;
}

static uint64_t debt_ticks(const struct shmlimit_limit *limit)
{
	return limit->max_wait_ns << GCRA_TICK_BITS;
}

static struct shmlimit *set(void)
{
	struct shmlimit *l = stage_set(
		SHMLIMIT_FULL_DENY, 2,
		(struct shmlimit_rule){
			.algorithm = SHMLIMIT_GCRA, .capacity = CAPACITY, .refill = 1, .period_ns = 18 * MINUTE });

	if (gcra_place(full_ticks(&shorter)) != gcra_place(full_ticks(&longer)))
		bail("the limits are of two places");
	return l;
}

/* The longest time to full is known: only debts are new. */
static struct shmlimit *set_filled(void)
{
	struct shmlimit *l = set();

	gcra_will_fill(l, full_ticks(&longer));
	return l;
}

/* ---- Calls: their tokens are minutes ---- */

static void spend(uint32_t key, const struct shmlimit_limit *limit, uint64_t cost, int reserves)
{
	struct call *c = call_begin(key, minutes(limit, cost));
	struct shmlimit_result r = { 0 };

	actor_calls();
	call_end(c, by_limit(handle(), reserves ? SHMLIMIT_RESERVE : SHMLIMIT_TAKE, stage.rule, &key, sizeof(key), cost,
	                     limit, &r));
	waits[c - stage.calls] = r.wait_ns != 0;
}

static void act_one_limit(unsigned who)
{
	spend(KEY, &longer, 1 + who % 2, 0);
	spend(OTHER, &longer, 2, 0);
	spend(KEY, &longer, 2, 0);
}

static void act_batches(unsigned who)
{
	take_some(KEY, 2 + who, &longer, minutes(&longer, 1));
	take_some(OTHER, 2, &longer, minutes(&longer, 1));
	take_some(KEY, 3, &longer, minutes(&longer, 1));
}

static void act_two_limits(unsigned who)
{
	/* Another key's limit raises the same number to less. */
	spend(who % 2 == 0 ? KEY : OTHER, who % 2 == 0 ? &longer : &shorter, 3, 0);
	spend(KEY, who % 2 == 0 ? &longer : &shorter, 3, 0);
	spend(KEY, who % 2 == 0 ? &shorter : &longer, 2, 0);
	spend(KEY, &longer, 1, 0);
}

static void act_debts(unsigned who)
{
	spend(KEY, who % 2 == 0 ? &longer : &shorter, CAPACITY, 1);
	spend(KEY, &longer, 1, 0);
	spend(KEY, &longer, 2, 1);
}

/* ---- Laws ---- */

/* Tokens that a key has by a limit; or that can be reserved, at once or by 1. */
static uint64_t rest(uint32_t key, const struct shmlimit_limit *limit, int reserves)
{
	struct shmlimit_result r = { 0 };
	uint64_t n = 0;

	while (by_limit(stage.l, reserves ? SHMLIMIT_RESERVE : SHMLIMIT_TAKE, stage.rule, &key, sizeof(key), 1, limit,
	                &r) == SHMLIMIT_ALLOWED)
		n++;
	return n;
}

/* Calls of a key and of a limit, NULL: of all, then `more` minutes now. A limit is known by what its tokens cost. */
static const struct story *story_by(uint32_t key, const struct shmlimit_limit *limit, uint64_t more)
{
	return story_part(key, limit == NULL ? 1 : minutes(limit, 1), more);
}

/* I1: in no stretch of time more than that time, what the capacity of the longest limit costs, and its debt. */
static void law_spent(uint32_t key, const struct shmlimit_limit *limit, uint64_t most, uint64_t more)
{
	uint64_t burst = story_burst(story_by(key, limit, more), 1, MINUTE, 0);

	if (burst > most)
		blame("key %u: %" PRIu64 " minutes were spent above those that went by, of %" PRIu64, key, burst, most);
}

/* I2, while time stands: what was spent of a key and what is left are its capacity, and a debt. */
static void law_whole(uint32_t key, const struct shmlimit_limit *limit, int64_t most, int reserves)
{
	int64_t sum = minutes(limit, rest(key, limit, reserves)), open = 0;

	for (unsigned i = 0; i < stage.n; i++) {
		const struct call *c = &stage.calls[i];

		if (c->key == key && was_taken(c))
			sum += c->tokens;
		else if (c->key == key && may_have_taken(c))
			open += c->tokens;
	}
	if (sum > most)
		blame("key %u: %" PRId64 " minutes were spent and are left, of %" PRId64, key, sum, most);
	if (sum + open + minutes(limit, 1) <= most)
		blame("key %u: %" PRId64 " minutes were spent and are left, perhaps %" PRId64 " more, of %" PRId64, key,
		      sum, open, most);
}

/* I8: whatever a killed process has raised, a key is full when the longest limit and the longest debt are over. */
static void law_full(uint32_t key)
{
	uint64_t now_ns = schedule.now_ns;

	schedule.now_ns += 72 * MINUTE + longer.max_wait_ns;
	if (rest(key, &shorter, 0) != CAPACITY)
		blame("key %u is not full", key);
	schedule.now_ns += 60 * MINUTE;
	if (rest(key, &longer, 0) == 0)
		blame("key %u has nothing an hour later", key);
	schedule.now_ns = now_ns;
}

/* The numbers are no lower than what a call needed that ended, and no higher than what was asked with. */
static void law_header(void)
{
	uint64_t longest = stage.l->header->longest[gcra_place(full_ticks(&longer))], owed = stage.l->header->owed;

	for (unsigned i = 0; i < stage.n; i++) {
		const struct call *c = &stage.calls[i];
		const struct shmlimit_limit *limit = c->tokens % minutes(&longer, 1) == 0 ? &longer : &shorter;

		if (was_taken(c) && longest < full_ticks(limit))
			blame("the longest time to full is less than that of a limit that left a word");
		if (was_taken(c) && waits[i] && owed < debt_ticks(limit))
			blame("the longest debt is less than that of a limit that owes");
	}
	if (longest > full_ticks(&longer))
		blame("the longest time to full is none that was asked with");
	if (owed > debt_ticks(&longer))
		blame("the longest debt is none that was asked with");
}

static void judge_one_limit(void)
{
	law_header();
	law_whole(KEY, &longer, 72, 0);
	law_whole(OTHER, &longer, 72, 0);
	law_full(KEY);
	law_sound();
}

static void judge_two_limits(void)
{
	law_header();
	law_spent(KEY, &shorter, 60, 0);
	law_spent(KEY, &longer, 72, 0);
	law_spent(KEY, NULL, 72, (uint64_t)minutes(&longer, rest(KEY, &longer, 0)));
	law_full(KEY);
	law_sound();
}

static void judge_debts(void)
{
	law_header();
	law_spent(KEY, NULL, 72 + 72, (uint64_t)minutes(&longer, rest(KEY, &longer, 1)));
	law_full(KEY);
	law_sound();
}

static void judge_debts_standing(void)
{
	law_header();
	law_whole(KEY, &longer, 72 + 72, 1);
	law_full(KEY);
	law_sound();
}

/* ---- Scenes ---- */

static const struct scene one_limit = {
	.title = "a new limit admits its capacity, whoever raises the longest time to full, and is killed after it",
	.actors = 3,
	.mortals = 2,
	.set = set,
	.act = act_one_limit,
	.judge = judge_one_limit,
};

static const struct scene batches = {
	.title =
		"calls that take as many as fit together get a new limit's capacity, by however old readings of the clock",
	.actors = 3,
	.mortals = 2,
	.set = set,
	.act = act_batches,
	.judge = judge_one_limit,
};

static const struct scene two_limits = {
	.title = "limits of one place together admit what the longest does, however much time passes",
	.actors = 3,
	.mortals = 2,
	.away_ns = { 20 * MINUTE, 45 * MINUTE, 61 * MINUTE },
	.set = set,
	.act = act_two_limits,
	.judge = judge_two_limits,
};

static const struct scene debts = {
	.title = "what two debts owe is owed, whoever raises the longest, and is killed after it",
	.actors = 3,
	.mortals = 2,
	.set = set,
	.act = act_debts,
	.judge = judge_debts_standing,
};

static const struct scene debts_in_time = {
	.title = "what two debts owe is owed, however much time passes",
	.actors = 3,
	.mortals = 2,
	.away_ns = { 20 * MINUTE, 61 * MINUTE },
	.set = set,
	.act = act_debts,
	.judge = judge_debts,
};

/* ---- Variants ---- */

static struct layout_header apart;

/* The first actor: a copy of the header has its numbers, as it was when it began. */
static void begin_apart(void)
{
	apart = *stage.l->header;
	handle()->header = &apart;
}

static void end_apart(void)
{
	handle()->header = stage.l->header;
}

/* It raises them when its word is there. */
static void late(const struct shmlimit_limit *limit, int reserves)
{
	begin_apart();
	spend(KEY, limit, 3, reserves);
	end_apart();
	gcra_will_fill(handle(), full_ticks(limit));
	if (reserves)
		gcra_will_owe(handle(), debt_ticks(limit));
}

/* It has read them before the word. */
static void early(const struct shmlimit_limit *limit, int reserves)
{
	begin_apart();
	gcra_will_fill(stage.l, full_ticks(limit));
	if (reserves)
		gcra_will_owe(stage.l, debt_ticks(limit));
	spend(KEY, limit, 3, reserves);
	end_apart();
}

static void act_late_longest(unsigned who)
{
	if (who == 0)
		late(&longer, 0);
	else
		act_one_limit(who);
}

static void act_early_longest(unsigned who)
{
	if (who == 0)
		early(&longer, 0);
	else
		act_one_limit(who);
}

static void act_late_debt(unsigned who)
{
	if (who == 0)
		late(&longer, 1);
	else
		act_debts(who);
}

static void act_early_debt(unsigned who)
{
	if (who == 0)
		early(&longer, 1);
	else
		act_debts(who);
}

/* A law is broken, with no process killed. */
static void fails(struct scene scene, struct shmlimit *(*set_up)(void), void (*act)(unsigned who), const char *title)
{
	if (getenv("SCENE") != NULL)
		return;
	scene.set = set_up;
	scene.act = act;
	scene.mortals = 0;
	stage_open(&scene);
	ok(!search(), "%s", title);
	diag("%s", schedule.blamed);
	stage_close();
}

int main(void)
{
	play(&one_limit);
	play(&batches);
	play(&two_limits);
	play(&debts);
	play(&debts_in_time);
	fails(one_limit, set, act_late_longest, "a longest time to full that is raised after the word admits too much");
	fails(one_limit, set, act_early_longest, "a longest time to full that is read before the word admits too much");
	fails(debts, set_filled, act_late_debt, "a longest debt that is raised after the word forgets what is owed");
	fails(debts, set_filled, act_early_debt, "a longest debt that is read before the word forgets what is owed");
	return tap_done();
}
