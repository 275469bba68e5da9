/*
 * rule: names, ids, modes, removal, and that a rule that takes a removed one's
 * id inherits nothing.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "../rng.h"
#include "unit.h"

#include "algorithm.h"
#include "counter.h"
#include "ring.h"
#include "segment.h"

#define T0 (1000 * SECOND)

static struct shmlimit *l;
static struct shmlimit_rule rule = {
	.struct_size = sizeof(rule), .capacity = 15, .refill = 30, .period_ns = 60 * SECOND
};

static int set(const char *name)
{
	return shmlimit_rule_set(l, name, &rule);
}

/* The version of a rule in use. */
static uint64_t version_of(int id)
{
	uint64_t version = 0;

	is(shmlimit_rule_version(l, id, &version), 0, "a rule has a version");
	return version;
}

/* A number for each state of a rule, which callers compare who keep what they made of it. */
static void versions(void)
{
	struct shmlimit_rule one = { .struct_size = sizeof(one), .capacity = 5, .refill = 5, .period_ns = SECOND };
	int other = shmlimit_rule_set(l, "other", &one), id = shmlimit_rule_set(l, "login", &one);
	uint64_t seen[5], version;
	char name[16];
	size_t n = 0;

	seen[n++] = version_of(id);
	(void)shmlimit_rule_set(l, "login", &one);
	(void)shmlimit_take(at_time(l, T0), id, "k", 1, 1, NULL);
	(void)shmlimit_reset(l, id, NULL, 0);
	one.capacity = 6;
	(void)shmlimit_rule_set(l, "other", &one);
	is(version_of(id) == seen[0], 1, "it stays where nothing changes, whatever is decided or set beside it");
	(void)shmlimit_rule_set(l, "login", &one);
	seen[n++] = version_of(id);
	one.mode = SHMLIMIT_OFF;
	(void)shmlimit_rule_set(l, "login", &one);
	seen[n++] = version_of(id);
	one.mode = SHMLIMIT_ENFORCE;
	one.max_wait_ns = SECOND;
	(void)shmlimit_rule_set(l, "login", &one);
	seen[n++] = version_of(id);
	(void)shmlimit_rule_remove(l, "login");
	is(shmlimit_rule_version(l, id, &version), -ESRCH, "a rule that was removed has none");
	/* An id that was never used comes before one that was. */
	for (int set = -1, i = 0; set != id && i < 100; i++) {
		snprintf(name, sizeof(name), "fill%d", i);
		set = shmlimit_rule_set(l, name, &one);
	}
	is(shmlimit_rule_find(l, name), id, "its id is used again");
	seen[n++] = version_of(id);
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < i; j++)
			ok(seen[i] != seen[j], "states %zu and %zu of a rule have two versions", i, j);
	ok(id != other, "the rule beside it has another id");
}

