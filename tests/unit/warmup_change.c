/*
 * warmup_change: a WARMUP rule that changes keeps the part of its store that is stored, and the time of its debt, as
 * setRate() of Guava's RateLimiter does.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <stdlib.h>
#include <sys/mman.h>

#include "../rng.h"
#include "guava.h"
#include "unit.h"

#include "generation.h"
#include "limiter.h"
#include "save.h"
#include "warmup.h"

#define T0 (1000000 * SECOND)
#define MS (SECOND / 1000)

static struct shmlimit *l;
static struct shmlimit_result r;

static struct shmlimit_rule warm(uint64_t count, uint64_t warmup_ns, uint32_t cold_factor_milli)
{
	return (struct shmlimit_rule){ .struct_size = sizeof(struct shmlimit_rule),
		                       .algorithm = SHMLIMIT_WARMUP,
		                       .refill = count,
		                       .period_ns = SECOND,
		                       .warmup_ns = warmup_ns,
		                       .cold_factor_milli = cold_factor_milli,
		                       .max_wait_ns = 3600 * SECOND };
}

/* ---- What Guava's tests list ---- */

#define WAITS 11

/* Waits in hundredths of a second. The idle time is a warm-up, and what the last request cost. */
struct listed {
	uint64_t rate, new_rate;
	uint32_t cold_factor_milli;
	unsigned cold[8], before[3], after[5], cold_again[WAITS];
};

static unsigned wrong_waits(int id, uint64_t *now_ns, const unsigned *want, size_t n)
{
	unsigned wrong = 0;

	for (size_t i = 0; i < n; i++) {
		int answer = shmlimit_reserve(at_time(l, *now_ns), id, "k", 1, 1, UINT64_MAX, &r);
		double off = (double)r.wait_ns / 1e9 - want[i] / 100.0;

		*now_ns += r.wait_ns;
		if (answer == SHMLIMIT_ALLOWED && fabs(off) < 0.00501)
			continue;
		wrong++;
		diag("request %zu waits %" PRIu64 " ns, Guava's %u hundredths of a second", i, r.wait_ns, want[i]);
	}
	return wrong;
}

/* testWarmUpAndUpdate and testWarmUpAndUpdateWithColdFactor of RateLimiterTest: 4 s to warm up. */
static void as_guava_tests(void)
{
	static const struct listed all[] = {
		{ 2,
		  4,
		  3000,
		  { 0, 138, 113, 88, 63, 50, 50, 50 },
		  { 0, 138, 113 },
		  { 88, 34, 28, 25, 25 },
		  { 0, 72, 66, 59, 53, 47, 41, 34, 28, 25, 25 } },
		{ 5,
		  10,
		  10000,
		  { 0, 175, 126, 76, 30, 20, 20, 20 },
		  { 0, 175, 126 },
		  { 76, 20, 10, 10, 10 },
		  { 0, 94, 81, 69, 57, 44, 32, 20, 10, 10, 10 } },
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		const struct listed *g = &all[i];
		struct shmlimit_rule rule = warm(g->rate, 4 * SECOND, g->cold_factor_milli);
		int id = unit_rule_at(l, "guava", rule, T0);
		uint64_t now_ns = T0;
		unsigned wrong = wrong_waits(id, &now_ns, g->cold, 8);

		now_ns += 4 * SECOND + SECOND / g->rate;
		wrong += wrong_waits(id, &now_ns, g->before, 3);
		rule.refill = g->new_rate;
		unit_rule_at(l, "guava", rule, now_ns);
		wrong += wrong_waits(id, &now_ns, g->after, 5);
		now_ns += 4 * SECOND + SECOND / g->new_rate;
		wrong += wrong_waits(id, &now_ns, g->cold_again, WAITS);
		is(wrong, 0,
		   "the rate becomes %" PRIu64 " a second instead of %" PRIu64
		   ", and each wait is what Guava's test lists, to a hundredth of a second",
		   g->new_rate, g->rate);
		shmlimit_rule_remove(l, "guava");
	}
}

