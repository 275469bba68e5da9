/*
 * stage: what the scenes share: a segment of 16 slots, so that each key's probe window is the whole table; a record of
 * calls; and the laws that judge them. Each actor has its own handle, a copy as a forked child has one: what it knows
 * of larger tables is its own, and may be out of date.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_SCHEDULE_STAGE_H
#define TESTS_SCHEDULE_STAGE_H

#include "schedule.h"

#include "../torture/history.h"
#include "counter.h"
#include "generation.h"
#include "rule.h"
#include "table.h"

#define SLOTS SHMLIMIT_SLOTS_MIN
#define TABLES_SLOTS 128 /* of two tables, as far as scenes grow them */
#define CALLS_MAX 64
#define DAY_NS (86400 * SECOND)
#define VERIFY_EACH 512 /* schedules: it opens the segment */
#define SECOND_KEYS 100 /* keys from this one on are of the second rule, up to that many; not all scenes have one */

/* A call that takes, or gives back (tokens < 0). */
struct call {
	uint32_t key;
	int64_t tokens;
	uint64_t began_ns, ended_ns;
	unsigned began, ended; /* in the order of beginnings and ends; ended 0: killed in it */
	int answer;
	int dry; /* allowed, but nothing was taken */
};

static struct {
	struct shmlimit *l;                      /* the judge's handle */
	struct shmlimit first, view[ACTORS_MAX]; /* as it was opened; the actors' */
	int rule, held;                          /* ids: what the scene is about; a token a day */
	int second;                              /* id of a rule for keys from SECOND_KEYS on */
	int dry;                                 /* it may be dry: a call must tell whether it took */
	int peaceful;                            /* it shows something even if no call is denied or loses a swap */
	int changing;                            /* its rule is: denials may write, to convert, and it may be gone */
	int growing;                             /* its table is: denials may write, to carry */
	struct call calls[CALLS_MAX];
	unsigned n, moments;
	uint64_t allowed, denied, lost; /* of a whole scene */
	struct history history;
	struct story story;
} stage;

static void stage_clear(void)
{
	stage.n = stage.moments = 0;
	for (unsigned i = 0; i < ACTORS_MAX; i++) {
		stage.view[i] = stage.first;
		stage.view[i].self = &stage.view[i];
	}
	*stage.l = stage.first;
}

/* The handle of the running actor. */
static inline struct shmlimit *handle(void)
{
	return schedule.acting == NULL ? stage.l : &stage.view[schedule.acting - schedule.actor];
}

static inline int set_rule(const char *name, struct shmlimit_rule rule)
{
	int id;

	rule.struct_size = sizeof(rule);
	id = shmlimit_rule_set(handle(), name, &rule);
	if (id < 0)
		blame("rule_set %s: %s", name, shmlimit_strerror(id));
	return id;
}

static inline int rule_of(uint32_t key)
{
	return key >= SECOND_KEYS && key < 2 * SECOND_KEYS ? stage.second : stage.rule;
}

/* The rule "scene", and a table in which `held` slots are taken for days. */
static inline struct shmlimit *stage_make(const struct shmlimit_options *options, unsigned held,
                                          struct shmlimit_rule rule)
{
	stage.l = unit_create("schedule", options);
	/* Places in the table are the same each time. */
	stage.l->secret[0] = 0x5eed;
	stage.l->secret[1] = 0xca11;
	for (unsigned i = 0; i < CELLS_SIZES_OF_SCENES; i++)
		if (cells_map(stage.l, i) == NULL)
			bail("no addresses");
	stage.first = *stage.l;
	stage.held = set_rule("held", (struct shmlimit_rule){ .capacity = 1, .refill = 1, .period_ns = DAY_NS });
	stage.rule = set_rule("scene", rule);
	for (uint32_t key = 0; key < held; key++)
		if (shmlimit_take(stage.l, stage.held, &key, sizeof(key), 1, NULL) != SHMLIMIT_ALLOWED)
			bail("key %u finds no place", key);
	stage.changing = stage.growing = stage.dry = stage.peaceful = 0;
	stage.allowed = stage.denied = stage.lost = 0;
	return stage.l;
}

static inline struct shmlimit *stage_set(uint32_t on_full, unsigned held, struct shmlimit_rule rule)
{
	struct shmlimit_options options = {
		.struct_size = sizeof(options), .slots = SLOTS, .rules = 2, .rules_max = 2, .on_full = on_full
	};

	return stage_make(&options, held, rule);
}

