/*
 * protected: which key loses its slot to a new one, when rules are protected (SHMLIMIT_RULE_PROTECTED).
 *
 * The oracle knows each key that has something, from what the library says of it, and which of them may be evicted
 * by which new key. It uses the smallest table, 16 slots: every probe window has each line twice, so half of a probe
 * window is 8 slots. The floods use larger tables, where probe windows overlap.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "../rng.h"
#include "limiter.h"
#include "unit.h"

#define T0 (1000 * SECOND)
#define HOUR (3600 * SECOND)
#define SLOTS 16
#define HALF (SLOTS / 2)
#define RULES 6
#define KEYS 16 /* of each rule */

static struct shmlimit *l;
static int ids[RULES];

/* Every second one is protected. */
static int is_protected(int rule)
{
	return rule % 2;
}

static struct shmlimit *make(uint64_t slots, uint32_t on_full)
{
	struct shmlimit_options options = { .struct_size = sizeof(options), .slots = slots, .on_full = on_full };

	return unit_create("protected", &options);
}

static int set(const char *name, uint32_t algorithm, uint64_t capacity, uint64_t period_ns, uint32_t flags)
{
	struct shmlimit_rule rule = { .algorithm = algorithm,
		                      .flags = flags,
		                      .capacity = capacity,
		                      .refill = algorithm == SHMLIMIT_FUNNEL ? capacity : 0,
		                      .period_ns = period_ns };

	return unit_rule_at(l, name, rule, T0);
}

static void set_rules(void)
{
	static const uint32_t algorithms[RULES / 2] = { SHMLIMIT_FUNNEL, SHMLIMIT_WINDOW, SHMLIMIT_COUNTER };
	char name[8];

	for (int i = 0; i < RULES; i++) {
		snprintf(name, sizeof(name), "r%d", i);
		ids[i] = set(name, algorithms[i / 2], 8, (uint64_t)(10 + i) * SECOND,
		             is_protected(i) ? SHMLIMIT_RULE_PROTECTED : 0);
	}
}

/* Nanoseconds until the key has nothing to lose; 0: it has no slot, or one that any key may take. */
static uint64_t wait_of(int rule, int key, uint64_t at)
{
	struct shmlimit_result r;

	if (shmlimit_peek(at_time(l, at), ids[rule], &key, sizeof(key), 0, &r) < 0)
		bail("a key that cannot be peeked at");
	return r.reset_after_ns;
}

struct snapshot {
	uint64_t wait_ns[RULES][KEYS];
	int live[2];                 /* how many have something: of ordinary rules, of protected rules */
	uint64_t soonest[2], all_ns; /* ... and which of them is full again soonest */
};

static void look(uint64_t at, struct snapshot *s)
{
	*s = (struct snapshot){ .soonest = { UINT64_MAX, UINT64_MAX } };
	for (int rule = 0; rule < RULES; rule++) {
		for (int key = 0; key < KEYS; key++) {
			uint64_t wait_ns = s->wait_ns[rule][key] = wait_of(rule, key, at);

			s->live[is_protected(rule)] += wait_ns != 0;
			if (wait_ns != 0 && wait_ns < s->soonest[is_protected(rule)])
				s->soonest[is_protected(rule)] = wait_ns;
		}
	}
	s->all_ns = s->soonest[0] < s->soonest[1] ? s->soonest[0] : s->soonest[1];
}

/* May a new key evict this one? */
static int may_evict(const struct snapshot *s, int newcomer_is_protected, int rule, int key)
{
	uint64_t wait_ns = s->wait_ns[rule][key];

	if (s->live[0] + s->live[1] < SLOTS)
		return 0;
	if (newcomer_is_protected)
		return s->live[1] < HALF ? !is_protected(rule) && wait_ns == s->soonest[0]
		                         : is_protected(rule) && wait_ns == s->soonest[1];
	return s->live[1] <= HALF ? !is_protected(rule) && wait_ns == s->soonest[0] : wait_ns == s->all_ns;
}

static int wrong_evictions, seen[2][3]; /* newcomer is ordinary, protected; protected below, at, above half */

