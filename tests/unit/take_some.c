/*
 * A take of as many tokens as fit (SHMLIMIT_TAKE_SOME): it grants the most of which a take would be allowed, leaves the
 * key as that take does, and says how many; for each algorithm, beside keys that are peeked at and taken from.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "unit.h"

#include "../rng.h"

#define T0 ((uint64_t)1000 * 86400 * SECOND)
#define KEYS 4
#define MOST 12 /* tokens that are asked for: more than any capacity here, or than these keys are left: */
#define MANY 10000000

static struct shmlimit *l;
static struct rng rng;

static int some(int rule, const char *key, uint64_t most, const struct shmlimit_limit *limit, struct shmlimit_result *r,
                uint64_t now_ns)
{
	return by_limit(at_time(l, now_ns), SHMLIMIT_TAKE_SOME, rule, key, strlen(key), most, limit, r);
}

/* ---- Beside an oracle ---- */

struct game {
	const char *title;
	struct shmlimit_rule rule;
	const struct shmlimit_limit *limits; /* that calls bring, four of them; or NULL */
};

static const struct shmlimit_limit plans[] = {
	{ .struct_size = sizeof(plans[0]), .capacity = 5, .refill = 1, .period_ns = SECOND, .max_wait_ns = SECOND },
	{ .struct_size = sizeof(plans[0]), .capacity = 9, .refill = 7, .period_ns = 3 * SECOND, .max_wait_ns = SECOND },
	{ .struct_size = sizeof(plans[0]), .capacity = 3, .refill = 1, .period_ns = 5 * SECOND },
	{ .struct_size = sizeof(plans[0]), .capacity = 8, .refill = 999999937, .period_ns = 1000 * SECOND },
};

static const struct game games[] = {
	{ "a funnel", { .capacity = 5, .refill = 2, .period_ns = SECOND, .max_wait_ns = SECOND }, NULL },
	{ "a funnel whose words have no quota",
	  { .capacity = MANY, .refill = 1, .period_ns = 1000, .max_wait_ns = 5000 },
	  NULL },
	{ "a warming-up limiter",
	  { .algorithm = SHMLIMIT_WARMUP, .refill = 5, .period_ns = SECOND, .warmup_ns = SECOND, .max_wait_ns = SECOND },
	  NULL },
	{ "a window",
	  { .algorithm = SHMLIMIT_WINDOW, .capacity = 7, .period_ns = SECOND, .max_wait_ns = SECOND },
	  NULL },
	{ "a count", { .algorithm = SHMLIMIT_COUNTER, .capacity = 6, .period_ns = SECOND }, NULL },
	{ "gcra",
	  { .algorithm = SHMLIMIT_GCRA, .capacity = 5, .refill = 3, .period_ns = SECOND, .max_wait_ns = SECOND },
	  NULL },
	{ "gcra, by limits of the call", { .algorithm = SHMLIMIT_GCRA }, plans },
};

/* The most tokens, up to `most`, of which a take would be allowed. */
static uint64_t fitting(const struct shmlimit_request *asked, uint64_t now_ns)
{
	struct shmlimit_request q = *asked;

	/* BOUND: it is MOST at the most. */
	while (q.cost != 0 && shmlimit_decide(at_time(l, now_ns), SHMLIMIT_PEEK, &q, NULL) != SHMLIMIT_ALLOWED)
		q.cost--;
	return q.cost;
}

/* Do two keys say the same, by whatever is asked of them? */
static int are_alike(const struct shmlimit_request *one, const struct shmlimit_request *other, uint64_t now_ns)
{
	for (uint64_t cost = 0; cost <= MOST; cost++) {
		struct shmlimit_request a = *one, b = *other;
		struct shmlimit_result said_a = { 0 }, said_b = { 0 };
		int answer;

		a.cost = b.cost = cost;
		answer = shmlimit_decide(at_time(l, now_ns), SHMLIMIT_PEEK, &a, &said_a);
		if (answer != shmlimit_decide(at_time(l, now_ns), SHMLIMIT_PEEK, &b, &said_b) ||
		    memcmp(&said_a, &said_b, sizeof(said_a)) != 0)
			return 0;
	}
	return 1;
}

