/*
 * range: what shmlimit_rule_range() says of a rule is what the rule does, for each algorithm: how long it takes to
 * fill, how fine its clock is, for how long an idle key is known to be full. And any bits in a rule's parameters have an
 * answer (I7).
 *
 * SEED=n repeats a run; TEST_SCALE=n makes it n times as long.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "../rng.h"
#include "unit.h"

#include "algorithm.h"
#include "limiter.h"

#define T0 (UINT64_MAX / 4)
#define DAY (86400 * SECOND)
#define IDLE_MAX (100 * 366 * DAY)

static struct shmlimit *l;
static struct shmlimit_result r;
static struct shmlimit_range range;

static const struct shmlimit_rule rules[] = {
	{ .algorithm = SHMLIMIT_FUNNEL, .capacity = 1, .refill = 1, .period_ns = SECOND },
	{ .algorithm = SHMLIMIT_FUNNEL, .capacity = 100, .refill = 7, .period_ns = 60 * SECOND },
	{ .algorithm = SHMLIMIT_FUNNEL, .capacity = 1000000, .refill = 1000000, .period_ns = SECOND },
	{ .algorithm = SHMLIMIT_FUNNEL, .capacity = 5, .refill = 1, .period_ns = 30 * DAY },
	{ .algorithm = SHMLIMIT_FUNNEL, .capacity = 5, .refill = 1, .period_ns = SECOND, .max_wait_ns = 60 * SECOND },
	{ .algorithm = SHMLIMIT_WARMUP, .refill = 10, .period_ns = SECOND, .warmup_ns = 60 * SECOND },
	{ .algorithm = SHMLIMIT_WARMUP, .refill = 1, .period_ns = 60 * SECOND, .warmup_ns = DAY },
	{ .algorithm = SHMLIMIT_WINDOW, .capacity = 1, .period_ns = 1 },
	{ .algorithm = SHMLIMIT_WINDOW, .capacity = 1, .period_ns = 1000 },
	{ .algorithm = SHMLIMIT_WINDOW, .capacity = 5, .period_ns = 60 * SECOND },
	{ .algorithm = SHMLIMIT_WINDOW, .capacity = 16, .period_ns = 366 * DAY },
	{ .algorithm = SHMLIMIT_WINDOW, .capacity = 16, .period_ns = DAY, .max_wait_ns = DAY },
	{ .algorithm = SHMLIMIT_WINDOW,
	  .capacity = 16,
	  .period_ns = 1000 * SECOND,
	  .flags = SHMLIMIT_RULE_COUNT_REFUSED },
};

#define RULES (sizeof(rules) / sizeof(rules[0]))

static int set(const struct shmlimit_rule *like)
{
	struct shmlimit_rule rule = *like;
	int id;

	rule.struct_size = sizeof(rule);
	id = unit_id(shmlimit_rule_set(at_time(l, T0), "rule", &rule));
	range = (struct shmlimit_range){ .struct_size = sizeof(range) };
	if (shmlimit_rule_range(l, id, &range) != 0)
		bail("rule_range");
	return id;
}

/* How long a key that has spent all it had takes to be full again, by the peeks of this very rule. */
static uint64_t time_to_fill(int id, uint64_t key)
{
	if (shmlimit_peek(at_time(l, T0), id, &key, sizeof(key), 0, &r) >= 0 && r.remaining > 0)
		shmlimit_take(at_time(l, T0), id, &key, sizeof(key), r.remaining, &r);
	shmlimit_peek(at_time(l, T0), id, &key, sizeof(key), 0, &r);
	return r.reset_after_ns;
}

static int is_full(int id, uint64_t key, uint64_t at)
{
	shmlimit_peek(at_time(l, at), id, &key, sizeof(key), 0, &r);
	return r.reset_after_ns == 0;
}

static void described(const struct shmlimit_rule *rule, struct rng *rng)
{
	static const char *const algorithm[] = { "FUNNEL", "WARMUP", "WINDOW" };
	int id = set(rule);
	uint64_t refill_ns, not_full = 0, tick_ns = (range.resolution_ps + 999) / 1000;
	char title[128];

	snprintf(title, sizeof(title), "%s of %" PRIu64 ", %" PRIu64 " in %" PRIu64 " ns, waits up to %" PRIu64 " ns",
	         algorithm[rule->algorithm], rule->capacity, rule->refill, rule->period_ns, rule->max_wait_ns);
	refill_ns = time_to_fill(id, 0);
	if (rule->algorithm == SHMLIMIT_WARMUP)
		ok(refill_ns >= tick_ns, "%s: a key that has spent has some time to fill", title);
	else
		ok(refill_ns <= range.refill_ns && refill_ns + 2 * tick_ns >= range.refill_ns,
		   "%s: an empty key is full after refill_ns", title);
	for (uint64_t i = 0; i < 2 + scaled(200); i++) {
		uint64_t from = range.refill_ns > refill_ns ? range.refill_ns : refill_ns;
		/* The beginning, around the end of what the word tells, anywhere. */
		uint64_t idle_ns = i == 0   ? from
		                   : i == 1 ? from + range.back_ns
		                            : from + rng_below(rng, i % 2 ? 3 * range.back_ns : IDLE_MAX);

		if (idle_ns > IDLE_MAX)
			idle_ns = IDLE_MAX;
		shmlimit_reset(l, SHMLIMIT_ALL_RULES, NULL, 0);
		time_to_fill(id, i);
		not_full += !is_full(id, i, T0 + idle_ns);
	}
	is(not_full, 0, "%s: a key that was idle for refill_ns or longer is full", title);
	shmlimit_rule_remove(l, "rule");
}