/* One request; what became of every key is as the oracle says. */
static void step(struct rng *rng, uint64_t at, int share)
{
	int kind = rng_below(rng, 100) < (uint64_t)share, rule = 2 * (int)rng_below(rng, RULES / 2) + kind;
	int key = (int)rng_below(rng, KEYS), lost = 0;
	struct snapshot before;

	look(at, &before);
	if (shmlimit_take(at_time(l, at), ids[rule], &key, sizeof(key), 1 + rng_below(rng, 4), NULL) !=
	    SHMLIMIT_ALLOWED)
		return;
	for (int r = 0; r < RULES; r++) {
		for (int k = 0; k < KEYS; k++) {
			int is_lost = before.wait_ns[r][k] != 0 && wait_of(r, k, at) == 0;

			lost += is_lost;
			wrong_evictions += is_lost && !may_evict(&before, is_protected(rule), r, k);
		}
	}
	if (before.wait_ns[rule][key] == 0 && before.live[0] + before.live[1] == SLOTS) {
		seen[kind][(before.live[1] >= HALF) + (before.live[1] > HALF)] += lost == 1;
		wrong_evictions += lost != 1;
	} else {
		wrong_evictions += lost != 0;
	}
}

/* Time goes on slowly for the most part, so that the table is full. Shares of requests of protected rules in turn. */
static void histories(void)
{
	static const int shares[] = { 10, 50, 90 };
	struct rng rng = { rng_seed() };
	uint64_t at = T0, rounds = scaled(20000);

	/* Fewer rounds would not meet each case. */
	if (rounds < 5000)
		rounds = 5000;
	l = make(SLOTS, SHMLIMIT_FULL_EVICT);
	set_rules();
	for (uint64_t i = 0; i < rounds; i++) {
		at += rng_below(&rng, 200) == 0 ? rng_below(&rng, 30 * SECOND) : rng_below(&rng, SECOND / 8);
		step(&rng, at, shares[i / 50 % 3]);
	}
	is(wrong_evictions, 0, "each new key in a full table evicts one key, which is the one that the oracle names");
	for (int kind = 0; kind < 2; kind++)
		for (int half = 0; half < 3; half++)
			ok(seen[kind][half] > 0,
			   "keys of %s rules came while protected keys had %s of the slots (%d times)",
			   kind ? "protected" : "ordinary",
			   half == 0   ? "less than half"
			   : half == 1 ? "half"
			               : "more than half",
			   seen[kind][half]);
	is(shmlimit_verify(unit_name, NULL, 0), 0, "the segment is sound");
	shmlimit_close(l);
}

static int take(int id, int64_t key, uint64_t cost, uint64_t at)
{
	return shmlimit_take(at_time(l, at), id, &key, sizeof(key), cost, NULL);
}

static int ban(int id, int64_t key)
{
	return shmlimit_count(at_time(l, T0), id, &key, sizeof(key),
	                      &(struct shmlimit_count_request){ .struct_size = sizeof(struct shmlimit_count_request),
	                                                        .n = 1,
	                                                        .bound = INT64_MAX,
	                                                        .ttl_ns = 600 * SECOND },
	                      NULL);
}

/* Eight bans: half of a probe window even where it has all their lines twice. */
static void flood_of_ordinary_keys(uint32_t flags, const char *which)
{
	int bans, page, banned = 0;
	uint64_t flood = scaled(64 * 1024);

	l = make(1024, SHMLIMIT_FULL_EVICT);
	bans = set("ban", SHMLIMIT_COUNTER, 1, 0, flags);
	page = set("page", SHMLIMIT_FUNNEL, 3, HOUR, 0);
	for (int i = 0; i < 8; i++)
		ban(bans, i);
	for (uint64_t i = 0; i < flood; i++)
		take(page, (int64_t)i, 3, T0);
	for (int64_t i = 0; i < 8; i++)
		banned += shmlimit_peek(at_time(l, T0), bans, &i, sizeof(i), 1, NULL) == SHMLIMIT_DENIED;
	is(banned, flags != 0 ? 8 : 0, "%s, a flood of %" PRIu64 " keys in 1024 slots undoes %s", which, flood,
	   flags != 0 ? "no ban" : "all");
	shmlimit_close(l);
}