/* ---- Calls ---- */

static struct call *call_begin(uint32_t key, int64_t tokens)
{
	struct call *c = &stage.calls[stage.n++];

	if (stage.n >= CALLS_MAX)
		bail("too many calls");
	*c = (struct call){
		.key = key, .tokens = tokens, .began_ns = schedule.now_ns, .began = ++stage.moments, .answer = -EINTR
	};
	if (schedule.telling)
		diag("  %td: wants %" PRId64 " of key %u", schedule.acting - schedule.actor, tokens, key);
	return c;
}

static void call_end(struct call *c, int answer)
{
	c->ended_ns = schedule.now_ns;
	c->ended = ++stage.moments;
	c->answer = answer;
	if (schedule.telling)
		diag("  %td: is %s", schedule.acting - schedule.actor,
		     answer == SHMLIMIT_ALLOWED  ? "allowed"
		     : answer == SHMLIMIT_DENIED ? "denied"
		                                 : shmlimit_strerror(answer));
	if (answer == SHMLIMIT_ALLOWED)
		stage.allowed++;
	else if (answer == SHMLIMIT_DENIED)
		stage.denied++;
	else if (answer != -ESRCH || !stage.changing)
		blame("a call failed: %s", shmlimit_strerror(answer));
}

/* Take. I5 is judged here: a denial that no other actor interrupted leaves the table as it was. */
static inline void take(uint32_t key, uint64_t cost)
{
	struct call *c = call_begin(key, (int64_t)cost);
	struct layout_slot before[SLOTS];
	unsigned turns = schedule.turns;
	struct shmlimit_result r = { 0 };

	actor_calls();
	memcpy(before, stage.l->tables->slots, sizeof(before));
	/* Every other time by the way that is shorter. */
	call_end(c, shmlimit_take(handle(), rule_of(key), &key, sizeof(key), cost,
	                          stage.n % 2 == 0 && !stage.dry ? NULL : &r));
	c->dry = c->answer == SHMLIMIT_ALLOWED && r.retry_after_ns != 0;
	if (c->answer == SHMLIMIT_DENIED && turns == schedule.turns && !stage.changing && !stage.growing &&
	    memcmp(before, stage.l->tables->slots, sizeof(before)) != 0)
		blame("a denial wrote to the table");
}

/* Take of `most` tokens as many as fit, by a limit of the call or NULL: the call is then one that wanted those. */
static inline void take_some(uint32_t key, uint64_t most, const struct shmlimit_limit *limit, int64_t unit)
{
	struct call *c = call_begin(key, (int64_t)most * unit);
	struct shmlimit_result r = { 0 };
	struct shmlimit_request q = {
		.rule = rule_of(key), .key = &key, .key_len = sizeof(key), .cost = most, .limit = limit
	};
	int answer;

	actor_calls();
	answer = shmlimit_decide(handle(), SHMLIMIT_TAKE_SOME, &q, &r);
	/* If it is killed it may have taken all; what is denied lacked the first. */
	c->tokens = (int64_t)(answer == SHMLIMIT_ALLOWED ? r.granted : 1) * unit;
	if (answer >= 0 && (r.granted > most || (r.granted == 0) != (answer == SHMLIMIT_DENIED)))
		blame("granted %" PRIu64 " of %" PRIu64, r.granted, most);
	call_end(c, answer);
	/* A part was granted: there was no more, unless more came back since. */
	if (limit == NULL && answer >= 0 && r.granted < most && r.remaining != 0)
		blame("granted %" PRIu64 " of %" PRIu64 ", and left %" PRIu64, r.granted, most, r.remaining);
}

/* Take from the key and from one that has no token, all or none. */
static inline void take_in_vain(uint32_t key, uint64_t cost)
{
	struct call *c = call_begin(key, (int64_t)cost);
	uint32_t held = 0;
	struct shmlimit_request requests[2] = {
		{ .rule = stage.rule, .key = &key, .key_len = sizeof(key), .cost = cost },
		{ .rule = stage.held, .key = &held, .key_len = sizeof(held), .cost = 1 },
	};

	actor_calls();
	call_end(c, shmlimit_take_all(handle(), requests, 2, NULL, NULL));
	if (c->answer != SHMLIMIT_DENIED)
		blame("a call got what is held");
}

