/*
 * grow: the table grows while others decide: each key is carried over into the
 * larger one as it is, beside who looks for it there or still in the one before
 * (I1, I2, I3, I4). See lib/carry.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#define SCHEDULES 5000                    /* each is long */
#include "stage.h"

#include "ring.h"

#define KEY 7
#define OTHER 8
#define CAPACITY 4

static const struct shmlimit_rule rule = { .capacity = CAPACITY, .count = 1, .period_ns = SECOND };

static struct shmlimit *set(struct shmlimit_rule scene_rule)
{
	struct shmlimit *l = stage_set(SHMLIMIT_FULL_DENY, 2, scene_rule);

	stage.growing = 1;
	return l;
}

static struct table_window window_of(const struct table *t, uint32_t key)
{
	return table_window(t, hash_bytes(stage.l->secret, (uint32_t)stage.rule, &key, sizeof(key)));
}

static void take_before(struct shmlimit *l, uint32_t key, uint64_t cost)
{
	if (shmlimit_take(l, stage.rule, &key, sizeof(key), cost, NULL) != SHMLIMIT_ALLOWED)
		bail("key %u cannot take", key);
}

/* A lease of so many, of which none is spent. */
static void deposit_before(struct shmlimit *l, uint32_t key, uint64_t tokens)
{
	if (shmlimit_lease_deposit(l, stage.rule, &key, sizeof(key), tokens, 0, SECOND, NULL) != SHMLIMIT_ALLOWED)
		bail("nothing is deposited for key %u", key);
}

/* What was taken before the schedule began, for laws that look back. */
static void taken_before(uint32_t key, int64_t tokens)
{
	stage.calls[stage.n++] = (struct call){ .key = key, .tokens = tokens, .began_ns = START_NS,
		.ended_ns = START_NS, .began = stage.moments + 1, .ended = stage.moments + 2 };
	stage.moments += 2;
}

static void charge(uint32_t key, uint64_t tokens)
{
	struct call *c = call_begin(key, (int64_t)tokens);

	actor_calls();
	call_end(c, shmlimit_charge(handle(), stage.rule, &key, sizeof(key), tokens, NULL));
}

static void refund(uint32_t key, uint64_t tokens)
{
	struct call *c = call_begin(key, -(int64_t)tokens);

	actor_calls();
	call_end(c, shmlimit_refund(handle(), stage.rule, &key, sizeof(key), tokens, NULL));
}

/* To so many slots, 0: to leave the table before. There may be keys on the way yet. */
static void grow(uint64_t slots)
{
	int error;

	actor_calls();
	error = shmlimit_grow(handle(), slots);
	if (error != 0 && error != -EALREADY)
		blame("grow: %s", shmlimit_strerror(error));
}

static void grow_twice(void)
{
	grow(2 * SLOTS);
	grow(0);
	grow(4 * SLOTS);
	grow(0);
}

/* When all have refilled there is nothing to carry, and the table before is left. */
static void law_left(void)
{
	uint64_t now_ns = schedule.now_ns;
	int error;

	schedule.now_ns += 200 * DAY_NS;
	error = shmlimit_grow(stage.l, 0);
	if (error != 0)
		blame("the table before is not left: %s", shmlimit_strerror(error));
	schedule.now_ns = now_ns;
	law_sound();
}

/* ---- Keys that were there before, and new ones ---- */

static struct shmlimit *set_key(void)
{
	struct shmlimit *l = set(rule);

	take_before(l, KEY, 1);
	return l;
}

static void act_one_key(unsigned who)
{
	if (who == 0) {
		grow_twice();
		return;
	}
	take(KEY, 1);
	take(KEY, who);
	take(KEY, 1);
}

static void judge_one_key(void)
{
	law_total(KEY, CAPACITY - 1);
	law_denials(CAPACITY - 1);
	law_sound();
	law_left();
}

static const struct scene one_key = {
	.title = "a key gets no token and loses none while the table grows, twice",
	.actors = 3,
	.mortals = 2,
	.set = set_key,
	.act = act_one_key,
	.judge = judge_one_key,
};

static struct shmlimit *set_empty(void)
{
	return set(rule);
}

static void act_newcomers(unsigned who)
{
	if (who == 0) {
		grow_twice();
		return;
	}
	take(who == 2 ? OTHER : KEY, 3);
	take(KEY, 1);
	take(OTHER, 2);
}