static void beside(const struct game *game)
{
	static const uint32_t others[] = { SHMLIMIT_TAKE, SHMLIMIT_RESERVE, SHMLIMIT_CHARGE, SHMLIMIT_REFUND };
	uint64_t now_ns = T0, total = scaled(8000), wrong = 0, none = 0, part = 0, all = 0;
	int rule = unit_rule_at(l, "some", game->rule, T0), second = unit_rule_at(l, "other", game->rule, T0);

	for (unsigned key = 0; game->rule.capacity == MANY && key < KEYS; key++)
		if (shmlimit_take(at_time(l, T0), rule, &key, sizeof(key), MANY, NULL) != SHMLIMIT_ALLOWED ||
		    shmlimit_take(at_time(l, T0), second, &key, sizeof(key), MANY, NULL) != SHMLIMIT_ALLOWED)
			bail("key %u is not full", key);
	for (uint64_t i = 0; i < total; i++) {
		unsigned key = (unsigned)rng_below(&rng, KEYS);
		struct shmlimit_request q = { .rule = rule,
			                      .key = &key,
			                      .key_len = sizeof(key),
			                      .cost = 1 + rng_below(&rng, MOST) },
					same;
		struct shmlimit_result r = { .granted = UINT64_MAX }, taken = { 0 };
		uint64_t most;
		int answer;

		if (game->limits != NULL)
			q.limit = &game->limits[rng_below(&rng, 4)];
		same = q;
		same.rule = second;
		if (rng_below(&rng, 3) == 0) {
			uint32_t verb = others[rng_below(&rng, 4)];

			q.cost = same.cost = 1 + rng_below(&rng, 3);
			if (shmlimit_decide(at_time(l, now_ns), verb, &q, NULL) !=
			    shmlimit_decide(at_time(l, now_ns), verb, &same, NULL))
				wrong++;
		} else {
			most = fitting(&same, now_ns);
			answer = shmlimit_decide(at_time(l, now_ns), SHMLIMIT_TAKE_SOME, &q, &r);
			none += most == 0;
			part += most != 0 && most < q.cost;
			all += most == q.cost;
			same.cost = most != 0 ? most : 1;
			if (shmlimit_decide(at_time(l, now_ns), SHMLIMIT_TAKE, &same, &taken) != answer ||
			    answer != (most == 0 ? SHMLIMIT_DENIED : SHMLIMIT_ALLOWED) || r.granted != most ||
			    r.limit != taken.limit || r.remaining != taken.remaining || r.wait_ns != 0 ||
			    r.retry_after_ns != taken.retry_after_ns || r.reset_after_ns != taken.reset_after_ns)
				wrong++;
		}
		if (i % 16 == 0 && !are_alike(&q, &same, now_ns))
			wrong++;
		now_ns += rng_below(&rng, game->rule.capacity == MANY ? 1000 : SECOND / 3);
	}
	is(wrong, 0, "%s: what is granted is the most of which a take would be allowed: %lu calls", game->title,
	   (unsigned long)total);
	ok(none > total / 50 && part > total / 50 && all > total / 50, "of them %lu got nothing, %lu a part, %lu all",
	   (unsigned long)none, (unsigned long)part, (unsigned long)all);
	if (shmlimit_rule_remove(l, "some") != 0 || shmlimit_rule_remove(l, "other") != 0)
		bail("rule_remove");
}

/* ---- What else it says ---- */

