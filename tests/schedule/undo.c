/*
 * undo: denied calls for several limits, each of which took from the first one and gives that back, stopped at each of
 * their steps. While they are stopped time passes and others take: no key is admitted more than it may be (I1),
 * and while time stands it loses nothing (I2). LEASE rules are in lease.c.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "stage.h"

#define KEY 7
#define CAPACITY 6
#define TOKEN_NS 1000
#define PERIOD_NS (CAPACITY * TOKEN_NS)

/* The time of a reservation is the end of its wait. */
static void reserve(uint32_t key, uint64_t tokens)
{
	struct call *c = call_begin(key, (int64_t)tokens);
	struct shmlimit_result r = { 0 };

	actor_calls();
	call_end(c, shmlimit_reserve(handle(), stage.rule, &key, sizeof(key), tokens, UINT64_MAX, &r));
	c->began_ns += r.wait_ns;
	c->ended_ns += r.wait_ns;
}

/* One takes, the others ask in vain. All that is left at the end is taken at once: it counts, too. */
static void act(unsigned who)
{
	if (who == 2) {
		take(KEY, 2);
		take(KEY, CAPACITY - 1);
		take(KEY, 2);
		take(KEY, CAPACITY);
		return;
	}
	take_in_vain(KEY, 2);
	take_in_vain(KEY, 3);
	take(KEY, 1 + who);
}

static void act_reserving(unsigned who)
{
	if (who == 2) {
		reserve(KEY, CAPACITY - 1);
		reserve(KEY, 2);
		reserve(KEY, CAPACITY);
		return;
	}
	take_in_vain(KEY, 2);
	take_in_vain(KEY, 3);
	reserve(KEY, 1 + who);
}

static struct shmlimit *set_funnel(void)
{
	return stage_set(SHMLIMIT_FULL_DENY, 2,
	                 (struct shmlimit_rule){ .capacity = CAPACITY, .refill = 1, .period_ns = TOKEN_NS });
}

static struct shmlimit *set_funnel_in_debt(void)
{
	return stage_set(
		SHMLIMIT_FULL_DENY, 2,
		(struct shmlimit_rule){
			.capacity = CAPACITY, .refill = 1, .period_ns = TOKEN_NS, .max_wait_ns = 10 * PERIOD_NS });
}

static void judge_funnel(void)
{
	law_burst(KEY, CAPACITY, 1, TOKEN_NS, 2);
	law_sound();
}

static const struct scene funnel = {
	.title = "a funnel admits no more than its capacity and what refilled when denied calls give back late",
	.actors = 3,
	.mortals = 2,
	.away_ns = { TOKEN_NS + 1, PERIOD_NS, 3 * TOKEN_NS },
	.set = set_funnel,
	.act = act,
	.judge = judge_funnel,
};

static const struct scene funnel_in_debt = {
	.title = "a funnel admits no more than that when others reserve while denied calls are late",
	.actors = 3,
	.mortals = 2,
	.away_ns = { TOKEN_NS + 1, PERIOD_NS, 3 * TOKEN_NS },
	.set = set_funnel_in_debt,
	.act = act_reserving,
	.judge = judge_funnel,
};

/* Where times are given, that of one caller is later than those of the others, by less than the slack. */
#define LATER_NS (TOKEN_NS - 1)

static void act_given(unsigned who)
{
	uint32_t key = KEY, held = 0;
	struct shmlimit_request requests[2] = {
		{ .rule = stage.rule, .key = &key, .key_len = sizeof(key), .cost = 2 + who },
		{ .rule = stage.held, .key = &held, .key_len = sizeof(held), .cost = 1 },
	};

	for (unsigned i = 0; i < 3; i++) {
		uint64_t cost = who == 2 ? CAPACITY - i : 2 + who;
		struct call *c = call_begin(KEY, (int64_t)cost);

		actor_calls();
		if (who == 2) {
			c->began_ns += LATER_NS;
			call_end(c, shmlimit_take(at_time(handle(), c->began_ns), stage.rule, &key, sizeof(key), cost,
			                          NULL));
		} else {
			call_end(c, shmlimit_take_all(at_time(handle(), c->began_ns), requests, 2, NULL, NULL));
		}
		c->ended_ns = c->began_ns;
	}
}

/* At the end there may be one token too many. */
static void judge_given(void)
{
	schedule.now_ns += TOKEN_NS;
	judge_funnel();
}

static const struct scene funnel_given = {
	.title = "a funnel admits no more than that when each caller gives its time",
	.actors = 3,
	.mortals = 2,
	.set = set_funnel,
	.act = act_given,
	.judge = judge_given,
};

static struct shmlimit *set_count(void)
{
	return stage_set(
		SHMLIMIT_FULL_DENY, 2,
		(struct shmlimit_rule){ .algorithm = SHMLIMIT_COUNTER, .capacity = CAPACITY, .period_ns = PERIOD_NS });
}

/* At one moment there is one period. */
static void judge_count(void)
{
	law_period(KEY, CAPACITY, 1);
	law_sound();
}

