/*
 * warmup: WARMUP rules against what Guava's RateLimiter documents and tests:
 * SmoothWarmingUp, computed here in floating point from its description.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "../rng.h"
#include "guava.h"
#include "unit.h"

#include "limiter.h"
#include "warmup.h"

#define T0 (1000000 * SECOND)
#define MS (SECOND / 1000)

static struct shmlimit *l;
static struct shmlimit_result r;

static struct shmlimit_rule warm(uint64_t count, uint64_t period_ns, uint64_t warmup_ns, uint32_t cold_factor_milli)
{
	return (struct shmlimit_rule){ .struct_size = sizeof(struct shmlimit_rule),
		                       .algorithm = SHMLIMIT_WARMUP,
		                       .refill = count,
		                       .period_ns = period_ns,
		                       .warmup_ns = warmup_ns,
		                       .cold_factor_milli = cold_factor_milli,
		                       .max_wait_ns = 3600 * SECOND };
}

static int set(const char *name, const struct shmlimit_rule *rule)
{
	return unit_id(shmlimit_rule_set(at_time(l, T0), name, rule));
}

/* Off by less than a hundredth of a second. */
static int near_ms(uint64_t ns, uint64_t ms)
{
	int64_t off = (int64_t)(ns - ms * MS);

	if (off < (int64_t)(10 * MS) && -off < (int64_t)(10 * MS))
		return 1;
	diag("%" PRIu64 " ns, want %" PRIu64 " ms", ns, ms);
	return 0;
}

/* Acquire one after the other, sleeping as told, on the given clock. Returns how many waits are off. */
static int acquire_all(int id, const char *key, uint64_t *now_ns, const unsigned *want_ms, size_t n)
{
	int off = 0;

	for (size_t i = 0; i < n; i++) {
		int answer = shmlimit_reserve(at_time(l, *now_ns), id, key, strlen(key), 1, UINT64_MAX, &r);

		off += answer != SHMLIMIT_ALLOWED || !near_ms(r.wait_ns, want_ms[i]);
		*now_ns += r.wait_ns;
	}
	return off;
}

/* RateLimiterTest.testWarmUp of Guava: 2 a second, 4 s to warm up; the waits that it lists, in ms. */
static void as_guava_tests(void)
{
	static const unsigned cold[] = { 0, 1375, 1125, 875, 625, 500, 500, 500 };
	struct shmlimit_rule rule = warm(2, SECOND, 4 * SECOND, 0);
	int id = set("guava", &rule);
	uint64_t now_ns = T0;

	is(acquire_all(id, "k", &now_ns, cold, 8), 0, "from cold, each wait is shorter, until it is warm");
	now_ns += 500 * MS;
	now_ns += 4000 * MS;
	is(acquire_all(id, "k", &now_ns, cold, 8), 0, "four idle seconds make it cold again");
	now_ns += 500 * MS;
	now_ns += 2000 * MS;
	{
		static const unsigned half[] = { 0, 500, 500, 500, 500, 500, 500, 500 };

		is(acquire_all(id, "k", &now_ns, half, 8), 0, "two do not");
	}
	is(r.limit, 8, "the capacity is what Guava stores: threshold and ramp");
}