static inline void charge(uint32_t key, uint64_t tokens)
{
	struct call *c = call_begin(key, (int64_t)tokens);

	actor_calls();
	call_end(c, shmlimit_charge(handle(), rule_of(key), &key, sizeof(key), tokens, NULL));
}

static inline void refund(uint32_t key, uint64_t tokens)
{
	struct call *c = call_begin(key, -(int64_t)tokens);

	actor_calls();
	call_end(c, shmlimit_refund(handle(), rule_of(key), &key, sizeof(key), tokens, NULL));
}

/* Change the rule. */
static inline void change(struct shmlimit_rule rule)
{
	actor_calls();
	(void)set_rule("scene", rule);
}

/* What a key still has: only while no actor runs. */
static inline uint64_t left(uint32_t key)
{
	struct shmlimit_result r = { 0 };
	int answer = shmlimit_peek(stage.l, rule_of(key), &key, sizeof(key), 1, &r);

	if (answer < 0)
		blame("peek: %s", shmlimit_strerror(answer));
	return r.remaining;
}

/* ---- Laws, once no actor runs any more ---- */

static inline int was_taken(const struct call *c)
{
	return c->answer == SHMLIMIT_ALLOWED && !c->dry;
}

/* Who was killed in a call may have taken. */
static inline int may_have_taken(const struct call *c)
{
	return was_taken(c) || c->ended == 0;
}

/*
 * I1, I2: while time stands, what calls got of a key and what is left are no less than `least` and no more than
 * `most`: to the token its capacity, where both are that.
 */
static inline void law_between(uint32_t key, int64_t least, int64_t most)
{
	int64_t taken = 0, given = 0, open = 0, rest = (int64_t)left(key);

	for (unsigned i = 0; i < stage.n; i++) {
		const struct call *c = &stage.calls[i];

		if (c->key != key)
			continue;
		if (was_taken(c))
			taken += c->tokens;
		else if (may_have_taken(c) && c->tokens > 0)
			open += c->tokens;
		else if (may_have_taken(c))
			given -= c->tokens;
	}
	if (taken + rest > most + given)
		blame("key %u: took %" PRId64 ", has %" PRId64 ": more than its capacity of %" PRId64, key, taken, rest,
		      most + given);
	if (taken + open + rest < least)
		blame("key %u: took %" PRId64 ", perhaps %" PRId64 " more, has %" PRId64
		      ": less than its capacity of %" PRId64,
		      key, taken, open, rest, least);
}

static inline void law_total(uint32_t key, int64_t capacity)
{
	law_between(key, capacity, capacity);
}

/* While time stands, a key that was made full has had its capacity since: by whom it was, stands in `born`. */
static inline void law_since(uint32_t key, const struct call *born, uint64_t capacity)
{
	uint64_t since = 0, perhaps = 0, rest = left(key);

	for (unsigned i = 0; i < stage.n; i++) {
		const struct call *c = &stage.calls[i];

		if (was_taken(c) && c->began > born->ended)
			since += (uint64_t)c->tokens;
		else if (may_have_taken(c) && (c->ended == 0 || c->ended > born->began))
			perhaps += (uint64_t)c->tokens;
	}
	if (since + rest > capacity)
		blame("took %" PRIu64 " since it was made full, has %" PRIu64, since, rest);
	if (since + perhaps + rest < capacity)
		blame("took %" PRIu64 ", perhaps %" PRIu64 " more, has %" PRIu64 ": of what was before", since, perhaps,
		      rest);
}

/* I2: while time stands, a denied call was too late: others had begun to take what it lacked. */
static inline void law_denials(uint64_t capacity)
{
	for (unsigned i = 0; i < stage.n; i++) {
		const struct call *c = &stage.calls[i];
		uint64_t begun = 0;

		if (c->ended == 0 || c->answer != SHMLIMIT_DENIED)
			continue;
		for (unsigned j = 0; j < stage.n; j++)
			if (stage.calls[j].key == c->key && stage.calls[j].began < c->ended &&
			    stage.calls[j].tokens > 0 && may_have_taken(&stage.calls[j]))
				begun += (uint64_t)stage.calls[j].tokens;
		if (begun + (uint64_t)c->tokens <= capacity)
			blame("key %u: a call was denied while no more than %" PRIu64 " of %" PRIu64 " were taken",
			      c->key, begun, capacity);
	}
}