/* Protected keys that are full long after all others take half of a probe window from them, and no more. */
static void flood_of_protected_keys(void)
{
	int kept = 0, page, bans, fresh = 0;

	l = make(SLOTS, SHMLIMIT_FULL_EVICT);
	page = set("page", SHMLIMIT_FUNNEL, 3, 10 * SECOND, 0);
	bans = set("ban", SHMLIMIT_COUNTER, 1, 0, SHMLIMIT_RULE_PROTECTED);
	for (int i = 0; i < SLOTS; i++)
		take(page, i, 3, T0);
	for (int i = 0; i < 10000; i++)
		ban(bans, i);
	for (int64_t i = 0; i < SLOTS; i++)
		kept += shmlimit_peek(at_time(l, T0), page, &i, sizeof(i), 1, NULL) == SHMLIMIT_DENIED;
	is(kept, HALF, "a flood of protected keys leaves half of the slots to the others");
	for (int i = 100; i < 100 + HALF; i++)
		take(page, i, 3, T0 + SECOND);
	for (int64_t i = 100; i < 100 + HALF; i++)
		fresh += shmlimit_peek(at_time(l, T0 + SECOND), page, &i, sizeof(i), 1, NULL) == SHMLIMIT_DENIED;
	is(fresh, HALF, "after a flood of protected keys new keys of other rules are limited");
	shmlimit_close(l);
}

/* Where protected keys came first they have all; those beyond half count as ordinary ones. */
static void protected_keys_came_first(void)
{
	int bans, page, kept = 0;

	l = make(SLOTS, SHMLIMIT_FULL_EVICT);
	bans = set("ban", SHMLIMIT_COUNTER, 1, 0, SHMLIMIT_RULE_PROTECTED);
	page = set("page", SHMLIMIT_FUNNEL, 3, HOUR, 0);
	for (int i = 0; i < SLOTS; i++)
		ban(bans, i);
	for (int i = 0; i < 10000; i++)
		take(page, i, 3, T0);
	for (int64_t i = 0; i < SLOTS; i++)
		kept += shmlimit_peek(at_time(l, T0), bans, &i, sizeof(i), 1, NULL) == SHMLIMIT_DENIED;
	is(kept, HALF, "of protected keys that had all slots, a flood of ordinary keys leaves half");
	shmlimit_close(l);
}

static void nothing_is_evicted(uint32_t on_full, const char *which)
{
	struct shmlimit_result r;
	int page, bans, kept = 0;

	l = make(SLOTS, on_full);
	page = set("page", SHMLIMIT_FUNNEL, 3, HOUR, 0);
	bans = set("ban", SHMLIMIT_COUNTER, 1, 0, SHMLIMIT_RULE_PROTECTED);
	for (int i = 0; i < SLOTS; i++)
		take(page, i, 3, T0);
	take(bans, 1, 1, T0);
	for (int64_t i = 0; i < SLOTS; i++)
		kept += shmlimit_peek(at_time(l, T0), page, &i, sizeof(i), 1, NULL) == SHMLIMIT_DENIED;
	is(kept, SLOTS, "%s: a protected key evicts none", which);
	shmlimit_take(at_time(l, T0), page, "new", 3, 1, &r);
	if (on_full == SHMLIMIT_FULL_DENY)
		is(r.retry_after_ns, HOUR, "deny: a key without a slot may come again when the first of all is full");
	shmlimit_close(l);
}