static const struct scene count = {
	.title = "a count admits no more than its capacity at one moment when denied calls give back late",
	.actors = 3,
	.mortals = 2,
	.away_ns = { PERIOD_NS / 2, PERIOD_NS },
	.set = set_count,
	.act = act,
	.judge = judge_count,
};

static struct shmlimit *set_window(void)
{
	return stage_set(
		SHMLIMIT_FULL_DENY, 2,
		(struct shmlimit_rule){ .algorithm = SHMLIMIT_WINDOW, .capacity = CAPACITY, .period_ns = PERIOD_NS });
}

static void judge_window(void)
{
	law_period(KEY, CAPACITY, PERIOD_NS);
	law_sound();
}

static const struct scene window = {
	.title = "a window admits no more than its capacity in any period when denied calls give back late",
	.actors = 3,
	.mortals = 2,
	.away_ns = { PERIOD_NS / 2, PERIOD_NS - 1, PERIOD_NS },
	.set = set_window,
	.act = act,
	.judge = judge_window,
};

/* Where nothing is warmer than the rest, each token costs its interval, which the next request waits for. */
#define INTERVAL_NS 1000000

static struct shmlimit *set_warmup(void)
{
	return stage_set(SHMLIMIT_FULL_DENY, 2,
	                 (struct shmlimit_rule){ .algorithm = SHMLIMIT_WARMUP,
	                                         .refill = 1,
	                                         .period_ns = INTERVAL_NS,
	                                         .warmup_ns = 2 * CAPACITY * INTERVAL_NS,
	                                         .cold_factor_milli = 1000,
	                                         .max_wait_ns = 100 * INTERVAL_NS });
}

/* No request is larger than CAPACITY, and each is paid for before the next. */
static void judge_warmup(void)
{
	uint64_t burst = story_burst(story_and(KEY, 0), 1, INTERVAL_NS, INTERVAL_NS / 1000);

	if (burst > CAPACITY)
		blame("%" PRIu64 " above what was paid for", burst);
	law_sound();
}

static const struct scene warmup = {
	.title = "a warm-up lets no request pass before the last one is paid for when denied calls give back late",
	.actors = 3,
	.mortals = 2,
	.away_ns = { INTERVAL_NS + 1, CAPACITY *INTERVAL_NS, 3 * INTERVAL_NS },
	.set = set_warmup,
	.act = act_reserving,
	.judge = judge_warmup,
};

/* ---- While time stands ---- */

static void judge_standing(void)
{
	law_total(KEY, CAPACITY);
	law_sound();
}

static void act_standing(unsigned who)
{
	take_in_vain(KEY, 1 + who);
	take(KEY, 1);
	take_in_vain(KEY, 2);
	take(KEY, 1 + who);
}

static const struct scene standing_funnel = {
	.title = "while time stands a funnel loses nothing to denied calls",
	.actors = 3,
	.mortals = 2,
	.set = set_funnel,
	.act = act_standing,
	.judge = judge_standing,
};

static struct shmlimit *set_growing(void)
{
	struct shmlimit *l = set_funnel();

	stage.growing = 1;
	return l;
}

static void act_growing(unsigned who)
{
	if (who != 2) {
		take(KEY, 1);
		take_in_vain(KEY, 1 + who);
		take_in_vain(KEY, 2);
		return;
	}
	actor_calls();
	(void)shmlimit_grow(handle(), 2 * SLOTS);
	take_in_vain(KEY, 1);
}

static const struct scene standing_growing = {
	.title = "while time stands a funnel neither gains nor loses by denied calls while the table grows",
	.actors = 3,
	.mortals = 2,
	.set = set_growing,
	.act = act_growing,
	.judge = judge_standing,
};

static const struct scene standing_count = {
	.title = "while time stands a count loses nothing to denied calls",
	.actors = 3,
	.mortals = 2,
	.set = set_count,
	.act = act_standing,
	.judge = judge_standing,
};

static const struct scene standing_window = {
	.title = "while time stands a window loses nothing to denied calls",
	.actors = 3,
	.mortals = 2,
	.set = set_window,
	.act = act_standing,
	.judge = judge_standing,
};

/* A place is entered, and left again. */
static struct shmlimit *set_hold(void)
{
	return stage_set(
		SHMLIMIT_FULL_DENY, 2,
		(struct shmlimit_rule){ .algorithm = SHMLIMIT_HOLD, .capacity = 2, .period_ns = 100 * PERIOD_NS });
}

static void act_holding(unsigned who)
{
	take_in_vain(KEY, 1);
	if (who != 0)
		take(KEY, 1);
	take_in_vain(KEY, 1);
	take(KEY, 1);
}

static void judge_hold(void)
{
	law_total(KEY, 2);
	law_sound();
}

static const struct scene hold = {
	.title = "denied calls leave the places that they entered, and no others",
	.actors = 3,
	.mortals = 2,
	.set = set_hold,
	.act = act_holding,
	.judge = judge_hold,
};

int main(void)
{
	play(&funnel);
	play(&funnel_in_debt);
	play(&funnel_given);
	play(&count);
	play(&window);
	play(&warmup);
	play(&standing_funnel);
	play(&standing_growing);
	play(&standing_count);
	play(&standing_window);
	play(&hold);
	return tap_done();
}