static void by_hand(void)
{
	struct shmlimit_rule rule = warm(10, SECOND, SECOND, 0), got = { .struct_size = sizeof(got) };
	int id = set("hand", &rule);
	uint64_t wait_ns;

	is(shmlimit_rule_get(l, id, &got), 0, "the rule is read back");
	ok(got.capacity == 10 && got.warmup_ns == SECOND && got.cold_factor_milli == 3000,
	   "rule_get reports the capacity that follows from a warm-up");
	is(shmlimit_rule_set(at_time(l, T0), "hand", &got), id, "a warm-up can be set again as rule_get reported it");
	is(shmlimit_take(at_time(l, T0), id, "k", 1, 10, &r), SHMLIMIT_ALLOWED,
	   "from cold all that is stored is had at once");
	is(r.remaining, 0, "after a take of everything, nothing is stored");
	is(shmlimit_take(at_time(l, T0), id, "k", 1, 1, &r), SHMLIMIT_DENIED, "the next one pays");
	ok(near_ms(r.retry_after_ns, 1500),
	   "the area: the warm-up for what was above the threshold, half of it for the rest");
	wait_ns = r.retry_after_ns;
	is(shmlimit_take(at_time(l, T0 + wait_ns - 1), id, "k", 1, 1, &r), SHMLIMIT_DENIED,
	   "a nanosecond too early is too early");
	is(shmlimit_take(at_time(l, T0 + wait_ns), id, "k", 1, 1, &r), SHMLIMIT_ALLOWED,
	   "a request is admitted when the debt is paid");
	is(shmlimit_peek(at_time(l, T0 + wait_ns), id, "k", 1, 1, &r), SHMLIMIT_DENIED,
	   "an admitted request leaves its own cost as debt");
	ok(near_ms(r.retry_after_ns, 100), "the stable interval: it is warm");
	is(shmlimit_take(at_time(l, T0 + 10 * SECOND), id, "k", 1, 11, &r), SHMLIMIT_DENIED,
	   "more than the capacity is refused");
	ok(r.retry_after_ns == UINT64_MAX, "for ever");
	is(shmlimit_reserve(at_time(l, T0), id, "j", 1, 1, 0, &r), SHMLIMIT_ALLOWED, "another key is cold");
	is(shmlimit_reserve(at_time(l, T0), id, "j", 1, 1, 100 * MS, &r), SHMLIMIT_DENIED,
	   "a reservation that would wait longer than its caller allows is denied");
	ok(near_ms(r.retry_after_ns, 180),
	   "a denied reservation reports when it would not have to wait: 280 ms for a cold token");
	shmlimit_charge(at_time(l, T0), id, "j", 1, 1, &r);
	is(r.retry_after_ns, 0, "a charge to a warm-up takes all of it");
	shmlimit_charge(at_time(l, T0), id, "greedy", 6, UINT64_MAX, &r);
	is(r.retry_after_ns, UINT64_MAX, "a charge to a warm-up beyond its longest debt says so");
	shmlimit_peek(at_time(l, T0), id, "j", 1, 1, &r);
	ok(near_ms(r.retry_after_ns, 280 + 240), "a charge is owed as well");
	shmlimit_refund(at_time(l, T0), id, "j", 1, 2, NULL);
	shmlimit_peek(at_time(l, T0), id, "j", 1, 1, &r);
	ok(near_ms(r.retry_after_ns, 320), "a refund gives back the stable interval of each");
	shmlimit_refund(at_time(l, T0), id, "j", 1, UINT64_MAX, &r);
	is(r.remaining, 10, "a refund of everything makes it cold and free");
	is(r.reset_after_ns, 0, "a key that was refunded everything is as if it had never been asked for");
}

/* ---- Against floating point ---- */

#define LOST 3 /* BOUND: roundings a request: what is stored, the wait, what was idle */

/* What stands in the slot of the rule's only key, permits and seconds. */
static struct oracle stands(int id, const struct layout_params *params, uint64_t now_ns)
{
	struct funnel_time at = funnel_time(params, now_ns);

	for (uint64_t i = 0; i < l->tables->lines * SLOTS_PER_LINE; i++) {
		const struct layout_slot *slot = &l->tables->slots[i];
		struct funnel funnel;

		if (slot->tag == 0 || tag_rule(slot->tag) != (uint32_t)id)
			continue;
		funnel = warmup_refill(params, slot->word, at);
		return (struct oracle){
			.stored = ldexp((double)funnel.quota, -(int)params_unit_bits(params)),
			.next_free = (double)(now_ns - T0 +
			                      funnel_stamp_to_ns(params, at, warmup_debt(params, funnel, at))) /
			             1e9,
		};
	}
	bail("no slot");
}

/*
 * Each request begins with what the last one left. WHY NOT with what the oracle's left: what either rounds of a
 * time in which no request came costs as many times as much as a cold token takes longer than storing one, and that
 * again the next time: two oracles that begin a nanosecond apart end up apart by any bound.
 */