static void define(void)
{
	struct shmlimit_rule got = { .struct_size = sizeof(got) };
	struct shmlimit_info info = { .struct_size = sizeof(info) };
	char name[SHMLIMIT_RULE_NAME_MAX + 1];
	char longest[SHMLIMIT_RULE_NAME_MAX + 1];
	int id = set("login");

	ok(id >= 0, "a rule gets an id");
	is(set("login"), id, "a rule keeps its id when it is set again");
	is(shmlimit_rule_find(l, "login"), id, "it is found by its name");
	is(shmlimit_rule_find(l, "logi"), -ESRCH, "a rule is not found by a part of its name");
	is(shmlimit_rule_get(l, id, &got), 0, "a rule can be read by its id");
	ok(got.capacity == 15 && got.refill == 30 && got.period_ns == 60 * SECOND && got.mode == SHMLIMIT_ENFORCE &&
	           got.algorithm == SHMLIMIT_FUNNEL,
	   "a rule is reported as it was set");
	is(shmlimit_rule_algorithm(l, id), SHMLIMIT_FUNNEL, "what kind of limit it is can be asked alone");
	is(shmlimit_rule_name(l, id, name), 0, "a rule's name can be asked by its id");
	is_str(name, "login", "a rule's name is reported as it was given");
	shmlimit_info(l, &info);
	is(info.rules_used, 1, "one rule is in use");

	memset(longest, 'n', sizeof(longest));
	longest[SHMLIMIT_RULE_NAME_MAX] = '\0';
	ok(set(longest) >= 0, "a name may have 63 bytes");
	is(shmlimit_rule_remove(l, "login"), 0, "a rule can be removed");
	is(shmlimit_rule_find(l, "login"), -ESRCH, "a removed rule is not found");
	is(shmlimit_take(at_time(l, T0), id, "k", 1, 1, NULL), -ESRCH, "its id decides nothing");
	is(shmlimit_rule_remove(l, "login"), -ESRCH, "a rule cannot be removed twice");
	is(shmlimit_rule_get(l, id, &got), -ESRCH, "a rule that was removed cannot be read");
	got = (struct shmlimit_rule){
		.struct_size = sizeof(got), .algorithm = SHMLIMIT_LEASE, .capacity = 1, .refill = 1, .period_ns = SECOND
	};
	id = shmlimit_rule_set(l, "login", &got);
	is(shmlimit_rule_algorithm(l, id), SHMLIMIT_LEASE, "a rule that was removed can be set with another algorithm");
	is(shmlimit_rule_remove(l, "login"), 0, "a lease rule can be removed");
	got = (struct shmlimit_rule){
		.struct_size = sizeof(got), .capacity = 1, .refill = 1, .period_ns = SECOND, .mark = 7
	};
	id = shmlimit_rule_set(l, "login", &got);
	got.mark = 0;
	got.capacity = 2;
	shmlimit_rule_set(l, "login", &got);
	shmlimit_rule_get(l, id, &got);
	ok(got.mark == 7 && got.capacity == 2, "a rule that is changed without a mark keeps the one that it has");
	got.mark = 8;
	shmlimit_rule_set(l, "login", &got);
	shmlimit_rule_get(l, id, &got);
	is(got.mark, 8, "a rule can be given another mark alone");
	shmlimit_rule_remove(l, "login");
	shmlimit_rule_get(l, set("login"), &got);
	is(got.mark, 0, "a rule that was removed and set again has no mark");
	shmlimit_rule_remove(l, "login");
	/* Who was compiled against an earlier release knows less of the structure; later members are not its own. */
	got = (struct shmlimit_rule){ .struct_size = offsetof(struct shmlimit_rule, max_wait_ns),
		                      .capacity = 3,
		                      .refill = 1,
		                      .period_ns = SECOND,
		                      .max_wait_ns = SECOND,
		                      .credit = 7 };
	id = shmlimit_rule_set(l, "login", &got);
	ok(id >= 0, "a rule can be set in a shorter structure");
	got.struct_size = sizeof(got);
	is(shmlimit_rule_get(l, id, &got), 0, "a rule of a shorter structure can be read");
	ok(got.capacity == 3 && got.max_wait_ns == 0 && got.credit == 0,
	   "rule_get reports zeros for what was not given");
	is(shmlimit_rule_remove(l, "login"), 0, "a rule that was set in short form is removed like any other");
}

/* Slots with a tag of the rule. */
static uint64_t slots_of(int id)
{
	const struct table *t = &l->tables[0];
	uint64_t n = 0;

	for (uint64_t i = 0; i < t->lines * SLOTS_PER_LINE; i++)
		n += t->slots[i].tag != 0 && tag_rule(t->slots[i].tag) == (uint32_t)id;
	return n;
}

static void remove_keys(void)
{
	int id = set("removed");

	for (int key = 0; key < 20; key++)
		shmlimit_take(l, id, &key, sizeof(key), 3, NULL);
	is(slots_of(id), 20, "each key of a rule has a slot");
	shmlimit_rule_remove(l, "removed");
	is(slots_of(id), 0, "a rule that is removed leaves no key in the table");
}

/* What a key of the rule has left at T0 + s seconds. */
static uint64_t left(int id, const char *key, uint64_t s)
{
	struct shmlimit_result r;

	shmlimit_peek(at_time(l, T0 + s * SECOND), id, key, strlen(key), 0, &r);
	return r.remaining;
}