/* A key's admissions of a multiple of `unit` tokens, and `more` tokens now. */
static inline const struct story *story_part(uint32_t key, int64_t unit, uint64_t more)
{
	history_clear(&stage.history);
	for (unsigned i = 0; i < stage.n; i++) {
		const struct call *c = &stage.calls[i];

		if (c->key == key && was_taken(c) && c->tokens % unit == 0)
			history_add(&stage.history, 0, key, (uint64_t)c->tokens, c->began_ns, c->ended_ns);
	}
	if (more != 0)
		history_add(&stage.history, 0, key, more, schedule.now_ns, schedule.now_ns);
	history_tell(&stage.history, 0, key, &stage.story);
	return &stage.story;
}

/* All admissions of a key, and `more` tokens now. */
static inline const struct story *story_and(uint32_t key, uint64_t more)
{
	return story_part(key, 1, more);
}

static inline const struct story *story_of(uint32_t key)
{
	return story_and(key, left(key));
}

/* I1: in no stretch of time more than the capacity and what came back, and what differing clocks make of that. */
static inline void law_burst(uint32_t key, uint64_t capacity, uint64_t count, uint64_t period_ns, uint64_t grace_ns)
{
	uint64_t burst = story_burst(story_of(key), count, period_ns, grace_ns);

	if (burst > capacity)
		blame("key %u: %" PRIu64 " above what refilled, and a capacity of %" PRIu64, key, burst, capacity);
}

/* I1, of a window: no period has more than its capacity. */
static inline void law_period(uint32_t key, uint64_t capacity, uint64_t period_ns)
{
	uint64_t most = story_most(story_of(key), period_ns);

	if (most > capacity)
		blame("key %u: %" PRIu64 " within a period, whose capacity is %" PRIu64, key, most, capacity);
}

/* I3: no key has two slots in a table. What was carried over may stand in the old table still, but frozen. */
static inline void law_no_duplicate(void)
{
	uint64_t found[TABLES_SLOTS], n = 0;
	struct rule_view ignored;
	const struct layout_slot *s;
	const struct table *t, *other;
	struct generation tables;

	if (!generation_read(stage.l, &tables))
		blame("the tables are damaged");
	for (uint64_t i = 0; (s = generation_slot(&tables, i, &t)) != NULL; i++) {
		if (rule_load_tag(stage.l, s->tag & ~TAG_FROZEN, &ignored) != 0 || (s->tag & ~TAG_FROZEN) == 0)
			continue;
		for (uint64_t j = 0; j < n; j++)
			if (tag_same_key(rule_plain(stage.l, s->tag),
			                 rule_plain(stage.l, generation_slot(&tables, found[j], &other)->tag)) &&
			    (t == other || (s->tag & TAG_FROZEN) == 0))
				blame("slots %" PRIu64 " and %" PRIu64 " are one key's", found[j], i);
		found[n++] = i;
	}
}

/* I4: when all have refilled, each slot can be had. */
static inline void law_room(void)
{
	int holds = shmlimit_rule_algorithm(stage.l, stage.rule) == SHMLIMIT_HOLD;
	struct shmlimit_counters before, after;
	uint64_t now_ns = schedule.now_ns;

	schedule.now_ns += 100 * DAY_NS;
	before = unit_counters(stage.l, stage.rule);
	for (uint32_t key = 1000; key < 1000 + SLOTS; key++)
		if ((holds ? shmlimit_take : shmlimit_charge)(stage.l, stage.rule, &key, sizeof(key), 1, NULL) !=
		    SHMLIMIT_ALLOWED)
			blame("a key has no room");
	after = unit_counters(stage.l, stage.rule);
	if (after.no_slot != before.no_slot || after.evictions != before.evictions)
		blame("a slot is lost");
	schedule.now_ns = now_ns;
}

/* What holds after any scene. */
static inline void law_sound(void)
{
	struct shmlimit_problem problem = { 0 };

	stage.lost += unit_counters(stage.l, stage.rule).failed_cas;
	law_no_duplicate();
	if (schedule.seed % VERIFY_EACH == 0 && shmlimit_verify(unit_name, &problem, 1) != 0)
		blame("verify: %s", problem.text);
	law_room();
}

/* Calls were answered one way and the other, and some lost their compare-and-swap. */
static int stage_was_used(void)
{
	diag("%" PRIu64 " calls allowed, %" PRIu64 " denied, %" PRIu64 " swaps lost", stage.allowed, stage.denied,
	     stage.lost);
	return stage.allowed + stage.denied != 0 && (stage.peaceful || (stage.denied != 0 && stage.lost != 0));
}

#endif