static void against_oracle(uint64_t seed)
{
	struct rng rng = { seed };
	uint64_t off = 0, refused = 0, n = 20 + scaled(180), warm_ups = 0;
	double worst = 0;

	for (uint64_t round = 0; round < n; round++) {
		struct shmlimit_rule rule = warm(1 + rng_below(&rng, (uint64_t)1 << rng_below(&rng, 17)),
		                                 rng_below(&rng, 2) == 0 ? SECOND : 60 * SECOND,
		                                 MS * (1 + rng_below(&rng, (uint64_t)1 << (4 + rng_below(&rng, 14)))),
		                                 (uint32_t)(1000 + rng_below(&rng, 9000)));
		int id = shmlimit_rule_set(at_time(l, T0), "random", &rule);
		struct shmlimit_rule got = { .struct_size = sizeof(got) };
		struct layout_params params;
		uint64_t now_ns = T0;
		struct shmlimit_range range = { .struct_size = sizeof(range) };
		struct oracle o, ours;
		double tick;

		if (id < 0) {
			refused += id == -ERANGE;
			off += id != -ERANGE;
			continue;
		}
		shmlimit_rule_get(l, id, &got);
		if (warmup_compile(&rule, &params) != 0)
			bail("a rule that is set does not compile");
		o = oracle_of(&got);
		o.next_free = (double)(now_ns - T0) / 1e9;
		shmlimit_rule_range(l, id, &range);
		tick = (double)range.resolution_ps / 1e12;
		for (int i = 0; i < 100; i++) {
			uint64_t cost = 1 + rng_below(&rng, 1 + rng_below(&rng, got.capacity));
			double now = (double)(now_ns - T0) / 1e9, want = oracle_acquire(&o, now, (double)cost), error;
			/* A unit of a cold token, and a tick of the rule's clock, each rounded up to LOST times. */
			double allowed = LOST * (ldexp(o.cold, -(int)params_unit_bits(&params)) + tick + 1e-9);

			off += shmlimit_reserve(at_time(l, now_ns), id, &round, sizeof(round), cost, UINT64_MAX, &r) !=
			       SHMLIMIT_ALLOWED;
			ours = stands(id, &params, now_ns);
			error = fmax(fabs((double)r.wait_ns / 1e9 - want), fabs(ours.next_free - o.next_free));
			error = fmax(error, fabs(ours.stored - o.stored) * o.cold);
			o.stored = ours.stored;
			o.next_free = ours.next_free;
			worst = fmax(worst, error / allowed);
			off += error > allowed;
			warm_ups += want > 0;
			/* Now and then idle: for less than a token, or for long. */
			now_ns += r.wait_ns;
			if (rng_below(&rng, 3) == 0)
				now_ns += rng_below(&rng, (uint64_t)(o.stable * 1e9 * 2) + 1);
			if (rng_below(&rng, 10) == 0)
				now_ns += rng_below(&rng, got.warmup_ns * 2);
		}
		shmlimit_rule_remove(l, "random");
	}
	is(off, 0, "random rules do as Guava's description says, to three roundings a request");
	ok(warm_ups > n && refused < n, "some of the random requests waited");
	diag("%" PRIu64 " of %" PRIu64 " rules refused, worst error %.3f of what is allowed", refused, n, worst);
}

/* ---- Sums, exactly ---- */

struct guava {
	long double stable, cold, threshold, max, slope, cool_down; /* nanoseconds, permits */
};

static struct guava guava_of(const struct shmlimit_rule *rule)
{
	struct guava g = { .stable = (long double)rule->period_ns / (long double)rule->refill };

	g.cold = g.stable * rule->cold_factor_milli / 1000;
	g.threshold = 0.5L * (long double)rule->warmup_ns / g.stable;
	g.max = g.threshold + 2.0L * (long double)rule->warmup_ns / (g.stable + g.cold);
	g.slope = (g.cold - g.stable) / (g.max - g.threshold);
	g.cool_down = (long double)rule->warmup_ns / g.max;
	return g;
}

/* The nanoseconds that a permit takes. *stored is what there was, and then what stays. */
static long double guava_take(const struct guava *g, long double *stored)
{
	long double taken = fminl(1, *stored), above = fmaxl(0, *stored - g->threshold), ramp = fminl(above, taken);

	*stored -= taken;
	return ramp * (2 * g->stable + (2 * above - ramp) * g->slope) / 2 + (1 - ramp) * g->stable;
}

/* One at a time, each when it is due, or `gap_ns` after the last if that is later: how far off all of them are together. */
struct sums {
	long double ours, theirs;
	uint64_t for_nothing; /* that took no time */
	long double units;    /* stored beyond what Guava stores, in all, ... */
	unsigned pauses;      /* ... after this number of pauses, in which the store was not filled */
};