static void change(void)
{
	struct shmlimit_rule was = rule;
	struct shmlimit_range range = { .struct_size = sizeof(range) };
	struct shmlimit_result r;
	int id = set("change");

	shmlimit_take(at_time(l, T0), id, "empty", 5, 15, NULL);
	shmlimit_take(at_time(l, T0), id, "half", 4, 8, NULL);
	rule.refill = 1;
	rule.period_ns = 2 * SECOND;
	is(shmlimit_rule_set(at_time(l, T0), "change", &rule), id, "30 a minute is 1 in 2 s: nothing changes");
	is(left(id, "half", 0), 7, "a change to the same rate in other numbers leaves a key as it is");

	rule.capacity = 100;
	is(shmlimit_rule_set(at_time(l, T0 + SECOND), "change", &rule), id, "a capacity can be raised, the id stays");
	is(left(id, "half", 1), 7, "a key keeps its tokens");
	is(left(id, "new", 1), 100, "a new key has the new capacity");
	is(left(id, "empty", 1), 0, "an empty key stays empty");
	is(shmlimit_take(at_time(l, T0 + 2 * SECOND - 2), id, "empty", 5, 1, NULL), SHMLIMIT_DENIED,
	   "a change keeps the fraction of a token");
	shmlimit_rule_range(l, id, &range);
	is(shmlimit_take(at_time(l, T0 + 2 * SECOND + 32 * (range.resolution_ps / 1000 + 1)), id, "empty", 5, 1, NULL),
	   SHMLIMIT_ALLOWED, "a change costs a key at most a few ticks");

	rule.capacity = 3;
	rule.refill = 10;
	rule.period_ns = SECOND;
	is(shmlimit_rule_set(at_time(l, T0 + 2 * SECOND), "change", &rule), id,
	   "a capacity can be lowered, with another rate");
	is(left(id, "half", 2), 3, "tokens are clamped to a lower capacity");
	is(left(id, "new", 2), 3, "a lower capacity holds for keys that never came");
	is(left(id, "empty", 2), 0, "a key without tokens has none after a change");
	is(shmlimit_peek(at_time(l, T0 + 2 * SECOND), id, "empty", 5, 3, &r), SHMLIMIT_DENIED,
	   "the new rate is in force");
	ok(r.retry_after_ns <= 300000100 && r.retry_after_ns >= 290000000, "the time to wait follows the new rate");

	for (int i = 0; i < 20; i++) {
		rule.capacity = 20 + (uint64_t)i;
		rule.mode = (uint32_t)i % 4;
		if (shmlimit_rule_set(at_time(l, T0 + 2 * SECOND), "change", &rule) != id)
			bail("rule_set");
	}
	rule.mode = SHMLIMIT_ENFORCE;
	shmlimit_rule_set(at_time(l, T0 + 2 * SECOND), "change", &rule);
	is(left(id, "empty", 2), 0, "twenty changes later it still has none");
	is(left(id, "half", 2), 3, "a key that was clamped has what it was clamped to");
	is(shmlimit_verify(unit_name, NULL, 0), 0, "the segment is sound after a rule changed");
	rule = was;
}

/* From words with a quota to words without, and back: see funnel.h. */
static void change_form(void)
{
	static const struct shmlimit_rule few = { .struct_size = sizeof(few),
		                                  .capacity = 100,
		                                  .refill = 10,
		                                  .period_ns = SECOND,
		                                  .max_wait_ns = 10 * SECOND };
	static const struct shmlimit_rule bytes = { .struct_size = sizeof(bytes),
		                                    .capacity = 10000000,
		                                    .refill = 10000000,
		                                    .period_ns = SECOND,
		                                    .max_wait_ns = 10 * SECOND };
	struct shmlimit_result r;
	int id = shmlimit_rule_set(at_time(l, T0), "form", &few);

	shmlimit_take(at_time(l, T0), id, "half", 4, 50, NULL);
	shmlimit_take(at_time(l, T0), id, "empty", 5, 100, NULL);
	shmlimit_charge(at_time(l, T0), id, "debt", 4, 150, NULL);
	is(shmlimit_rule_set(at_time(l, T0), "form", &bytes), id, "a rule of a few tokens becomes one of bytes");
	ok(left(id, "half", 0) <= 50 && left(id, "half", 0) >= 49, "a key keeps its tokens");
	is(left(id, "empty", 0), 0, "an empty key stays empty");
	is(left(id, "new", 0), 10000000, "a new key has the new capacity");
	shmlimit_peek(at_time(l, T0), id, "debt", 4, 1, &r);
	ok(r.retry_after_ns >= 5100 && r.retry_after_ns < 5110, "a debt of 50 tokens is 50 bytes and the next one's");
	shmlimit_take(at_time(l, T0), id, "new", 3, 10000000 - 30, NULL);
	shmlimit_charge(at_time(l, T0), id, "debt", 4, 10, NULL);
	is(shmlimit_rule_set(at_time(l, T0), "form", &few), id,
	   "a rule of bytes can become a rule of a few tokens again");
	ok(left(id, "half", 0) <= 50 && left(id, "half", 0) >= 48, "a key keeps its tokens");
	ok(left(id, "new", 0) <= 30 && left(id, "new", 0) >= 29, "a key keeps tokens that it got as bytes");
	is(left(id, "empty", 0), 0, "an empty key stays empty");
	is(left(id, "never", 0), 100, "a new key has the new capacity");
	shmlimit_peek(at_time(l, T0), id, "debt", 4, 1, &r);
	ok(r.retry_after_ns >= 6099000000 && r.retry_after_ns <= 6101000000,
	   "a debt of 60 bytes is 60 tokens, to a hundredth of one");
	is(shmlimit_verify(unit_name, NULL, 0), 0, "the segment is sound");
	shmlimit_rule_remove(l, "form");
}