static void modes(void)
{
	struct shmlimit_rule rule = { .capacity = 5, .refill = 1, .period_ns = 3600 * SECOND };
	struct shmlimit_counters before, after;
	struct shmlimit_result r = { 0 };
	int id = unit_rule_at(l, "modes", rule, T0);

	before = unit_counters(l, id);
	is(some(id, "k", 3, NULL, &r, T0), SHMLIMIT_ALLOWED, "three of five tokens");
	is(r.granted, 3, "three are granted");
	is(r.remaining, 2, "two of five are left");
	is(some(id, "k", UINT64_MAX, NULL, &r, T0), SHMLIMIT_ALLOWED, "of any number beyond the capacity");
	is(r.granted, 2, "what is left of them is granted");
	is(r.retry_after_ns, 0, "an answer of allowed has no time to try again at");
	is(some(id, "k", 3, NULL, &r, T0), SHMLIMIT_DENIED, "of an empty key");
	is(r.granted, 0, "nothing is granted");
	is(r.retry_after_ns, 3600 * SECOND, "one is granted again when one token is back");
	is(some(id, "k", 3, NULL, NULL, T0), SHMLIMIT_DENIED, "a caller may not want to know");
	after = unit_counters(l, id);
	is(after.allowed - before.allowed, 2, "a call that got a part counts as one that was allowed");
	is(after.denied - before.denied, 2, "a call that got nothing counts as denied");
	r.granted = 7;
	is(some(id, "new", 0, NULL, &r, T0), SHMLIMIT_ALLOWED, "a take of nothing is a peek");
	is(r.granted, 0, "a peek grants nothing");
	is(unit_counters(l, id).allowed, after.allowed, "a peek is not counted");

	rule.mode = SHMLIMIT_DRY_RUN;
	id = unit_rule_at(l, "modes", rule, T0);
	is(some(id, "k", 3, NULL, &r, T0), SHMLIMIT_ALLOWED, "a dry run allows what is denied otherwise");
	is(r.granted, 3, "a dry run grants all");
	ok(r.retry_after_ns > 0, "a dry run says that it would be denied");
	is(unit_counters(l, id).shadow_denied, 1, "a dry run counts it so");
	is(some(id, "dry", 8, NULL, &r, T0), SHMLIMIT_ALLOWED, "a dry run allows more than fit");
	is(r.granted, 8, "a dry run grants more than fit");
	is(r.remaining, 0, "a dry run takes what fits");
	rule.mode = SHMLIMIT_OFF;
	id = unit_rule_at(l, "modes", rule, T0);
	is(some(id, "k", 9, NULL, &r, T0), SHMLIMIT_ALLOWED, "a rule that is off allows");
	is(r.granted, 9, "a rule that is off grants all");
	rule.mode = SHMLIMIT_BLOCK;
	id = unit_rule_at(l, "modes", rule, T0);
	r.granted = 7;
	is(some(id, "k", 9, NULL, &r, T0), SHMLIMIT_DENIED, "a rule that blocks denies");
	is(r.granted, 0, "a rule that blocks grants nothing");
	is(r.retry_after_ns, UINT64_MAX, "a rule that blocks never will");
}

static void calls_limits(void)
{
	struct shmlimit_limit block = { .struct_size = sizeof(block), .flags = SHMLIMIT_LIMIT_BLOCK },
			      unlimited = { .struct_size = sizeof(block), .flags = SHMLIMIT_LIMIT_UNLIMITED };
	struct shmlimit_result r = { 0 };
	int id = unit_rule_at(l, "plans", (struct shmlimit_rule){ .algorithm = SHMLIMIT_GCRA }, T0);

	is(some(id, "u", 1000, &unlimited, &r, T0), SHMLIMIT_ALLOWED, "an unlimited call is allowed");
	is(r.granted, 1000, "an unlimited call gets all that it asks for");
	is(some(id, "b", 1000, &block, &r, T0), SHMLIMIT_DENIED, "a blocked call is denied");
	is(r.granted, 0, "a blocked call gets nothing");
	is(some(id, "n", 1, NULL, &r, T0), -EDOM, "a rule without a limit needs the call's");
}

static void refused(void)
{
	struct shmlimit_rule lease = { .algorithm = SHMLIMIT_LEASE, .capacity = 9, .refill = 1, .period_ns = SECOND },
			     hold = { .algorithm = SHMLIMIT_HOLD, .capacity = 3, .period_ns = SECOND };
	int leases = unit_rule_at(l, "leases", lease, T0), places = unit_rule_at(l, "places", hold, T0);
	struct shmlimit_result r = { 0 };
	struct shmlimit *looker;

	is(some(leases, "k", 2, NULL, &r, T0), -EOPNOTSUPP, "a lease's backend may have more than is known here");
	is(some(leases, "k", 1, NULL, &r, T0), -EOPNOTSUPP, "a lease refuses to grant one of one, too");
	is(some(places, "k", 2, NULL, &r, T0), -EOPNOTSUPP, "places are entered one by one");
	is(some(places, "k", 1, NULL, &r, T0), -EOPNOTSUPP, "a single place is no exception");
	is(shmlimit_peek(at_time(l, T0), places, "k", 1, 3, &r), SHMLIMIT_ALLOWED, "a refusal enters none");
	if (shmlimit_open(unit_name, SHMLIMIT_OPEN_READ_ONLY, NULL, &looker) != 0)
		bail("open");
	is(by_limit(at_time(looker, T0), SHMLIMIT_TAKE_SOME, places, "k", 1, 1, NULL, &r), -EROFS,
	   "a handle that is read-only takes nothing");
	shmlimit_close(looker);
}