static struct sums one_by_one(const struct layout_params *params, const struct guava *g, uint64_t quota, unsigned n,
                              long double gap_ns, int own_states)
{
	long double unit = ldexpl(1, -(int)params_unit_bits(params)), stored = (long double)quota * unit;
	long double tick_ns = (long double)params->den / (long double)params->num;
	struct funnel_time at = funnel_time(params, T0);
	struct funnel funnel = { quota, at.stamp, 0 };
	struct sums sums = { 0 };
	uint64_t now_ns = T0;

	for (unsigned i = 0; i < n; i++) {
		uint64_t debt, cost, due_ns;

		at = funnel_time(params, now_ns);
		if (own_states) {
			int64_t idle = (int64_t)(at.stamp - funnel.stamp) >> params_quota_bits(params);

			stored = (long double)funnel.quota * unit;
			if (idle > 0)
				stored = fminl(g->max, stored + (long double)idle * tick_ns / g->cool_down);
		}
		funnel = warmup_refill(params, funnel_pack(params, funnel), at);
		debt = warmup_debt(params, funnel, at);
		warmup_take(params, &funnel, 1, at);
		cost = funnel.stamp - at.stamp - debt;
		sums.ours += (long double)(cost >> params_quota_bits(params)) * tick_ns;
		sums.theirs += guava_take(g, &stored);
		sums.for_nothing += cost == 0;
		if (own_states && debt == 0 &&
		    funnel.quota + 2 * ((uint64_t)1 << params_unit_bits(params)) < params->capacity) {
			sums.units += (long double)funnel.quota - stored / unit;
			sums.pauses++;
		}
		due_ns = now_ns + funnel_stamp_to_ns(params, at, warmup_debt(params, funnel, at));
		now_ns += (uint64_t)(gap_ns * (i + 1)) - (uint64_t)(gap_ns * i);
		now_ns = now_ns < due_ns ? due_ns : now_ns;
	}
	return sums;
}

static int is_off(const char *what, const struct shmlimit_rule *rule, struct sums sums, long double by)
{
	long double off = fabsl(sums.ours / sums.theirs - 1);

	if (off <= by)
		return 0;
	diag("%s: %.3Lf %% off at %" PRIu64 " in %" PRIu64 " ns, warm-up %" PRIu64 " ns, cold factor %" PRIu32, what,
	     100 * off, rule->refill, rule->period_ns, rule->warmup_ns, rule->cold_factor_milli);
	return 1;
}

/*
 * Each request alone is rounded; together they must not be off. What is allowed is a part in a thousand, and three more
 * for what ten thousand of them may be off together by chance, where each takes four ticks.
 */
static void sums_are_guavas(void)
{
	static const uint32_t colds[] = { 1000,  1001,  1500,   2000,   3000,   5000,   10000,
		                          30000, 77777, 100000, 300000, 500000, 999000, 1000000 };
	static const uint64_t counts[] = { 1, 3, 10, 77, 100, 1000, 10000, 100000, 1000000, 10000000 };
	static const uint64_t warmups[] = { MS,          100 * MS,      SECOND,        10 * SECOND,
		                            60 * SECOND, 3600 * SECOND, 86400 * SECOND };
	unsigned off = 0, accepted = 0, refused = 0, n = 10000;
	unsigned paused = 0, dropped = 0;
	uint64_t for_nothing = 0;

	for (size_t i = 0; i < sizeof(colds) / sizeof(*colds) * (sizeof(counts) / sizeof(*counts)) * 7; i++) {
		struct shmlimit_rule rule = warm(counts[i / 7 % 10], SECOND, warmups[i % 7], colds[i / 70]);
		struct layout_params params = { 0 };
		struct guava g = guava_of(&rule);
		struct sums sums;

		if (warmup_compile(&rule, &params) != 0) {
			refused++;
			continue;
		}
		accepted++;
		sums = one_by_one(&params, &g, 0, n, 0, 0);
		for_nothing += sums.for_nothing;
		off += is_off("warm", &rule, sums, 0.004L) != 0;
		sums = one_by_one(&params, &g, params.capacity, g.max < n ? (unsigned)ceill(g.max) : n, 0, 0);
		for_nothing += sums.for_nothing;
		off += is_off("from cold", &rule, sums, g.max < 100 ? 0.002L : 0.004L) != 0;
		sums = one_by_one(&params, &g, params.capacity / 2, n, g.stable * 1.37L, 1);
		off += is_off("with pauses", &rule, sums, 0.005L) != 0;
		if (sums.pauses > n / 4) {
			paused++;
			dropped += fabsl(sums.units / sums.pauses) > 0.05L;
		}
	}
	is(off, 0, "%u rules of all cold factors, warm, cold and with pauses, take as long as Guava's", accepted);
	is(for_nothing, 0, "no request takes no time");
	ok(paused > 100 && dropped == 0,
	   "a pause stores what it stores in Guava, to a twentieth of a unit in the mean, but in %u of %u rules",
	   dropped, paused);
	ok(accepted > 600 && refused > 50, "some rules cannot be that exact, and are refused: %u", refused);
}