/* The largest capacity: that is accepted, one more is not. */
static void largest(void)
{
	static const struct shmlimit_rule rules[] = {
		{ .refill = 1, .period_ns = SECOND },
		{ .refill = 1, .period_ns = SECOND, .max_wait_ns = SECOND },
		{ .refill = 1, .period_ns = SECOND, .max_wait_ns = SECOND, .flags = SHMLIMIT_RULE_NEXT_PAYS },
		{ .refill = 100000000000, .period_ns = SECOND },
		{ .refill = 200000000000, .period_ns = SECOND, .max_wait_ns = 86400 * SECOND },
		{ .refill = 7, .period_ns = 61 * SECOND + 1 },
		{ .algorithm = SHMLIMIT_LEASE, .refill = 7, .period_ns = 86400 * SECOND },
		{ .algorithm = SHMLIMIT_WINDOW, .refill = 9, .period_ns = SECOND },
	};
	struct shmlimit_rule spec = { .struct_size = sizeof(spec),
		                      .algorithm = SHMLIMIT_WARMUP,
		                      .refill = 1,
		                      .period_ns = SECOND,
		                      .warmup_ns = SECOND };
	uint64_t capacity = 0;

	is(shmlimit_rule_capacity_max(NULL, &capacity), -EINVAL, "no rule has no largest capacity");
	is(shmlimit_rule_capacity_max(&spec, &capacity), -EINVAL, "a warm-up's capacity follows from the rest");
	spec.algorithm = SHMLIMIT_FUNNEL;
	spec.warmup_ns = 0;
	is(shmlimit_rule_capacity_max(&spec, NULL), -EINVAL, "somewhere the largest capacity has to be told");
	spec.period_ns = 0;
	is(shmlimit_rule_capacity_max(&spec, &capacity), -EDOM, "a rule without a period has no largest capacity");
	spec.period_ns = UINT64_MAX;
	is(shmlimit_rule_capacity_max(&spec, &capacity), -ERANGE, "no capacity goes with one token in 584 years");
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		struct layout_params params;

		spec = rules[i];
		spec.struct_size = sizeof(spec);
		spec.capacity = 12345; /* which is not looked at */
		is(shmlimit_rule_capacity_max(&spec, &capacity), 0, "rule %zu has a largest capacity", i);
		spec.refill = spec.algorithm == SHMLIMIT_WINDOW ? 0 : spec.refill;
		spec.capacity = capacity;
		is(algorithm_compile(&spec, SHMLIMIT_WINDOW_MAX, &params), 0, "%" PRIu64 " is accepted", capacity);
		spec.capacity++;
		ok(algorithm_compile(&spec, SHMLIMIT_WINDOW_MAX, &params) < 0, "one more is not");
	}
	is(capacity, SHMLIMIT_WINDOW_MAX, "a window's is that of the largest segment");
}

/* A rate whose period is an odd number of nanoseconds, of any length that a rule of any algorithm may have. */
static struct shmlimit_rule odd_rule(struct rng *rng)
{
	static const uint32_t algorithm[] = { SHMLIMIT_FUNNEL,  SHMLIMIT_FUNNEL, SHMLIMIT_FUNNEL, SHMLIMIT_WINDOW,
		                              SHMLIMIT_COUNTER, SHMLIMIT_LEASE,  SHMLIMIT_HOLD };
	struct shmlimit_rule odd = { .struct_size = sizeof(odd), .algorithm = algorithm[rng_below(rng, 7)] };
	int refills = odd.algorithm == SHMLIMIT_FUNNEL || odd.algorithm == SHMLIMIT_LEASE;

	odd.period_ns = rng_draw(rng) >> 1 >> rng_below(rng, 62) | 1;
	odd.period_ns <<= rng_below(rng, 4) == 0 ? rng_below(rng, 10) : 0;
	odd.refill = !refills ? 0 : rng_below(rng, 2) == 0 ? 1 : 1 + (rng_draw(rng) >> (20 + rng_below(rng, 44)));
	if (rng_below(rng, 4) == 0 && (odd.algorithm == SHMLIMIT_FUNNEL || odd.algorithm == SHMLIMIT_WINDOW))
		odd.max_wait_ns = rng_draw(rng) >> (2 + rng_below(rng, 60));
	return odd;
}

static int accepts(const struct shmlimit_rule *like, uint64_t capacity)
{
	struct layout_params params = { 0 };
	struct shmlimit_rule odd = *like;

	odd.capacity = capacity;
	return algorithm_compile(&odd, SHMLIMIT_WINDOW_MAX, &params) == 0;
}