static void judge_newcomers(void)
{
	law_total(KEY, CAPACITY);
	law_total(OTHER, CAPACITY);
	law_denials(CAPACITY);
	law_sound();
	law_left();
}

static const struct scene newcomers = {
	.title = "new keys are admitted exactly their capacity, whichever table they are claimed in",
	.actors = 4,
	.mortals = 2,
	.set = set_empty,
	.act = act_newcomers,
	.judge = judge_newcomers,
};

/* ---- A larger table that is crowded, too ---- */

#define FEW 2
#define TOKEN_NS 1000

/* Grown, and nobody was there yet. All slots are taken for a day, but `places` that both keys can have. */
static struct shmlimit *set_crowded(uint32_t on_full, unsigned places, uint64_t token_ns, uint32_t algorithm)
{
	struct shmlimit *l = stage_set(on_full, 1, (struct shmlimit_rule){ .algorithm = algorithm, .capacity = FEW,
		.count = 1, .period_ns = token_ns });
	struct layout_slot held = { 0, 0 }, *slot;
	struct table_window one, other;
	struct tables tables;
	const struct table *t;

	stage.growing = 1;
	if (algorithm == SHMLIMIT_LEASE) {
		deposit_before(l, KEY, FEW);
	} else {
		take_before(l, KEY, FEW);
		take_before(l, OTHER, FEW);
	}
	if (shmlimit_grow(l, 2 * SLOTS) != 0 || !tables_read(l, &tables))
		bail("it does not grow");
	for (uint64_t i = 2 * SLOTS; (slot = tables_slot(&tables, i, &t)) != NULL; i++)
		if (slot->tag != 0 && tag_rule(slot->tag) == (uint32_t)stage.held)
			held = *slot;
	for (uint64_t i = 0; i < 2 * SLOTS; i++)
		tables.now.slots[i] = (struct layout_slot){
			(i + 1) << TAG_FINGERPRINT_SHIFT | (held.tag & 0xffff), held.word };
	one = window_of(&tables.now, KEY);
	other = window_of(&tables.now, OTHER);
	for (unsigned i = 0; i < WINDOW_LINES; i++)
		for (unsigned j = 0; j < WINDOW_LINES; j++) {
			slot = table_line(&tables.now, one, i);
			if (slot == table_line(&tables.now, other, j) && slot->tag != 0 && places != 0) {
				*slot = (struct layout_slot){ 0, 0 };
				places--;
			}
		}
	if (places != 0)
		bail("their windows do not meet");
	return l;
}

static void begin_crowded(void)
{
	taken_before(KEY, FEW);
	taken_before(OTHER, FEW);
}

static struct shmlimit *set_one_place(void)
{
	return set_crowded(SHMLIMIT_FULL_DENY, 1, TOKEN_NS, SHMLIMIT_FUNNEL);
}

static struct shmlimit *set_two_places(void)
{
	return set_crowded(SHMLIMIT_FULL_DENY, 2, TOKEN_NS, SHMLIMIT_FUNNEL);
}

static void act_two_keys(unsigned who)
{
	if (who == 3) {
		grow(0);
		grow(4 * SLOTS);
		return;
	}
	take(who % 2 != 0 ? KEY : OTHER, 2);
	take(who % 2 != 0 ? OTHER : KEY, 1);
	take(who % 2 != 0 ? KEY : OTHER, 1);
}

static void judge_refilled(void)
{
	law_burst(KEY, FEW, 1, TOKEN_NS, 2);
	law_burst(OTHER, FEW, 1, TOKEN_NS, 2);
	law_sound();
	law_left();
}

static const struct scene one_place = {
	.title = "its slot there goes from key to key as they refill, and gives neither more than its due",
	.actors = 3,
	.mortals = 2,
	.away_ns = { TOKEN_NS, FEW * TOKEN_NS, 10 * TOKEN_NS },
	.set = set_one_place,
	.begin = begin_crowded,
	.act = act_two_keys,
	.judge = judge_refilled,
};

static const struct scene two_places = {
	.title = "and so do two slots, while it grows once more",
	.actors = 4,
	.mortals = 2,
	.away_ns = { TOKEN_NS, FEW * TOKEN_NS, 10 * TOKEN_NS },
	.set = set_two_places,
	.begin = begin_crowded,
	.act = act_two_keys,
	.judge = judge_refilled,
};

static struct shmlimit *set_evicting(void)
{
	return set_crowded(SHMLIMIT_FULL_EVICT, 1, SECOND, SHMLIMIT_FUNNEL);
}

