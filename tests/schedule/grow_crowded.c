/*
 * grow_crowded: a larger table that is crowded, too, so that keys on their way there
 * take turns at its slots, or are evicted.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "growing.h"

static struct table_window window_of(const struct table *t, uint32_t key)
{
	return table_window(t, hash_bytes(stage.l->secret, (uint32_t)stage.rule, &key, sizeof(key)));
}

#define FEW 2
#define TOKEN_NS 1000

/* Grown, and no key was asked for since. All slots are taken for a day, but `places` that both keys can have. */
static struct shmlimit *set_crowded(uint32_t on_full, unsigned places, uint64_t token_ns, uint32_t algorithm)
{
	struct shmlimit *l = stage_set(
		on_full, 1,
		(struct shmlimit_rule){ .algorithm = algorithm, .capacity = FEW, .refill = 1, .period_ns = token_ns });
	struct layout_slot held = { 0, 0 }, *slot;
	struct table_window one, other;
	struct generation tables;
	const struct table *t;

	stage.growing = 1;
	if (algorithm == SHMLIMIT_LEASE) {
		deposit_before(l, KEY, FEW);
	} else {
		take_before(l, KEY, FEW);
		take_before(l, OTHER, FEW);
	}
	if (shmlimit_grow(l, 2 * SLOTS) != 0 || !generation_read(l, &tables))
		bail("it does not grow");
	for (uint64_t i = 2 * SLOTS; (slot = generation_slot(&tables, i, &t)) != NULL; i++)
		if (slot->tag != 0 && tag_rule(slot->tag) == (uint32_t)stage.held)
			held = *slot;
	for (uint64_t i = 0; i < 2 * SLOTS; i++)
		tables.now.slots[i] =
			(struct layout_slot){ (i + 1) << TAG_FINGERPRINT_SHIFT | (held.tag & 0xffff), held.word };
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
	.away_ns = { TOKEN_NS, FEW *TOKEN_NS, 10 * TOKEN_NS },
	.set = set_one_place,
	.begin = begin_crowded,
	.act = act_two_keys,
	.judge = judge_refilled,
};

static const struct scene two_places = {
	.title = "two slots go from key to key while the table grows once more, and give none more than its due",
	.actors = 4,
	.mortals = 2,
	.away_ns = { TOKEN_NS, FEW *TOKEN_NS, 10 * TOKEN_NS },
	.set = set_two_places,
	.begin = begin_crowded,
	.act = act_two_keys,
	.judge = judge_refilled,
};

static struct shmlimit *set_evicting(void)
{
	return set_crowded(SHMLIMIT_FULL_EVICT, 1, SECOND, SHMLIMIT_FUNNEL);
}

/* A key that is pushed out has its capacity once more; keys that hold their slots for days are left alone. */
static void judge_evicting(void)
{
	uint64_t taken = 0, held = 0;
	struct generation tables;

	for (unsigned i = 0; i < stage.n; i++)
		taken += was_taken(&stage.calls[i]) ? (uint64_t)stage.calls[i].tokens : 0;
	if (taken > (2 + unit_counters(stage.l, stage.rule).evictions) * FEW)
		blame("%" PRIu64 " taken of two keys", taken);
	generation_read(stage.l, &tables);
	for (uint64_t i = 0; i < 2 * SLOTS; i++)
		held += tag_rule(tables.now.slots[i].tag) == (uint32_t)stage.held;
	if (held != 2 * SLOTS - 1)
		blame("a key that is full again last was evicted");
	law_sound();
}

static const struct scene evicting = {
	.title = "a key that is evicted while the table grows has its capacity once more",
	.actors = 3,
	.set = set_evicting,
	.begin = begin_crowded,
	.act = act_two_keys,
	.judge = judge_evicting,
};

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
	(void)shmlimit_lease_deposit(handle(), stage.rule, &key, sizeof(key), FEW, 1, 0, SECOND, NULL);
	take(KEY, FEW);
}

static void judge_lease_crowded(void)
{
	law_spent(FEW);
}

static const struct scene lease_crowded = {
	.title = "what was leased is spent once at most, also when another key has its slot by then",
	.actors = 3,
	.mortals = 1,
	.set = set_lease_crowded,
	.act = act_lease_crowded,
	.judge = judge_lease_crowded,
};

int main(void)
{
	play(&one_place);
	play(&two_places);
	play(&evicting);
	play(&given_back);
	play(&lease_crowded);
	return tap_done();
}
