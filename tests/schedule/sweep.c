/*
 * sweep: the table is swept while others decide, and processes are stopped or killed anywhere: what was admitted lasts, what is
 * over does not come back, and a round that a killed process began is finished (I1, I4, I8). See lib/table/sweep.h.
 *
 * Between calls time passes: more than the time after which the table is due, more than twice that, and almost all of a word's
 * range. No call lasts longer than the slack that is promised: an eighth of back_ns, and ahead_ns (shmlimit(7), Stopped for long
 * in a decision): an actor that would be stopped for longer is killed as time passes, or no time passes.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#define SCHEDULES 1000 /* of each algorithm */
#include "stage.h"
#include "algorithm.h"

#define PERIOD_NS SECOND
#define KEYS 2
#define YEARS_NS (10 * 365 * DAY_NS) /* the most that passes at once */

static struct shmlimit_range range;
static uint64_t capacity, fresh, after_ns, slack_ns, most_ns; /* fresh: what a new key has */
static int tries;                     /* an entry of a HOLD is in force while it is tried, and may be lost */
static uint64_t in_vain;              /* a bit for each call that gives back what it took, as another limit denies */
static uint64_t began_ns[ACTORS_MAX]; /* the actor's last call */

static struct shmlimit *set(struct shmlimit_rule rule)
{
	struct shmlimit *l = stage_set(SHMLIMIT_FULL_DENY, 1, rule);

	range = (struct shmlimit_range){ .struct_size = sizeof(range) };
	if (shmlimit_rule_range(l, stage.rule, &range) != 0)
		bail("rule_range");
	capacity = fresh = rule.capacity;
	after_ns = l->header->sweep_after_ns;
	/* A word that is further ahead than its range is one of the past. */
	slack_ns = after_ns / 4 < range.ahead_ns ? after_ns / 4 : range.ahead_ns - PERIOD_NS;
	tries = rule.algorithm == SHMLIMIT_HOLD;
	most_ns = range.back_ns + range.ahead_ns < YEARS_NS ? range.back_ns + range.ahead_ns : YEARS_NS;
	/* Denied calls may write: they sweep. */
	stage.changing = 1;
	return l;
}

static void begin(void)
{
	in_vain = 0;
}

static int is_in_vain(const struct call *c)
{
	return (in_vain >> (c - stage.calls) & 1) != 0;
}

static unsigned me(void)
{
	return (unsigned)(schedule.acting - schedule.actor);
}

/* Is another actor in a call that would then be longer than the slack? */
static int lasts_too_long(const struct actor *a, uint64_t ns)
{
	return a != schedule.acting && a->state == STOPPED &&
	       schedule.now_ns + ns - began_ns[a - schedule.actor] >= slack_ns;
}

/* Time passes for all actors. WHY NOT away_ns: it does not know in which call an actor is stopped. */
static void pass(void)
{
	const uint64_t choices[] = { 0,
		                     PERIOD_NS / 2,
		                     slack_ns / 4 * 3,
		                     after_ns + after_ns / 8,
		                     2 * after_ns + after_ns / 8,
		                     most_ns - PERIOD_NS / 2 };
	uint64_t ns = choices[rng_below(&schedule.rng, 6)];
	int kills = rng_below(&schedule.rng, 2) == 0;

	for (unsigned i = 0; i < schedule.scene->actors; i++) {
		struct actor *a = &schedule.actor[i];

		if (!lasts_too_long(a, ns))
			continue;
		if (!kills)
			return;
		if (schedule.telling)
			diag("  %u: is killed", i);
		a->state = KILLED;
		schedule.kills++;
		if (schedule.writer == a)
			schedule.writer = NULL;
	}
	schedule.now_ns += ns;
	if (schedule.telling)
		diag("  it is %" PRIu64 " ns later", schedule.now_ns - START_NS);
}

/* ---- Actors ---- */

static void take_all_of(uint32_t key)
{
	began_ns[me()] = schedule.now_ns;
	take(key, capacity);
}

static void act_taking(unsigned who)
{
	take_all_of(1 + who % KEYS);
	pass();
	take_all_of(1 + who % KEYS);
	take_all_of(KEYS - who % KEYS);
	pass();
	take_all_of(1 + who % KEYS);
}