/* Whoever is pushed out has its capacity once more; those who hold their slots for days are left alone. */
static void judge_evicting(void)
{
	uint64_t taken = 0, held = 0;
	struct tables tables;

	for (unsigned i = 0; i < stage.n; i++)
		taken += was_taken(&stage.calls[i]) ? (uint64_t)stage.calls[i].tokens : 0;
	if (taken > (2 + unit_counters(stage.l, stage.rule).evictions) * FEW)
		blame("%" PRIu64 " taken of two keys", taken);
	tables_read(stage.l, &tables);
	for (uint64_t i = 0; i < 2 * SLOTS; i++)
		held += tag_rule(tables.now.slots[i].tag) == (uint32_t)stage.held;
	if (held != 2 * SLOTS - 1)
		blame("a key that is full again last was evicted");
	law_sound();
}

static const struct scene evicting = {
	.title = "who is evicted there has its capacity once more for that",
	.actors = 3,
	.set = set_evicting,
	.begin = begin_crowded,
	.act = act_two_keys,
	.judge = judge_evicting,
};

/* ---- The other verbs ---- */

/* KEY is given back what it took, and is full; then OTHER may have its slot. */
static struct shmlimit *set_given_back(void)
{
	struct shmlimit *l = set_crowded(SHMLIMIT_FULL_DENY, 1, SECOND, SHMLIMIT_FUNNEL);
	uint32_t key = OTHER;

	(void)shmlimit_reset(l, stage.rule, &key, sizeof(key));
	return l;
}

static void begin_given_back(void)
{
	taken_before(KEY, FEW);
}

static void act_given_back(unsigned who)
{
	if (who == 0) {
		take(KEY, 1);
	} else if (who == 1) {
		refund(KEY, FEW);
	} else {
		take(OTHER, 1);
		take(OTHER, 1);
	}
}

/* Never was more given back than had been taken: each of these tokens counts. */
static void judge_given_back(void)
{
	int64_t taken = 0, rest = (int64_t)left(KEY);

	for (unsigned i = 0; i < stage.n; i++) {
		const struct call *c = &stage.calls[i];

		if (c->key == KEY && (c->tokens > 0 ? may_have_taken(c) : was_taken(c)))
			taken += c->tokens;
	}
	if (taken + rest < FEW)
		blame("what was given back is gone: took %" PRId64 ", has %" PRId64, taken, rest);
	law_total(KEY, FEW);
	law_total(OTHER, FEW);
	law_sound();
	law_left();
}

static const struct scene given_back = {
	.title = "what is given back is not lost to what the key was before",
	.actors = 3,
	.mortals = 1,
	.set = set_given_back,
	.begin = begin_given_back,
	.act = act_given_back,
	.judge = judge_given_back,
};

#define MANY 100
#define HALF 50

static struct shmlimit *set_half(void)
{
	struct shmlimit *l = set((struct shmlimit_rule){ .capacity = MANY, .count = 1, .period_ns = SECOND });

	take_before(l, KEY, MANY - HALF);
	return l;
}

static void act_all_verbs(unsigned who)
{
	if (who == 0) {
		grow_twice();
		return;
	}
	refund(KEY, 2);
	take(KEY, 40 + who);
	charge(KEY, 1 + who);
	refund(KEY, 1);
	take(KEY, 1);
}

static void judge_half(void)
{
	law_total(KEY, HALF);
	law_sound();
	law_left();
}

static const struct scene all_verbs = {
	.title = "what is charged beside that goes off once, and what is given back comes on once",
	.actors = 3,
	.mortals = 2,
	.set = set_half,
	.act = act_all_verbs,
	.judge = judge_half,
};

/* One resets the key, or the rule. */
static struct call born;

static void act_reset(unsigned who)
{
	uint32_t key = KEY;
	int error;

	if (who < 2) {
		act_one_key(who);
		take(KEY, CAPACITY);
		return;
	}
	born = (struct call){ .began = ++stage.moments };
	actor_calls();
	error = shmlimit_reset(handle(), stage.rule, schedule.seed % 2 != 0 ? &key : NULL, sizeof(key));
	if (error != 0)
		blame("reset: %s", shmlimit_strerror(error));
	born.ended = ++stage.moments;
	take(KEY, 1);
}