/*
 * A word's timestamp has this many bits. Of what they reach, the period, the longest wait and the slack are needed to
 * tell the past from the future: see lib/algorithm/window/window.c.
 */
static void windows(void)
{
	for (size_t i = 0; i < RULES; i++) {
		uint64_t slack_ns = rules[i].period_ns / 2 < SECOND ? rules[i].period_ns / 2 : SECOND, reach;

		if (rules[i].algorithm != SHMLIMIT_WINDOW)
			continue;
		set(&rules[i]);
		reach = range.back_ns + rules[i].period_ns + rules[i].max_wait_ns + slack_ns +
		        4 * (range.resolution_ps / 1000);
		ok((reach & (reach - 1)) == 0 || reach == UINT64_MAX,
		   "a window of %" PRIu64 " ns: all that its timestamp reaches is used", rules[i].period_ns);
		is(range.refill_ns, rules[i].period_ns, "a window of %" PRIu64 " ns is full after its period",
		   rules[i].period_ns);
		ok(range.back_ns >= 14 * (rules[i].period_ns + rules[i].max_wait_ns),
		   "a window's word is known for 14 times its period and the longest wait");
		shmlimit_rule_remove(l, "rule");
	}
}

/* A lease's word reaches 417 days, 26 of them the future. */
static void leases(void)
{
	struct shmlimit_rule rule = { .algorithm = SHMLIMIT_LEASE, .capacity = 100, .refill = 7, .period_ns = SECOND };

	set(&rule);
	is(range.refill_ns, (100 * SECOND + 6) / 7, "a lease's rule fills as the funnel elsewhere does");
	ok(range.back_ns > 365 * DAY, "its keys may be idle for a year");
	ok(range.ahead_ns > 26 * DAY && range.ahead_ns < 27 * DAY, "a lease may last 26 days");
	shmlimit_rule_remove(l, "rule");
}

static uint64_t some_bits(struct rng *rng)
{
	static const uint64_t likely[] = { 0, 1, 2, UINT64_MAX, UINT64_MAX - 1, UINT64_MAX / 2, (uint64_t)1 << 63 };
	uint64_t pick = rng_below(rng, 12);

	if (pick < sizeof(likely) / sizeof(likely[0]))
		return likely[pick];
	return rng_draw(rng) >> rng_below(rng, 64);
}

/* Any parameters: each question has an answer, and no process dies (the sanitizers watch). */
static void damaged_params(struct rng *rng)
{
	uint64_t answered = 0, n = scaled(20000);

	for (uint64_t round = 0; round < n; round++) {
		struct shmlimit_rule rule = rules[rng_below(rng, RULES)];
		struct layout_params params;
		uint64_t *words = (uint64_t *)&params;
		uint32_t algorithm = (uint32_t)rng_below(rng, 5);

		rule.struct_size = sizeof(rule);
		algorithm_compile(&rule, 16, &params);
		/* One word of a rule's parameters, or some, or all. */
		for (uint64_t left = 1 + rng_below(rng, rng_below(rng, 2) ? 3 : 64); left > 0; left--)
			words[rng_below(rng, sizeof(params) / sizeof(uint64_t))] = some_bits(rng);
		if (algorithm < 4)
			params.shape = (params.shape & ~((uint64_t)255 << 16)) | (uint64_t)algorithm << 16;
		algorithm_of(&params)->range(&params, &range);
		algorithm_rule(&params, &rule);
		answered++;
	}
	is(answered, n, "damaged parameters have some range, and are some rule");
}

int main(void)
{
	struct shmlimit_options options = { .struct_size = sizeof(options), .slots = 64 };
	struct rng rng = { rng_seed() };

	l = unit_create("range", &options);
	for (size_t i = 0; i < RULES; i++)
		described(&rules[i], &rng);
	windows();
	leases();
	damaged_params(&rng);
	shmlimit_close(l);
	return tap_done();
}