/* All or none of the key, and of one that never has as much. */
static void ask_in_vain(uint32_t key, uint64_t cost)
{
	struct call *c = call_begin(key, (int64_t)cost);
	uint32_t held = 0;
	struct shmlimit_request requests[2] = {
		{ .rule = stage.rule, .key = &key, .key_len = sizeof(key), .cost = cost },
		{ .rule = stage.held, .key = &held, .key_len = sizeof(held), .cost = 2 },
	};

	actor_calls();
	in_vain |= (uint64_t)1 << (c - stage.calls);
	began_ns[me()] = schedule.now_ns;
	call_end(c, shmlimit_take_all(handle(), requests, 2, NULL, NULL));
	if (c->answer != SHMLIMIT_DENIED)
		blame("a call got twice what there is");
}

static void act_in_vain(unsigned who)
{
	take_all_of(1 + who % KEYS);
	pass();
	ask_in_vain(1 + who % KEYS, capacity);
	ask_in_vain(KEYS - who % KEYS, 1);
	pass();
	if (who == 0)
		ask_in_vain(1, capacity);
	else
		take_all_of(KEYS - who % KEYS);
}

static void grow(unsigned who)
{
	for (unsigned i = 0; i < 2; i++) {
		actor_calls();
		began_ns[who] = schedule.now_ns;
		(void)shmlimit_grow(handle(), i == 0 ? 2 * SLOTS : 0);
		pass();
	}
}

static void act_growing(unsigned who)
{
	if (who == 2)
		grow(who);
	else
		act_taking(who);
}

static void act_growing_in_vain(unsigned who)
{
	if (who == 2)
		grow(who);
	else
		act_in_vain(who);
}

/* Deposits are calls that give back. */
static void deposit(uint32_t key)
{
	struct call *c = call_begin(key, -1);

	actor_calls();
	began_ns[me()] = schedule.now_ns;
	call_end(c, shmlimit_lease_deposit(handle(), stage.rule, &key, sizeof(key), 1, 0, 0, PERIOD_NS, NULL));
}

static void spend(uint32_t key)
{
	began_ns[me()] = schedule.now_ns;
	take(key, 1);
}

static void act_leasing(unsigned who)
{
	deposit(1 + who % KEYS);
	spend(1 + who % KEYS);
	pass();
	spend(KEYS - who % KEYS);
	deposit(1 + who % KEYS);
	pass();
	spend(1 + who % KEYS);
}

static void act_leasing_in_vain(unsigned who)
{
	deposit(1 + who % KEYS);
	ask_in_vain(1 + who % KEYS, 1);
	pass();
	ask_in_vain(KEYS - who % KEYS, 1);
	deposit(1 + who % KEYS);
	ask_in_vain(1 + who % KEYS, 1);
	pass();
	spend(1 + who % KEYS);
}

/* ---- Laws ---- */

/* When a call ended, or was killed, at the latest. */
static uint64_t ended_ns(const struct call *c)
{
	uint64_t killed_ns = c->began_ns + slack_ns;

	return c->ended != 0 ? c->ended_ns : killed_ns < schedule.now_ns ? killed_ns : schedule.now_ns;
}

/* Is what the one did in force when the other began, perhaps? */
static int may_last_until(const struct call *c, const struct call *other)
{
	return c->key == other->key && c->began < other->ended &&
	       ended_ns(c) + PERIOD_NS + 2 * (range.resolution_ps / 1000 + 1) >= other->began_ns;
}

/* I1: all of a key is admitted once in a period, whichever of two calls was first. */
static void law_lasts(const struct call *a)
{
	for (unsigned i = 0; i < stage.n; i++) {
		const struct call *b = &stage.calls[i];

		if (a != b && a->key == b->key && was_taken(a) && was_taken(b) && a->ended < b->ended &&
		    b->ended_ns - a->began_ns < PERIOD_NS && (int64_t)(a->ended_ns - b->began_ns) < (int64_t)PERIOD_NS)
			blame("key %" PRIu32 " is admitted twice within its period", a->key);
	}
}