static void judge_reset(void)
{
	uint64_t since = 0, perhaps = 0, rest = left(KEY);

	for (unsigned i = 0; i < stage.n; i++) {
		const struct call *c = &stage.calls[i];

		if (was_taken(c) && c->began > born.ended)
			since += (uint64_t)c->tokens;
		else if (may_have_taken(c) && (c->ended == 0 || c->ended > born.began))
			perhaps += (uint64_t)c->tokens;
	}
	if (since + rest > CAPACITY)
		blame("took %" PRIu64 " since the reset, has %" PRIu64, since, rest);
	if (since + perhaps + rest < CAPACITY)
		blame("took %" PRIu64 ", perhaps %" PRIu64 " more, has %" PRIu64 " since the reset", since, perhaps, rest);
	law_sound();
	law_left();
}

static const struct scene reset = {
	.title = "what was there before a reset does not come back",
	.actors = 3,
	.mortals = 2,
	.set = set_key,
	.act = act_reset,
	.judge = judge_reset,
};

/* ---- Its rule is changed ---- */

static struct shmlimit_rule version(unsigned n)
{
	static const uint64_t period_ns[5] = { SECOND, 3600 * SECOND, 7 * SECOND, DAY_NS, SECOND / 1000 };

	return (struct shmlimit_rule){ .capacity = CAPACITY, .count = 1 + n % 5, .period_ns = period_ns[n % 5] };
}

static struct shmlimit *set_changing(void)
{
	struct shmlimit *l = set(version(0));

	take_before(l, KEY, 1);
	stage.changing = 1;
	return l;
}

static void act_changing(unsigned who)
{
	if (who == 3) {
		for (unsigned n = 1; n <= 5; n++)
			change(version(n));
		return;
	}
	act_one_key(who);
}

static const struct scene changing = {
	.title = "nor does it while its rule is changed five times, too",
	.actors = 4,
	.mortals = 2,
	.set = set_changing,
	.act = act_changing,
	.judge = judge_one_key,
};

/* ---- Windows ---- */

#define PERIOD_NS 10000

static const struct shmlimit_rule window = { .algorithm = SHMLIMIT_WINDOW, .capacity = CAPACITY,
	.period_ns = PERIOD_NS };

static struct shmlimit *set_window(void)
{
	struct shmlimit *l = set(window);

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
	uint64_t most = story_most(story_of(KEY), PERIOD_NS);

	if (most > CAPACITY)
		blame("key %u: %" PRIu64 " within a period, whose capacity is %d", KEY, most, CAPACITY);
	law_sound();
	law_left();
}

static const struct scene sliding = {
	.title = "and in each period no more than that",
	.actors = 4,
	.mortals = 2,
	.away_ns = { PERIOD_NS / 3, PERIOD_NS - 1, 3 * PERIOD_NS },
	.set = set_window,
	.begin = begin_window,
	.act = act_one_key,
	.judge = judge_sliding,
};

/*
 * Who took last was killed before he wrote his cell, so each decision takes the longer way. That was long ago: the
 * slot is frozen and says nothing, so nobody buries it.
 */
static struct shmlimit *set_killed(void)
{
	struct shmlimit *l = set(window);
	struct table *t = &l->tables[0];

	schedule.now_ns -= 3 * PERIOD_NS;
	take_before(l, KEY, 1);
	schedule.now_ns += 3 * PERIOD_NS;
	memset(ring_cells(l, t, t->slots), 0, t->lines * SLOTS_PER_LINE * l->window_max * sizeof(uint64_t));
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
	.title = "nobody decides on what is frozen, also if he found it before",
	.actors = 3,
	.mortals = 1,
	.set = set_killed,
	.act = act_killed,
	.judge = judge_standing,
};

/* ---- Leases ---- */

#define GIVEN 10

static struct shmlimit *set_lease(void)
{
	struct shmlimit *l = set((struct shmlimit_rule){ .algorithm = SHMLIMIT_LEASE, .capacity = GIVEN, .count = 1,
		.period_ns = SECOND });

	deposit_before(l, KEY, GIVEN);
	return l;
}

static void act_lease(unsigned who)
{
	if (who == 0) {
		grow_twice();
		return;
	}
	take(KEY, 3);
	take(KEY, 2);
	take(KEY, who);
}

static void law_spent(uint64_t given)
{
	uint64_t spent = 0, rest = left(KEY);

	for (unsigned i = 0; i < stage.n; i++)
		spent += was_taken(&stage.calls[i]) ? (uint64_t)stage.calls[i].tokens : 0;
	if (spent + rest > given)
		blame("spent %" PRIu64 ", has %" PRIu64 ": were given %" PRIu64, spent, rest, given);
	law_sound();
	law_left();
}