/* Also of rates of which a small capacity would have finer ticks than can be counted. */
static void largest_capacity_is_the_largest(void)
{
	static const uint64_t day = 86400 * SECOND;
	struct rng rng = { rng_seed() };
	uint64_t above = 0, below = 0, none = 0, refused = 0, n = scaled(20000);

	for (uint64_t i = 0; i < n; i++) {
		struct shmlimit_rule odd = odd_rule(&rng);
		uint64_t capacity, most;

		if (i % 4 == 0)
			odd.period_ns = (120 * day + rng_below(&rng, 90 * day)) | 1;
		if (shmlimit_rule_capacity_max(&odd, &most) != 0) {
			refused++;
			for (unsigned bit = 0; bit <= 48; bit++)
				none += accepts(&odd, ((uint64_t)1 << bit) + rng_below(&rng, (uint64_t)1 << bit));
			continue;
		}
		for (int j = 0; j < 10; j++) {
			capacity = j == 0 ? most : 1 + rng_below(&rng, rng_below(&rng, most) + 1);
			if (capacity <= most && !accepts(&odd, capacity) && ++below <= 3)
				diag("algorithm %u, count %" PRIu64 ", period %" PRIu64 ": %" PRIu64 " of %" PRIu64,
				     odd.algorithm, odd.refill, odd.period_ns, capacity, most);
			above += accepts(&odd, most + 1 + (j == 0 ? 0 : rng_draw(&rng) >> (16 + rng_below(&rng, 48))));
		}
	}
	is(below, 0, "each capacity up to the largest is accepted");
	is(above, 0, "no capacity above the largest is accepted");
	is(none, 0, "where there is no largest capacity, none is accepted");
	ok(refused > n / 100 && refused < n / 2, "some rates are refused");
}

/* A process may be stopped just before it swaps a slot, for any number of changes: then its swap must fail. */
static void no_slot_comes_back(void)
{
	enum { CHANGES = 200 };
	struct shmlimit_options options = { .struct_size = sizeof(options), .slots = 16, .rules = 1 };
	static struct slot_seen seen[CHANGES];
	struct layout_slot *slot;
	unsigned again = 0, words = 0;

	shmlimit_close(l);
	l = unit_create("rule", &options);
	for (int i = 0; i < CHANGES; i++) {
		struct shmlimit_rule version = {
			.struct_size = sizeof(version),
			.capacity = i % 2 ? 250 : 100,
			.refill = i % 2 ? 30 : 70,
			.period_ns = SECOND,
			.max_wait_ns = (uint64_t)(i % 3) * SECOND,
		};
		int id = shmlimit_rule_set(at_time(l, T0), "r", &version);

		if (i == 0 && shmlimit_take(at_time(l, T0), id, "k", 1, 100, NULL) != SHMLIMIT_ALLOWED)
			bail("take");
		for (slot = l->tables[0].slots; slot->tag == 0; slot++)
			;
		seen[i] = slot_read(slot);
		for (int before = 0; before < i; before++) {
			words += seen[before].word == seen[i].word;
			again += seen[before].tag == seen[i].tag;
		}
		if (shmlimit_take(at_time(l, T0), id, "k", 1, 1, NULL) != SHMLIMIT_DENIED)
			bail("a change of the rule gives a token");
	}
	ok(words != 0, "while time stands and a rule changes to and fro, a key's word comes back");
	is(again, 0, "a key's word never comes back with its tag");
}

static void inherit(void)
{
	struct shmlimit_options options = { .struct_size = sizeof(options), .rules = 1 };
	struct shmlimit_result r;
	int id, again = -1;

	shmlimit_close(l);
	l = unit_create("rule", &options);
	id = set("old");
	/* Every version number that a tag can hold, and then some. */
	for (int i = 0; i < 9; i++) {
		shmlimit_take(at_time(l, T0), id, "k", 1, 15, NULL);
		shmlimit_rule_remove(l, i % 2 ? "new" : "old");
		again = set(i % 2 ? "old" : "new");
		if (again != id)
			break;
		if (shmlimit_take(at_time(l, T0), id, "k", 1, 15, &r) != SHMLIMIT_ALLOWED) {
			again = -1;
			break;
		}
	}
	is(again, id, "a rule with a used id begins with full funnels, every time");
	is(unit_counters(l, id).allowed, 1, "a rule with a used id begins with counters at zero");
	is(unit_counters(l, SHMLIMIT_ALL_RULES).allowed, 10, "counters of removed rules go on in the segment's sum");
	is(shmlimit_verify(unit_name, NULL, 0), 0, "the segment is sound after ids were used again");
}

/* A rule's counters in the order of enum counter. */
static void all_counters(int id, uint64_t out[COUNTERS])
{
	struct shmlimit_counters c = unit_counters(l, id);
	const uint64_t all[COUNTERS] = { c.allowed,  c.denied,    c.shadow_denied, c.claims,
		                         c.reclaims, c.evictions, c.no_slot,       c.failed_cas };

	memcpy(out, all, sizeof(all));
}