/* Refunds of all sizes, at a debt of 2.3 s beside 7 stored tokens: first it is paid, at a stable interval each. */
static void refund_across_the_debt(void)
{
	struct shmlimit_rule rule = warm(10, SECOND, 2 * SECOND, 3000);
	int id = set("across", &rule), off = 0;

	for (uint64_t tokens = 1; tokens <= 40; tokens++) {
		uint64_t owed_ms = tokens < 23 ? 2300 - 100 * tokens : 0;
		uint64_t stored = tokens <= 23 ? 7 : tokens - 16 < 20 ? tokens - 16 : 20;

		shmlimit_reset(l, id, NULL, 0);
		shmlimit_take(at_time(l, T0), id, "k", 1, 13, &r);
		shmlimit_refund(at_time(l, T0), id, "k", 1, tokens, &r);
		off += r.remaining != stored && r.remaining + 1 != stored;
		shmlimit_peek(at_time(l, T0), id, "k", 1, 1, &r);
		off += !near_ms(r.retry_after_ns, owed_ms);
	}
	is(off, 0, "a refund pays the debt first, and stores only what it gives back beyond that");
}

/* A debt of decades does not come round where the rule gets a clock of a year. */
static void long_debt_is_kept(void)
{
	uint64_t year = 366 * 86400 * SECOND, forgiven = 0, too_long = 0;

	for (uint64_t years = 1; years <= 30; years++)
		for (uint64_t part = 0; part < 8; part++) {
			struct shmlimit_rule rule = warm(1, SECOND, 60 * SECOND, 3000);
			int id;

			rule.max_wait_ns = years * year + part * year / 8;
			id = set("decades", &rule);
			shmlimit_charge(at_time(l, T0), id, "k", 1, UINT64_MAX, &r);
			rule = warm(10, SECOND, SECOND, 3000);
			rule.max_wait_ns = SECOND;
			set("decades", &rule);
			shmlimit_peek(at_time(l, T0), id, "k", 1, 1, &r);
			forgiven += r.retry_after_ns < SECOND;
			too_long += r.retry_after_ns > 4 * SECOND;
			shmlimit_rule_remove(l, "decades");
		}
	is(forgiven, 0, "a debt of any length is owed after the rule is changed to shorter times");
	is(too_long, 0, "it is cut to the longest debt of the new rule");
}

static void live(void)
{
	struct shmlimit_rule rule = warm(10, SECOND, SECOND, 0);
	int id = set("live", &rule);

	shmlimit_take(at_time(l, T0), id, "k", 1, 5, &r);
	is(r.remaining, 5, "half of what was stored is taken");
	rule = warm(20, SECOND, SECOND, 0);
	is(set("live", &rule), id, "the rate is doubled while it is in use");
	shmlimit_peek(at_time(l, T0), id, "k", 1, 1, &r);
	is(r.limit, 20, "twice as much can be stored");
	is(r.remaining, 10, "half of the larger store is stored, as half of the smaller one was");
	ok(near_ms(r.retry_after_ns, 1000), "a changed rule keeps a debt, as time");
	rule = warm(2, SECOND, SECOND, 0);
	set("live", &rule);
	shmlimit_peek(at_time(l, T0), id, "k", 1, 1, &r);
	is(r.remaining, 1, "half of a smaller store is stored");
}

/* What counts as full may be forgotten, and the debt with it. */
static void in_debt_when_the_store_shrinks(void)
{
	struct shmlimit_slot slot = { .struct_size = sizeof(slot) };
	struct shmlimit_rule rule = warm(20, SECOND, SECOND, 0);
	int id = set("shrinks", &rule), refilled = 0;

	shmlimit_take(at_time(l, T0), id, "k", 1, 5, &r);
	rule = warm(10, SECOND, SECOND, 0);
	set("shrinks", &rule);
	shmlimit_peek(at_time(l, T0), id, "k", 1, 1, &r);
	ok(r.retry_after_ns > 0 && r.reset_after_ns >= r.retry_after_ns,
	   "a key in debt is not full before the debt is paid, even if the store shrinks");
	for (uint64_t i = 0; shmlimit_slot(l, i, &slot, T0) == 0; i++)
		refilled += slot.rule == id && slot.state == SHMLIMIT_SLOT_REFILLED;
	is(refilled, 0, "the slot of a key with a debt is not free");
}