static void judge_lease(void)
{
	law_spent(GIVEN);
}

static const struct scene lease = {
	.title = "what was leased is spent once at most",
	.actors = 4,
	.mortals = 3,
	.set = set_lease,
	.act = act_lease,
	.judge = judge_lease,
};

/* A lease that is spent frees its slot, for another key's. */
static struct shmlimit *set_lease_crowded(void)
{
	struct shmlimit *l = set_crowded(SHMLIMIT_FULL_DENY, 1, SECOND, SHMLIMIT_LEASE);

	stage.peaceful = 1;
	return l;
}

static void act_lease_crowded(unsigned who)
{
	uint32_t key = OTHER;

	if (who != 1)
		take(KEY, FEW);
	if (who == 0)
		return;
	actor_calls();
	(void)shmlimit_lease_deposit(handle(), stage.rule, &key, sizeof(key), FEW, 1, SECOND, NULL);
	take(KEY, FEW);
}

static void judge_lease_crowded(void)
{
	law_spent(FEW);
}

static const struct scene lease_crowded = {
	.title = "nor when another key has its slot by then",
	.actors = 3,
	.mortals = 1,
	.set = set_lease_crowded,
	.act = act_lease_crowded,
	.judge = judge_lease_crowded,
};

/* ---- Peeks ---- */

#define PEEKS_MAX 16

static struct peek {
	unsigned began, ended;
	uint64_t rest;
} peeks[PEEKS_MAX];
static unsigned peeks_n;

static void begin_peeking(void)
{
	peeks_n = 0;
}

/* I5 is judged here: a peek that nobody came between leaves both tables as they were. */
static void peek(uint32_t key)
{
	unsigned char *slots = (unsigned char *)stage.l->tables[0].slots;
	size_t size = stage.l->size - (size_t)(slots - (unsigned char *)stage.l->header);
	static unsigned char before[64 * 4096];
	struct shmlimit_result r = { 0 };
	struct peek *p = &peeks[peeks_n++];
	unsigned turns = schedule.turns;

	if (peeks_n >= PEEKS_MAX || size > sizeof(before))
		bail("too many peeks");
	memcpy(before, slots, size);
	p->began = ++stage.moments;
	p->ended = 0;
	actor_calls();
	if (shmlimit_peek(handle(), stage.rule, &key, sizeof(key), 1, &r) < 0)
		blame("peek failed");
	p->ended = ++stage.moments;
	p->rest = r.remaining;
	if (turns == schedule.turns && memcmp(before, slots, size) != 0)
		blame("a peek wrote to the table");
}

static void act_peeking(unsigned who)
{
	if (who < 2) {
		act_one_key(who);
		return;
	}
	peek(KEY);
	peek(KEY);
	take(KEY, 1);
	peek(KEY);
}

/* What is left cannot be more than before those who had ended, nor less than after those who had begun. */
static void judge_peeking(void)
{
	for (const struct peek *p = peeks; p < peeks + peeks_n; p++) {
		uint64_t most = CAPACITY - 1, ended = 0, begun = 0;

		for (unsigned i = 0; i < stage.n; i++) {
			const struct call *c = &stage.calls[i];

			if (was_taken(c) && c->ended != 0 && c->ended < p->began)
				ended += (uint64_t)c->tokens;
			if (may_have_taken(c) && c->began < p->ended)
				begun += (uint64_t)c->tokens;
		}
		if (p->ended != 0 && (p->rest + ended > most || p->rest + begun < most))
			blame("a peek saw %" PRIu64 " of %" PRIu64 " left, of which from %" PRIu64 " to %" PRIu64 " were taken",
			      p->rest, most, ended, begun);
	}
	judge_one_key();
}

static const struct scene peeking = {
	.title = "who peeks writes nothing, and sees what is left, whichever table it is in",
	.actors = 3,
	.mortals = 2,
	.set = set_key,
	.begin = begin_peeking,
	.act = act_peeking,
	.judge = judge_peeking,
};

int main(void)
{
	play(&one_key);
	play(&newcomers);
	play(&one_place);
	play(&two_places);
	play(&evicting);
	play(&given_back);
	play(&all_verbs);
	play(&reset);
	play(&changing);
	play(&standing);
	play(&sliding);
	play(&killed);
	play(&lease);
	play(&lease_crowded);
	play(&peeking);
	return tap_done();
}