static void inherit_counters(void)
{
	struct shmlimit_options options = { .struct_size = sizeof(options), .rules = 1 };
	uint64_t before[COUNTERS], after[COUNTERS], sum[COUNTERS];
	int id, as_counted = 1, zero = 1, summed = 1;

	shmlimit_close(l);
	l = unit_create("rule", &options);
	id = set("old");
	for (enum counter i = 0; i < COUNTERS; i++)
		for (unsigned n = 0; n <= i; n++)
			counter_add(l, (uint32_t)id, i, n);
	all_counters(id, before);
	shmlimit_rule_remove(l, "old");
	is(set("new"), id, "another rule gets the id of a rule all of whose counters have counted");
	all_counters(id, after);
	all_counters(SHMLIMIT_ALL_RULES, sum);
	for (unsigned i = 0; i < COUNTERS; i++) {
		as_counted &= before[i] == i + 1;
		zero &= after[i] == 0;
		summed &= sum[i] == i + 1;
	}
	ok(as_counted, "each counter had counted as often as it should");
	ok(zero, "each counter of the new rule begins at zero");
	ok(summed, "each counter of the segment goes on");
}

static void many(void)
{
	struct shmlimit_options options = { .struct_size = sizeof(options), .slots = 16, .rules = 3, .rules_max = 3 };
	char name[8];
	int used = 0;

	shmlimit_close(l);
	l = unit_create("rule", &options);
	for (int i = 0; i < 3; i++) {
		snprintf(name, sizeof(name), "r%d", i);
		used += set(name) == i;
	}
	is(used, 3, "a segment made for three rules takes three");
	is(set("r3"), -EXFULL, "a segment made for three rules takes no fourth");
	shmlimit_rule_remove(l, "r1");
	is(set("r3"), 1, "a segment made for three rules takes one in the place of one that was removed");
	is(shmlimit_rule_find(l, "r2"), 2, "the others keep their ids");
}

/* A list that is full gets room for more, for the handles that were open before, too. */
static void longer(void)
{
	struct shmlimit_options options = { .struct_size = sizeof(options), .slots = 16, .rules = 3 };
	struct shmlimit_info info = { .struct_size = sizeof(info) };
	struct shmlimit *other;
	uint64_t size;
	char name[8];
	int used = 0, found = 0, counted = 0;

	shmlimit_close(l);
	l = unit_create("rule", &options);
	is(shmlimit_open(unit_name, 0, NULL, &other), 0, "another handle is open before the list of rules grows");
	shmlimit_info(l, &info);
	size = info.size;
	for (int i = 0; i < 200; i++) {
		snprintf(name, sizeof(name), "r%d", i);
		used += set(name) == i;
	}
	is(used, 200, "a list made for three rules takes 200");
	shmlimit_info(other, &info);
	ok(info.rules == 384 && info.rules_used == 200 && info.rules_max == SHMLIMIT_RULES_MAX && info.size > size,
	   "the list has become twice as long each time that it was full: %u", info.rules);
	for (int i = 0; i < 200; i++) {
		struct shmlimit_counters c = { .struct_size = sizeof(c) };

		snprintf(name, sizeof(name), "r%d", i);
		found += shmlimit_rule_find(other, name) == i &&
		         shmlimit_take(other, i, "k", 1, 1, NULL) == SHMLIMIT_ALLOWED;
		shmlimit_counters(l, i, &c);
		counted += c.allowed == 1;
	}
	is(found, 200, "the other handle finds each of them, and decides by it");
	is(counted, 200, "each has counters of its own");
	shmlimit_close(other);
	store_relaxed(&l->header->rules_now, SHMLIMIT_RULES_MAX + 1);
	ok(shmlimit_verify(unit_name, NULL, 0) >= 1, "a list longer than the longest is damage");
	is(shmlimit_repair(unit_name, NULL, 0), 1, "it is repaired");
	is(l->header->rules_now, 200, "to what its rules need");
	is(shmlimit_verify(unit_name, NULL, 0), 0, "the repaired segment is sound");
}

static int ensure(uint32_t algorithm, uint64_t capacity, uint64_t refill, uint32_t mode, struct shmlimit_rule *found)
{
	struct shmlimit_rule given = { .struct_size = sizeof(given),
		                       .algorithm = algorithm,
		                       .mode = mode,
		                       .capacity = capacity,
		                       .refill = refill,
		                       .period_ns = SECOND };
	int id = shmlimit_rule_ensure(l, "own", &given);

	memset(found, 0, sizeof(*found));
	found->struct_size = sizeof(*found);
	shmlimit_rule_get(l, shmlimit_rule_find(l, "own"), found);
	found->set_unix_ns = 0;
	return id;
}