/* 12 of 20 tokens are taken, and the rate is doubled. */
static void stored_is_scaled(void)
{
	struct shmlimit_rule rule = warm(5, 4 * SECOND, 3000);
	int id = unit_rule_at(l, "scaled", rule, T0);
	uint64_t owed_ns;

	shmlimit_take(at_time(l, T0), id, "k", 1, 12, &r);
	ok(r.limit == 20 && r.remaining == 8, "8 of 20 tokens are stored");
	shmlimit_peek(at_time(l, T0), id, "k", 1, 1, &r);
	owed_ns = r.retry_after_ns;
	rule.refill = 10;
	unit_rule_at(l, "scaled", rule, T0);
	shmlimit_peek(at_time(l, T0), id, "k", 1, 1, &r);
	ok(r.limit == 40 && r.remaining == 16, "at twice the rate 16 of 40 are");
	ok(r.retry_after_ns >= owed_ns && r.retry_after_ns - owed_ns < MS, "the debt is the same time");
	for (int i = 0; i < 1000; i++) {
		rule.refill = i % 2 == 0 ? 7 : 5;
		unit_rule_at(l, "scaled", rule, T0);
	}
	shmlimit_peek(at_time(l, T0), id, "k", 1, 1, &r);
	ok(r.limit == 20 && r.remaining >= 7, "a thousand changes up and down lose no token");
	shmlimit_rule_remove(l, "scaled");
}

/* ---- Random changes against floating point ---- */

/* Permits and seconds in the slot of the rule's only key, which is in the new table. */
static struct oracle stands(int id, const struct layout_params *params, uint64_t now_ns)
{
	struct funnel_time at = funnel_time(params, now_ns);
	struct generation tables;