/*
 * What is over denies nothing: a denial has an admission within a period before it; or a call in vain, which gives back
 * what it took less what refilled since, where another one changed the slot.
 */
static void law_ends(const struct call *denied)
{
	for (unsigned i = 0; i < stage.n; i++) {
		const struct call *c = &stage.calls[i];

		if (c != denied && may_last_until(c, denied) &&
		    (may_have_taken(c) || is_in_vain(c) || (tries && c->ended > denied->began)))
			return;
	}
	blame("key %" PRIu32 " is denied by what is over", denied->key);
}

/* I1, of a lease: each token is spent once, within its time. */
static void law_deposited(const struct call *spent)
{
	unsigned deposits = 0, spends = 0, recent = 0;

	for (unsigned i = 0; i < stage.n; i++) {
		const struct call *c = &stage.calls[i];

		if (c->key != spent->key || c->began > spent->ended)
			continue;
		deposits += c->tokens < 0;
		recent += c->tokens < 0 && may_last_until(c, spent);
		spends += c->tokens > 0 && was_taken(c) && c->ended <= spent->ended;
	}
	if (recent == 0 || spends > deposits)
		blame("key %" PRIu32 " spends what is over", spent->key);
}

/*
 * Was a word over before the mark? A word that was written so long after the mark that it is outside of its range seems to
 * have been over for about all of that. A window's range ends with back_ns, whatever ahead_ns says: there that is the sooner
 * the older the mark is. WHY NOT of a LEASE or a HOLD: they say nothing between claim and first use.
 */
static int was_over(const struct look *k, uint64_t word)
{
	const struct algorithm *a = algorithm_of(k->params);
	uint64_t age_ns = schedule.now_ns - k->at.now_ns, known_ns;
	struct shmlimit_range its = { 0 };
	struct balance b;

	a->range(k->params, &its);
	if (its.ahead_ns == INT64_MAX)
		known_ns = its.back_ns > age_ns ? its.back_ns - age_ns : 0;
	else
		known_ns = (its.ahead_ns < its.back_ns ? its.ahead_ns : its.back_ns) / 2;
	a->read(k, word, &b);
	return (a->cells == NULL || a->cells->begin == NULL) && !b.stepped && a->wait(k, &b) == 0 &&
	       a->idle_ns(k, word) < known_ns;
}

/* The mark is no later than what was swept. */
static void law_mark(void)
{
	const struct layout_slot *slot;
	struct generation tables;
	const struct table *t;

	if ((int64_t)(schedule.now_ns - stage.l->header->swept.ns) < 0)
		blame("the mark is later than the time");
	if (!generation_read(stage.l, &tables))
		blame("the tables are damaged");
	/* It is before the clock began, when ticks do not go on from the ones before. Nothing was over then. */
	if ((int64_t)stage.l->header->swept.ns < 0)
		return;
	for (uint64_t i = 0; (slot = generation_slot(&tables, i, &t)) != NULL; i++) {
		struct rule_view view;
		struct look k;

		if (rule_load_tag(stage.l, slot->tag & ~TAG_FROZEN, &view) != 0)
			continue;
		k = look_make(stage.l, t, slot, &view.params, when_given(stage.l->header->swept.ns));
		if (was_over(&k, slot->word))
			blame("slot %" PRIu64 " was over before the mark", i);
	}
}

/* A time at which all that was admitted is over. */
static uint64_t later(void)
{
	uint64_t ns = 2 * PERIOD_NS + range.resolution_ps / 500;

	switch (rng_below(&schedule.rng, 4)) {
	case 0:
		return ns + rng_below(&schedule.rng, 2 * PERIOD_NS);
	case 1:
		return ns + rng_below(&schedule.rng, 3 * after_ns);
	case 2:
		return ns + most_ns - rng_below(&schedule.rng, 2 * PERIOD_NS);
	default:
		return ns + rng_below(&schedule.rng, 2 * most_ns);
	}
}