static uint64_t refused(int id)
{
	struct shmlimit_rule found = { .struct_size = sizeof(found) };

	shmlimit_rule_get(l, id, &found);
	return found.refused_unix_ns;
}

/* Another limit was just refused for the rule. Leaves it refused, and as it was. */
static void refusals(int id, const struct shmlimit_rule *was)
{
	struct shmlimit_rule found, set = *was;
	struct shmlimit *looker;
	uint64_t since_ns = was->refused_unix_ns;

	ok(since_ns != 0 && since_ns <= segment_unix_ns() && segment_unix_ns() - since_ns < 3600 * SECOND,
	   "a refused limit leaves its time with the rule");
	is(shmlimit_verify(unit_name, NULL, 0), 0, "the segment is sound");
	is(ensure(SHMLIMIT_WINDOW, SHMLIMIT_WINDOW_MAX + 2, 0, SHMLIMIT_ENFORCE, &found), -EFBIG,
	   "another one is refused");
	ok(found.refused_unix_ns >= since_ns, "the time is that of the last");
	ensure(SHMLIMIT_FUNNEL, 6, 6, SHMLIMIT_ENFORCE, &found);
	is(refused(id), 0, "a program that is content with the rule ends it");
	ensure(SHMLIMIT_FUNNEL, 0, 4, SHMLIMIT_ENFORCE, &found);
	ok(refused(id) != 0, "a limit that is none is refused, too");
	is(shmlimit_rule_set(l, "own", &set), id, "the rule is set by hand");
	is(refused(id), 0, "that ends it, too");
	set.algorithm = SHMLIMIT_WINDOW;
	set.capacity = SHMLIMIT_WINDOW_MAX + 1;
	set.refill = set.max_wait_ns = 0;
	is(shmlimit_rule_set(l, "own", &set), -EFBIG, "what is set by hand is refused");
	is(refused(id), 0, "that was said to whom it concerns");
	if (shmlimit_open(unit_name, SHMLIMIT_OPEN_READ_ONLY, NULL, &looker) != 0)
		bail("open");
	set.struct_size = sizeof(set);
	ok(shmlimit_rule_ensure(looker, "own", &set) < 0 && refused(id) == 0,
	   "a process that may not write leaves nothing");
	shmlimit_close(looker);
	ensure(SHMLIMIT_WINDOW, SHMLIMIT_WINDOW_MAX + 1, 0, SHMLIMIT_ENFORCE, &found);
	ok(refused(id) != 0, "it is refused once more");
}

/* What a key has used up under each algorithm, in the new table or the old one, is nothing under each other one. */
static void algorithms_change(int grows)
{
	static const struct shmlimit_rule rules[] = {
		{ .algorithm = SHMLIMIT_FUNNEL, .capacity = 3, .refill = 1, .period_ns = 3600 * SECOND },
		{ .algorithm = SHMLIMIT_GCRA, .capacity = 3, .refill = 1, .period_ns = 3600 * SECOND },
		{ .algorithm = SHMLIMIT_WINDOW, .capacity = 3, .period_ns = 3600 * SECOND },
	};
	struct shmlimit_options options = { .struct_size = sizeof(options), .slots = 16 };
	unsigned wrong = 0;

	for (size_t a = 0; a < 3; a++)
		for (size_t b = 0; b < 3; b++) {
			struct shmlimit_rule one = rules[a], other = rules[b];
			struct shmlimit_counters counters = { .struct_size = sizeof(counters) };
			int id;

			if (a == b)
				continue;
			l = unit_create("algorithms", &options);
			one.struct_size = other.struct_size = sizeof(one);
			id = shmlimit_rule_ensure(l, "own", &one);
			wrong += shmlimit_take(l, id, "k", 1, 3, NULL) != SHMLIMIT_ALLOWED;
			if (grows)
				wrong += shmlimit_grow(l, 64) != 0;
			wrong += shmlimit_rule_ensure(l, "own", &other) != id;
			wrong += shmlimit_take(l, id, "k", 1, 2, NULL) != SHMLIMIT_ALLOWED;
			wrong += shmlimit_take(l, id, "k", 1, 2, NULL) != SHMLIMIT_DENIED;
			one.mark = 1; /* which is ignored */
			wrong += shmlimit_rule_ensure(l, "own", &one) != id;
			wrong += shmlimit_take(l, id, "k", 1, 3, NULL) != SHMLIMIT_ALLOWED;
			wrong += shmlimit_counters(l, id, &counters) != 0 || counters.allowed != 3 ||
			         counters.denied != 1;
			wrong += shmlimit_verify(unit_name, NULL, 0) != 0;
			shmlimit_close(l);
			shmlimit_destroy(unit_name);
		}
	is(wrong, 0, "a key begins again under each other algorithm, and under the first one after that%s",
	   grows ? ", though it is in the old table" : "");
}