	if (!generation_read(l, &tables))
		bail("no table");
	for (uint64_t i = 0; i < tables.now.lines * SLOTS_PER_LINE; i++) {
		const struct layout_slot *slot = &tables.now.slots[i];
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

/* A rule that can be set. */
static struct shmlimit_rule some_rule(struct rng *rng, struct layout_params *params)
{
	for (;;) {
		struct shmlimit_rule rule = warm(1 + rng_below(rng, (uint64_t)1 << rng_below(rng, 12)),
		                                 MS * (100 + rng_below(rng, (uint64_t)1 << (4 + rng_below(rng, 14)))),
		                                 (uint32_t)(1000 + rng_below(rng, 9000)));

		if (warmup_compile(&rule, params) == 0)
			return rule;
	}
}

static void save_and_load(uint64_t now_ns)
{
	const struct rebase given = { .now_ns = now_ns };
	int fd = memfd_create("saved", MFD_CLOEXEC);
	struct shmlimit *loaded;

	if (fd < 0 || save(l, fd, when_given(now_ns)) != 0)
		bail("save");
	lseek(fd, 0, SEEK_SET);
	shmlimit_close(l);
	shmlimit_destroy(unit_name);
	if (load(unit_name, fd, 0, &given, &loaded) != 0)
		bail("load");
	close(fd);
	l = loaded;
}

enum on_the_way { NOTHING, SAVED_BEFORE, SAVED_AFTER, GROWN_BEFORE, GROWN_AFTER, WAYS };

/* One acquire, as the oracle's; the oracle then continues from what the slot has. Returns the error as a part of what is allowed. */
static double acquire(struct oracle *o, int id, const struct layout_params *params, uint64_t cost, uint64_t *now_ns,
                      double allowed)
{
	double want = oracle_acquire(o, (double)(*now_ns - T0) / 1e9, (double)cost), error;
	struct oracle ours;

	if (shmlimit_reserve(at_time(l, *now_ns), id, "k", 1, cost, UINT64_MAX, &r) != SHMLIMIT_ALLOWED)
		return INFINITY;
	ours = stands(id, params, *now_ns);
	error = fmax(fabs((double)r.wait_ns / 1e9 - want), fabs(ours.next_free - o->next_free));
	error = fmax(error, fabs(ours.stored - o->stored) * o->cold);
	o->stored = ours.stored;
	o->next_free = ours.next_free;
	*now_ns += r.wait_ns;
	return error / allowed;
}

/* BOUND: what is rounded: what is stored, the wait, what was idle, by the old rule and by the new one. */
#define LOST 6

static void against_oracle(uint64_t seed)
{
	struct rng rng = { seed };
	uint64_t off = 0, changes = 0, up = 0, half = 0, ways[WAYS] = { 0 };
	double worst = 0;

	for (uint64_t round = 0; round < 5 + scaled(60); round++) {
		struct layout_params params = { 0 };
		struct shmlimit_rule rule = some_rule(&rng, &params);
		struct oracle o = oracle_of(&rule);
		uint64_t now_ns = T0;
		int id;

		shmlimit_close(l);
		l = unit_create("warmup_change",
		                &(struct shmlimit_options){ .struct_size = sizeof(struct shmlimit_options),
		                                            .slots = 16,
		                                            .slots_max = 1024 });
		id = unit_rule_at(l, "random", rule, now_ns);
		for (int change = 0; change < 6; change++) {
			double error = 0, roundings = ldexp(o.cold, -(int)params_unit_bits(&params)) + 2e-9;
			enum on_the_way way = rng_below(&rng, WAYS);
			struct shmlimit_range range = { .struct_size = sizeof(range) };
			struct layout_params old = params;
			double unit = ldexp(1 / o.max, -(int)params_unit_bits(&params));

			shmlimit_rule_range(l, id, &range);
			roundings += (double)range.resolution_ps / 1e12;
			for (int i = 0; i < 5; i++) {
				error = fmax(error,
				             acquire(&o, id, &params, 1 + rng_below(&rng, 1 + (uint64_t)(o.max / 4)),
				                     &now_ns, LOST * roundings));
				now_ns += rng_below(&rng, rule.warmup_ns / 4);
			}
			off += error > 1;
			if (way == SAVED_BEFORE)
				save_and_load(now_ns);
			if (way == GROWN_BEFORE)
				(void)shmlimit_grow(at_time(l, now_ns), 32u << change);
			rule = some_rule(&rng, &params);
			/* This rule takes the place of `old`. */
			up += params.capacity > old.capacity;
			half += o.stored > 0.1 * o.max && o.stored < 0.9 * o.max;
			id = unit_rule_at(l, "random", rule, now_ns);
			oracle_change(&o, (double)(now_ns - T0) / 1e9, &rule);
			if (way == SAVED_AFTER)
				save_and_load(now_ns);
			if (way == GROWN_AFTER)
				(void)shmlimit_grow(at_time(l, now_ns), 32u << change);
			shmlimit_rule_range(l, id, &range);
			roundings = ldexp(o.cold, -(int)params_unit_bits(&params)) + unit * o.max * o.cold +
			            (double)range.resolution_ps / 1e12 + roundings;
			error = acquire(&o, id, &params, 1, &now_ns, LOST * roundings);
			if (error > 1)
				diag("change %d, way %d: %g of what is allowed", change, (int)way, error);
			worst = fmax(worst, error);
			off += error > 1;
			changes++;
			ways[way]++;
		}
	}
	is(off, 0, "%" PRIu64 " random changes of rate, warm-up and cold factor do as Guava's description says",
	   changes);
	ok(up > 0 && up < changes && half > 0, "limits went up and down, with part of the store stored");
	ok(ways[SAVED_BEFORE] > 0 && ways[SAVED_AFTER] > 0 && ways[GROWN_BEFORE] > 0 && ways[GROWN_AFTER] > 0,
	   "some keys were saved and loaded, and some tables grown, before the change and after it");
	diag("worst error %.3f of what is allowed", worst);
}

int main(void)
{
	uint64_t seed = rng_seed();

	l = unit_create("warmup_change", NULL);
	as_guava_tests();
	stored_is_scaled();
	against_oracle(seed);
	is(shmlimit_verify(unit_name, NULL, 0), 0, "the segment is sound");
	shmlimit_close(l);
	return tap_done();
}