/* Left alone, a key is as good as new, whenever it is looked at. */
static void law_forgotten(void)
{
	uint64_t now_ns = schedule.now_ns;

	for (unsigned i = 0; i < 4; i++) {
		uint32_t key = 1 + i % KEYS;

		schedule.now_ns = now_ns + later();
		if (left(key) != fresh)
			blame("key %" PRIu32 " is not as a new one after %" PRIu64 " ns", key,
			      schedule.now_ns - now_ns);
	}
	schedule.now_ns = now_ns;
}

/* One decision finishes a round that is overdue; and some decisions one that is due, also one that a killed process began. */
static void law_finished(void)
{
	const uint64_t *swept_ns = &stage.l->header->swept.ns;
	unsigned calls = 1;
	uint32_t key = 1;

	if (rng_below(&schedule.rng, 2) == 0) {
		schedule.now_ns += later();
		if (schedule.now_ns - *swept_ns < 2 * after_ns)
			schedule.now_ns = *swept_ns + 2 * after_ns;
	} else {
		/* Of those two rounds, and all chunks of both tables: the first may have begun too early. */
		calls = 2 * (1 + TABLES_SLOTS / 8);
		if (schedule.now_ns - *swept_ns <= after_ns)
			schedule.now_ns = *swept_ns + after_ns + after_ns / 8;
	}
	for (unsigned i = 0; i < calls; i++) {
		int answer = shmlimit_take(stage.l, stage.rule, &key, sizeof(key), 1, NULL);

		if (calls == 1 && answer != (fresh == 0))
			blame("key %" PRIu32 " is not as a new one when it is taken from", key);
	}
	/* A round that one decision finishes may have begun earlier. */
	if (schedule.now_ns - *swept_ns > (calls == 1 ? after_ns + after_ns / 2 : after_ns))
		blame("%u decisions do not finish a round", calls);
	law_mark();
}

static void judge(void)
{
	law_mark();
	law_forgotten();
	law_finished();
	law_sound();
}

static void judge_taking(void)
{
	for (unsigned i = 0; i < stage.n; i++) {
		law_lasts(&stage.calls[i]);
		if (stage.calls[i].ended != 0 && stage.calls[i].answer == SHMLIMIT_DENIED &&
		    !is_in_vain(&stage.calls[i]))
			law_ends(&stage.calls[i]);
	}
	judge();
}

static void judge_leasing(void)
{
	for (unsigned i = 0; i < stage.n; i++)
		if (stage.calls[i].tokens > 0 && was_taken(&stage.calls[i]))
			law_deposited(&stage.calls[i]);
	judge();
}

/* ---- Scenes ---- */

static struct shmlimit *set_funnel(void)
{
	return set((struct shmlimit_rule){ .capacity = 4, .refill = 4, .period_ns = PERIOD_NS });
}

static struct shmlimit *set_window(void)
{
	return set((struct shmlimit_rule){ .algorithm = SHMLIMIT_WINDOW, .capacity = 2, .period_ns = PERIOD_NS });
}

/* A count of 47 bits leaves 16 for its time: 34 seconds, of which a half is the past. */
static struct shmlimit *set_counter(void)
{
	return set((struct shmlimit_rule){
		.algorithm = SHMLIMIT_COUNTER, .capacity = (uint64_t)1 << 47, .period_ns = PERIOD_NS });
}

static struct shmlimit *set_hold(void)
{
	return set((struct shmlimit_rule){ .algorithm = SHMLIMIT_HOLD, .capacity = 1, .period_ns = PERIOD_NS });
}

static struct shmlimit *set_lease(void)
{
	struct shmlimit *l = set((struct shmlimit_rule){
		.algorithm = SHMLIMIT_LEASE, .capacity = 4, .refill = 4, .period_ns = PERIOD_NS });

	fresh = 0;
	return l;
}

static struct shmlimit *set_gcra(void)
{
	return set((struct shmlimit_rule){
		.algorithm = SHMLIMIT_GCRA, .capacity = 4, .refill = 4, .period_ns = PERIOD_NS });
}