static void ensured(void)
{
	struct shmlimit_options options = { .struct_size = sizeof(options) };
	struct shmlimit_rule found;
	struct shmlimit *before = l;
	int id;

	l = unit_create("ensure", &options);
	id = ensure(SHMLIMIT_FUNNEL, 5, 5, SHMLIMIT_ENFORCE, &found);
	ok(id >= 0 && found.capacity == 5, "a rule that is missing is set");
	is(shmlimit_take(l, id, "k", 1, 5, NULL), SHMLIMIT_ALLOWED, "a key takes all of it");
	found.capacity = 3;
	found.max_wait_ns = SECOND;
	found.mode = SHMLIMIT_DRY_RUN;
	is(shmlimit_rule_set(l, "own", &found), id, "an operator changes it");
	ensure(SHMLIMIT_FUNNEL, 5, 5, SHMLIMIT_ENFORCE, &found);
	is(found.capacity, 3, "what an operator changed is left alone by a program that gives the same rule again");
	is(ensure(SHMLIMIT_FUNNEL, 6, 6, SHMLIMIT_ENFORCE, &found), id, "another limit is set, under the same id");
	ok(found.capacity == 6 && found.mode == SHMLIMIT_DRY_RUN && found.max_wait_ns == SECOND,
	   "what the program does not say is left alone");
	is(found.refused_unix_ns, 0, "nothing was refused");
	is(ensure(SHMLIMIT_WINDOW, SHMLIMIT_WINDOW_MAX + 1, 0, SHMLIMIT_ENFORCE, &found), -EFBIG,
	   "a window larger than any is refused");
	ok(found.capacity == 6 && found.algorithm == SHMLIMIT_FUNNEL,
	   "the old rule stays in force where another one is refused");
	refusals(id, &found);
	is(ensure(SHMLIMIT_WINDOW, 8, 0, SHMLIMIT_OFF, &found), id, "another algorithm is set, under the same id");
	is(found.refused_unix_ns, 0, "a change that succeeds ends what was refused");
	ok(found.algorithm == SHMLIMIT_WINDOW && found.capacity == 8 && found.mode == SHMLIMIT_OFF &&
	           found.max_wait_ns == 0,
	   "a rule of another algorithm is as it was given");
	ensure(SHMLIMIT_FUNNEL, 4, 4, SHMLIMIT_ENFORCE, &found);
	is(found.mode, SHMLIMIT_ENFORCE, "a mode that a program has given ends when it gives another rule");
	is(shmlimit_take(l, id, "k", 1, 4, NULL), SHMLIMIT_ALLOWED, "keys begin anew under another algorithm");
	is(shmlimit_take(l, id, "k", 1, 1, NULL), SHMLIMIT_DENIED,
	   "keys have no more than the new limit under another algorithm");
	is(ensure(SHMLIMIT_FUNNEL, 0, 4, SHMLIMIT_ENFORCE, &found), -EDOM, "a rule that is none is refused");
	is(found.capacity, 4, "a refused rule changes nothing");
	shmlimit_close(l);
	l = before;
}

/* Decisions go on in the table that the handle knows. */
static void damaged(void)
{
	struct shmlimit_options options = { .struct_size = sizeof(options) };
	struct shmlimit_rule found;
	struct shmlimit *before = l;
	uint64_t state;
	int id;

	l = unit_create("damaged", &options);
	state = l->header->state;
	l->header->state = state_pack(GENERATIONS_MAX + 1, 0);
	id = ensure(SHMLIMIT_WINDOW, 8, 0, SHMLIMIT_ENFORCE, &found);
	ok(id >= 0, "where the header does not say which table there is, a window is set");
	is(shmlimit_take(l, id, "k", 1, 8, NULL), SHMLIMIT_ALLOWED, "its keys are decided");
	is(shmlimit_take(l, id, "k", 1, 1, NULL), SHMLIMIT_DENIED, "as ever");
	l->header->state = state;
	shmlimit_close(l);
	l = before;
}

int main(void)
{
	l = unit_create("rule", NULL);
	versions();
	shmlimit_close(l);
	algorithms_change(0);
	algorithms_change(1);
	l = unit_create("rule", NULL);
	define();
	remove_keys();
	change();
	change_form();
	inherit();
	inherit_counters();
	no_slot_comes_back();
	largest();
	largest_capacity_is_the_largest();
	ensured();
	many();
	longer();
	damaged();
	shmlimit_close(l);
	return tap_done();
}