static void wrong_rules(void)
{
	struct shmlimit_rule rule = warm(10, SECOND, SECOND, 0);

	rule.capacity = 11;
	is(shmlimit_rule_set(l, "bad", &rule), -EINVAL, "a capacity that does not follow from the rest is refused");
	rule = warm(0, SECOND, SECOND, 0);
	is(shmlimit_rule_set(l, "bad", &rule), -EDOM, "no tokens are");
	rule = warm(10, SECOND, 0, 0);
	is(shmlimit_rule_set(l, "bad", &rule), -EDOM, "a warm-up of 0 is refused");
	rule = warm(10, SECOND, SECOND, 999);
	is(shmlimit_rule_set(l, "bad", &rule), -EINVAL, "a cold factor below 1 is refused");
	rule = warm(1, 60 * SECOND, SECOND, 0);
	is(shmlimit_rule_set(l, "bad", &rule), -ERANGE, "a warm-up that is shorter than a token is refused");
	rule = warm(10, SECOND, (uint64_t)1 << 61, 0);
	is(shmlimit_rule_set(l, "bad", &rule), -ERANGE, "a warm-up of decades is refused");
	rule = warm(10, (uint64_t)1 << 60, SECOND, 0);
	is(shmlimit_rule_set(l, "bad", &rule), -ERANGE, "a period of decades is refused");
	rule = warm(10, SECOND, SECOND, 0);
	rule.max_wait_ns = (uint64_t)1 << 60;
	is(shmlimit_rule_set(l, "bad", &rule), -ERANGE, "a longest wait of decades is refused");
	rule = warm((uint64_t)1 << 60, 1, SECOND, 0);
	is(shmlimit_rule_set(l, "bad", &rule), -ERANGE, "more tokens than can be counted are refused");
	rule = warm(10, 0, SECOND, 0);
	is(shmlimit_rule_set(l, "bad", &rule), -EDOM, "a period of 0 is refused");
	rule = warm(10, SECOND, SECOND, UINT32_MAX);
	is(shmlimit_rule_set(l, "bad", &rule), -EINVAL, "a cold factor above 1000 is refused");
	rule = warm(10, SECOND, SECOND, 0);
	rule.flags = SHMLIMIT_RULE_COUNT_REFUSED;
	is(shmlimit_rule_set(l, "bad", &rule), -EINVAL, "a flag of windows is refused");
	rule = warm(10, SECOND, SECOND, 0);
	rule.algorithm = SHMLIMIT_FUNNEL;
	rule.capacity = 10;
	is(shmlimit_rule_set(l, "bad", &rule), -EINVAL, "a funnel does not warm up");
	rule = warm(10, SECOND, SECOND, 0);
	rule.credit = 1;
	is(shmlimit_rule_set(l, "bad", &rule), -EINVAL, "a warm-up has no credit");
	is(shmlimit_rule_find(l, "bad"), -ESRCH, "nothing came of all that");
}

/* Any parameters and word: something comes out, and no more is stored than the capacity. */
static void wild(uint64_t seed)
{
	struct layout_params before = { 0 };
	struct rng rng = { seed };
	uint64_t wrong = 0;

	for (uint64_t i = 0; i < scaled(200000); i++) {
		struct layout_params params;
		struct funnel_time at;
		struct funnel funnel;

		for (size_t j = 0; j < sizeof(params) / sizeof(uint64_t); j++)
			((uint64_t *)(void *)&params)[j] = rng_draw(&rng) >> rng_below(&rng, 64);
		at = funnel_time(&params, rng_draw(&rng));
		funnel = warmup_refill(&params, rng_draw(&rng), at);
		warmup_take(&params, &funnel, rng_draw(&rng) >> rng_below(&rng, 64), at);
		wrong += funnel.quota > params.capacity;
		warmup_refund(&params, &funnel, rng_draw(&rng) >> rng_below(&rng, 64), at);
		wrong += funnel.quota > params.capacity;
		warmup_convert(&before, rng_draw(&rng), &params, rng_draw(&rng));
		before = params;
	}
	is(wrong, 0, "no bits of parameters and word store more than the capacity");
}

int main(void)
{
	uint64_t seed = rng_seed();

	l = unit_create("warmup", NULL);
	as_guava_tests();
	by_hand();
	against_oracle(seed);
	sums_are_guavas();
	refund_across_the_debt();
	long_debt_is_kept();
	live();
	in_debt_when_the_store_shrinks();
	wrong_rules();
	wild(seed);
	is(shmlimit_verify(unit_name, NULL, 0), 0, "the segment is sound");
	shmlimit_close(l);
	return tap_done();
}