/* Refused tokens count, too: what does not fit was not asked for. */
static void refused_tokens(void)
{
	struct shmlimit_rule rule = {
		.algorithm = SHMLIMIT_WINDOW, .capacity = 5, .period_ns = SECOND, .flags = SHMLIMIT_RULE_COUNT_REFUSED
	};
	struct shmlimit_result r = { 0 };
	int id = unit_rule_at(l, "refused", rule, T0);

	some(id, "k", 4, NULL, &r, T0);
	is(some(id, "k", 4, NULL, &r, T0 + SECOND / 2), SHMLIMIT_ALLOWED, "one of four tokens fits");
	is(r.granted, 1, "the one that fits is granted");
	is(shmlimit_peek(at_time(l, T0 + SECOND), id, "k", 1, 4, &r), SHMLIMIT_ALLOWED,
	   "what did not fit does not count");
	some(id, "k", 4, NULL, &r, T0 + SECOND);
	is(some(id, "k", 4, NULL, &r, T0 + SECOND), SHMLIMIT_DENIED, "of nothing that is left");
	is(shmlimit_peek(at_time(l, T0 + SECOND * 3 / 2), id, "k", 1, 1, &r), SHMLIMIT_DENIED,
	   "a call that gets nothing counts as one token");
	is(shmlimit_peek(at_time(l, T0 + 2 * SECOND), id, "k", 1, 4, &r), SHMLIMIT_ALLOWED,
	   "a call that gets nothing counts as no more than one token");
}

/* No slot is free for a new key. */
static void full(uint32_t on_full)
{
	struct shmlimit_options options = {
		.struct_size = sizeof(options), .slots = 16, .slots_max = 16, .on_full = on_full
	};
	struct shmlimit_rule rule = { .capacity = 5, .refill = 1, .period_ns = 3600 * SECOND };
	struct shmlimit_result r = { .granted = 7 };
	int id, dry, answer;

	shmlimit_close(l);
	l = unit_create("take_some", &options);
	id = unit_rule_at(l, "full", rule, T0);
	rule.mode = SHMLIMIT_DRY_RUN;
	dry = unit_rule_at(l, "dry", rule, T0);
	for (unsigned key = 0; key < 16; key++)
		if (shmlimit_take(at_time(l, T0), id, &key, sizeof(key), 5, NULL) != SHMLIMIT_ALLOWED)
			bail("key %u finds no slot", key);
	answer = some(id, "new", 9, NULL, &r, T0);
	if (on_full == SHMLIMIT_FULL_DENY) {
		is(answer, SHMLIMIT_DENIED, "on a full table a new key can be denied");
		is(r.granted, 0, "a new key that is denied gets nothing");
		is(some(dry, "new", 9, NULL, &r, T0), SHMLIMIT_ALLOWED, "a dry run allows a new key");
		is(r.granted, 9, "a dry run grants a new key all");
	} else {
		is(answer, SHMLIMIT_ALLOWED, "on a full table a new key can be allowed");
		is(r.granted, 5, "a new key that is allowed gets what new keys have");
	}
}

/* By the limiter's clock. */
static void by_the_clock(void)
{
	struct shmlimit_limit five = {
		.struct_size = sizeof(five), .capacity = 5, .refill = 1, .period_ns = 3600 * SECOND
	};
	int rules[] = { unit_rule(l, "hours", 5, 1, 3600 * SECOND),
		        unit_rule_of(l, "calls", (struct shmlimit_rule){ .algorithm = SHMLIMIT_GCRA }) };

	for (int i = 0; i < 2; i++) {
		const struct shmlimit_limit *limit = i == 0 ? NULL : &five;
		struct shmlimit_result r;

		is(by_limit(l, SHMLIMIT_TAKE_SOME, rules[i], "k", 1, 3, limit, &r), SHMLIMIT_ALLOWED, "three of five");
		is(r.granted, 3, "three");
		is(by_limit(l, SHMLIMIT_TAKE_SOME, rules[i], "k", 1, 3, limit, &r), SHMLIMIT_ALLOWED, "three of two");
		is(r.granted, 2, "two");
		is(by_limit(l, SHMLIMIT_TAKE_SOME, rules[i], "k", 1, 3, limit, &r), SHMLIMIT_DENIED, "three of none");
		is(r.granted, 0, "none");
		ok(r.retry_after_ns > 3000 * SECOND && r.retry_after_ns <= 3600 * SECOND, "an hour until one is back");
	}
}

int main(void)
{
	rng.state = rng_seed();
	l = unit_create("take_some", NULL);
	for (size_t i = 0; i < sizeof(games) / sizeof(games[0]); i++)
		beside(&games[i]);
	modes();
	calls_limits();
	refused();
	refused_tokens();
	for (uint32_t on_full = SHMLIMIT_FULL_EVICT; on_full <= SHMLIMIT_FULL_DENY; on_full++)
		full(on_full);
	shmlimit_close(l);
	l = unit_create("take_some", NULL);
	by_the_clock();
	shmlimit_close(l);
	return tap_done();
}