/* The flag is a rule's like any other: of every algorithm, and it can be set and taken away. */
static void flag(void)
{
	static const char *const names[] = { "funnel", "warmup", "window", "lease", "counter", "hold", "gcra" };
	struct shmlimit_result r;
	int64_t key = 1;

	l = make(SLOTS, SHMLIMIT_FULL_EVICT);
	for (uint32_t algorithm = SHMLIMIT_FUNNEL; algorithm <= LAST_ALGORITHM; algorithm++) {
		struct shmlimit_rule rule = { .struct_size = sizeof(rule),
			                      .algorithm = algorithm,
			                      .flags = SHMLIMIT_RULE_PROTECTED,
			                      .capacity = algorithm == SHMLIMIT_WARMUP ? 0 : 5,
			                      .refill = 5,
			                      .period_ns = 3 * SECOND };
		struct shmlimit_rule found = { .struct_size = sizeof(found) };
		int id;

		rule.warmup_ns = algorithm == SHMLIMIT_WARMUP ? SECOND : 0;
		id = shmlimit_rule_set(at_time(l, T0), names[algorithm], &rule);
		ok(id >= 0, "a %s can be protected", names[algorithm]);
		shmlimit_rule_get(l, id, &found);
		is(found.flags, SHMLIMIT_RULE_PROTECTED, "a protected %s is read as it was set", names[algorithm]);
		if (algorithm == SHMLIMIT_HOLD || algorithm == SHMLIMIT_LEASE)
			continue;
		shmlimit_take(at_time(l, T0), id, &key, sizeof(key), 1, NULL);
		found.flags = 0;
		shmlimit_rule_set(at_time(l, T0), names[algorithm], &found);
		shmlimit_peek(at_time(l, T0), id, &key, sizeof(key), 0, &r);
		ok(r.reset_after_ns != 0, "a key of a %s keeps what it has when the protection is taken away",
		   names[algorithm]);
		shmlimit_rule_get(l, id, &found);
		is(found.flags, 0, "the protection of a %s can be taken away", names[algorithm]);
	}
	for (uint32_t algorithm = SHMLIMIT_FUNNEL; algorithm <= LAST_ALGORITHM; algorithm++) {
		int refused = 0;

		for (uint32_t bit = 4; bit < 32; bit++) {
			struct shmlimit_rule rule = { .struct_size = sizeof(rule),
				                      .algorithm = algorithm,
				                      .flags = SHMLIMIT_RULE_PROTECTED | (uint32_t)1 << bit,
				                      .capacity = algorithm == SHMLIMIT_WARMUP ? 0 : 5,
				                      .refill = 5,
				                      .period_ns = 3 * SECOND };

			rule.warmup_ns = algorithm == SHMLIMIT_WARMUP ? SECOND : 0;
			refused += shmlimit_rule_set(at_time(l, T0), names[algorithm], &rule) == -EINVAL;
		}
		is(refused, algorithm == SHMLIMIT_HOLD ? 27 : 28, "a %s has no flag that the header does not name",
		   names[algorithm]);
	}
	is(shmlimit_verify(unit_name, NULL, 0), 0, "rules with and without protection are sound");
	shmlimit_close(l);
}

/* Any bits where a rule keeps its flags: a full table still evicts one key for each new one. */
static void damage(void)
{
	struct rng rng = { rng_seed() };
	struct layout_params *params;
	int page, bans, without_answer = 0, undetected = 0;

	l = make(SLOTS, SHMLIMIT_FULL_EVICT);
	page = set("page", SHMLIMIT_FUNNEL, 3, HOUR, 0);
	bans = set("ban", SHMLIMIT_FUNNEL, 3, HOUR, SHMLIMIT_RULE_PROTECTED);
	params = (struct layout_params *)(uintptr_t)&l->rules[bans].params[1];
	if (params->flags != SHMLIMIT_RULE_PROTECTED)
		bail("the parameters of a rule's first version are not where they were");
	for (int64_t i = 0; i < 2000; i++) {
		params->flags = i % 100 == 0 ? (uint64_t)SHMLIMIT_RULE_PROTECTED : rng_draw(&rng);
		without_answer += take(i % 2 ? page : bans, i, 3, T0) != SHMLIMIT_ALLOWED;
		if (i % 100 == 1)
			undetected += shmlimit_verify(unit_name, NULL, 0) == 0;
	}
	is(without_answer, 0, "with any flags of a rule, each new key is allowed its capacity");
	is(undetected, 0, "shmlimit_verify() finds a rule's flags that no rule has");
	shmlimit_close(l);
}

int main(void)
{
	histories();
	flood_of_ordinary_keys(SHMLIMIT_RULE_PROTECTED, "with protection");
	flood_of_ordinary_keys(0, "without protection");
	flood_of_protected_keys();
	protected_keys_came_first();
	nothing_is_evicted(SHMLIMIT_FULL_ALLOW, "allow");
	nothing_is_evicted(SHMLIMIT_FULL_DENY, "deny");
	flag();
	damage();
	return tap_done();
}