/* Two tokens are paid for in a period, warm or cold; three are stored. */
static struct shmlimit *set_warmup(void)
{
	struct shmlimit *l = set((struct shmlimit_rule){ .algorithm = SHMLIMIT_WARMUP,
	                                                 .refill = 2,
	                                                 .period_ns = PERIOD_NS,
	                                                 .warmup_ns = PERIOD_NS,
	                                                 .cold_factor_milli = 1000 });

	capacity = 2;
	fresh = 3;
	return l;
}

static struct shmlimit *growing(struct shmlimit *l)
{
	stage.growing = 1;
	return l;
}

static struct shmlimit *set_growing(void)
{
	return growing(set_counter());
}

static struct shmlimit *set_growing_funnel(void)
{
	return growing(set_funnel());
}

static struct shmlimit *set_growing_warmup(void)
{
	return growing(set_warmup());
}

static struct shmlimit *set_growing_window(void)
{
	return growing(set_window());
}

static const struct scene scenes[] = {
	{ .title = "a funnel's tokens are taken once, and refill, however much time passes while the table is swept",
	  .set = set_funnel,
	  .act = act_taking,
	  .judge = judge_taking },
	{ .title = "a window admits its capacity in a period, however much time passes while the table is swept",
	  .set = set_window,
	  .act = act_taking,
	  .judge = judge_taking },
	{ .title = "a count lasts for its period and no longer, however much time passes while the table is swept",
	  .set = set_counter,
	  .act = act_taking,
	  .judge = judge_taking },
	{ .title = "a count lasts for its period and no longer while the table grows and is swept",
	  .set = set_growing,
	  .act = act_growing,
	  .judge = judge_taking },
	{ .title = "a place is held for its period and no longer, however much time passes while the table is swept",
	  .set = set_hold,
	  .act = act_taking,
	  .judge = judge_taking },
	{ .title = "a lease is spent once and within its time, however much time passes while the table is swept",
	  .set = set_lease,
	  .act = act_leasing,
	  .judge = judge_leasing },
	{ .title = "what a denied call gives a funnel back is not older than the mark of a sweep",
	  .set = set_funnel,
	  .act = act_in_vain,
	  .judge = judge_taking },
	{ .title = "what a denied call gives a warm-up back is not older than the mark of a sweep",
	  .set = set_warmup,
	  .act = act_in_vain,
	  .judge = judge_taking },
	{ .title = "what a denied call gives a window back is not older than the mark of a sweep",
	  .set = set_window,
	  .act = act_in_vain,
	  .judge = judge_taking },
	{ .title = "what a denied call gives a count back is not older than the mark of a sweep",
	  .set = set_counter,
	  .act = act_in_vain,
	  .judge = judge_taking },
	{ .title = "what a denied call gives a GCRA key back is not older than the mark of a sweep",
	  .set = set_gcra,
	  .act = act_in_vain,
	  .judge = judge_taking },
	{ .title = "what a denied call gives a place back is not older than the mark of a sweep",
	  .set = set_hold,
	  .act = act_in_vain,
	  .judge = judge_taking },
	{ .title = "what a denied call gives a lease back is not older than the mark of a sweep",
	  .set = set_lease,
	  .act = act_leasing_in_vain,
	  .judge = judge_leasing },
	{ .title = "what a denied call gives a funnel back is not older than the mark while the table grows",
	  .set = set_growing_funnel,
	  .act = act_growing_in_vain,
	  .judge = judge_taking },
	{ .title = "what a denied call gives a warm-up back is not older than the mark while the table grows",
	  .set = set_growing_warmup,
	  .act = act_growing_in_vain,
	  .judge = judge_taking },
	{ .title = "what a denied call gives a window back is not older than the mark while the table grows",
	  .set = set_growing_window,
	  .act = act_growing_in_vain,
	  .judge = judge_taking },
	{ .title = "what a denied call gives a count back is not older than the mark while the table grows",
	  .set = set_growing,
	  .act = act_growing_in_vain,
	  .judge = judge_taking },
};

int main(void)
{
	for (size_t i = 0; i < sizeof(scenes) / sizeof(scenes[0]); i++) {
		struct scene scene = scenes[i];

		scene.actors = scene.mortals = 3;
		scene.begin = begin;
		play(&scene);
	}
	return tap_done();
}
