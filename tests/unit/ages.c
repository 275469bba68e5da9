/*
 * ages: time does not come round (I8). An entry that is over, and was left alone for any time up to ten years, answers as a
 * key that was never used: for each algorithm, from the smallest to the largest capacity and period, over random jumps and
 * over those at which a word's time comes round. In between other keys take, the table grows, rules are added; and calls that
 * take of the key are denied by another limit, or undone: what they give back is no older than what a sweep found to be over.
 *
 * SEED=n repeats a run; TEST_SCALE=n makes it n times as long.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "../rng.h"
#include "unit.h"
#include "unit_cells.h"

#include "limiter.h"
#include "ring.h"
#include "sweep.h"

#define DAY (86400 * SECOND)
#define TEN_YEARS (10 * 366 * DAY)
#define MS (SECOND / 1000)
#define CELLS 64u

static const struct shmlimit_rule rules[] = {
	{ .algorithm = SHMLIMIT_FUNNEL, .capacity = 1, .refill = 1, .period_ns = MS },
	{ .algorithm = SHMLIMIT_FUNNEL, .capacity = 5, .refill = 5, .period_ns = 60 * SECOND },
	{ .algorithm = SHMLIMIT_FUNNEL, .capacity = 1000000, .refill = 1000000, .period_ns = SECOND },
	{ .algorithm = SHMLIMIT_FUNNEL, .capacity = 436563961, .refill = 3, .period_ns = 1000000 },
	{ .algorithm = SHMLIMIT_FUNNEL, .capacity = (uint64_t)1 << 48, .refill = 100000000000, .period_ns = SECOND },
	{ .algorithm = SHMLIMIT_FUNNEL, .capacity = 12, .refill = 1, .period_ns = 30 * DAY },
	{ .algorithm = SHMLIMIT_FUNNEL, .capacity = 1, .refill = 1, .period_ns = 40000 * DAY },
	{ .algorithm = SHMLIMIT_FUNNEL, .capacity = 3, .refill = 1, .period_ns = SECOND, .max_wait_ns = 400 * DAY },
	{ .algorithm = SHMLIMIT_WARMUP, .refill = 10, .period_ns = SECOND, .warmup_ns = 60 * SECOND },
	{ .algorithm = SHMLIMIT_WARMUP, .refill = 1, .period_ns = 60 * SECOND, .warmup_ns = DAY, .max_wait_ns = DAY },
	{ .algorithm = SHMLIMIT_WINDOW, .capacity = 1, .period_ns = MS },
	{ .algorithm = SHMLIMIT_WINDOW, .capacity = 7, .period_ns = 60 * SECOND },
	{ .algorithm = SHMLIMIT_WINDOW, .capacity = CELLS, .period_ns = DAY, .max_wait_ns = DAY },
	{ .algorithm = SHMLIMIT_WINDOW, .capacity = 2, .period_ns = 1000 * DAY },
	{ .algorithm = SHMLIMIT_LEASE, .capacity = 1, .refill = 1, .period_ns = SECOND },
	{ .algorithm = SHMLIMIT_LEASE, .capacity = 100, .refill = 100, .period_ns = SECOND },
	{ .algorithm = SHMLIMIT_LEASE, .capacity = SHMLIMIT_LEASE_CAPACITY_MAX, .refill = 1, .period_ns = MS },
	{ .algorithm = SHMLIMIT_COUNTER, .capacity = 1, .period_ns = MS },
	{ .algorithm = SHMLIMIT_COUNTER, .capacity = 0, .period_ns = 0 },
	{ .algorithm = SHMLIMIT_COUNTER, .capacity = 10000000000, .period_ns = DAY },
	{ .algorithm = SHMLIMIT_COUNTER, .capacity = 100000000000, .period_ns = 60 * SECOND },
	{ .algorithm = SHMLIMIT_COUNTER, .capacity = 1000000000000, .period_ns = 3600 * SECOND },
	{ .algorithm = SHMLIMIT_COUNTER, .capacity = (uint64_t)1 << 48, .period_ns = SECOND },
	{ .algorithm = SHMLIMIT_COUNTER, .capacity = (uint64_t)1 << 48, .period_ns = 1000 * DAY },
	{ .algorithm = SHMLIMIT_HOLD, .capacity = 1, .period_ns = MS },
	{ .algorithm = SHMLIMIT_HOLD, .capacity = 3, .period_ns = 10 * SECOND },
	{ .algorithm = SHMLIMIT_HOLD, .capacity = CELLS, .period_ns = 200 * DAY },
	{ .algorithm = SHMLIMIT_GCRA, .capacity = 1, .refill = 1, .period_ns = MS },
	{ .algorithm = SHMLIMIT_GCRA, .capacity = 5, .refill = 5, .period_ns = 60 * SECOND, .max_wait_ns = DAY },
	{ .algorithm = SHMLIMIT_GCRA, .capacity = 12, .refill = 1, .period_ns = 30 * DAY },
};

static const char *const names[] = { "FUNNEL", "WARMUP", "WINDOW", "LEASE", "COUNTER", "HOLD", "GCRA" };

static struct shmlimit *l;
static struct rng rng;
static struct shmlimit_range range;
static int id, other;
static const struct shmlimit_rule *rule;
static uint64_t capacity;

static void begin(uint64_t now_ns)
{
	struct shmlimit_options options = { .struct_size = sizeof(options), .slots = 64, .slots_max = 4096, .rules = 3 };
	struct shmlimit_rule mine = *rule, other_rule = { .struct_size = sizeof(mine), .capacity = 2, .refill = 1 };

	l = unit_create("ages", &options);
	mine.struct_size = sizeof(mine);
	other_rule.period_ns = SECOND;
	other = shmlimit_rule_set(at_time(l, now_ns), "other", &other_rule);
	id = shmlimit_rule_set(at_time(l, now_ns), "rule", &mine);
	if (id < 0 || other < 0)
		bail("rule_set: %s", shmlimit_strerror(id));
	range = (struct shmlimit_range){ .struct_size = sizeof(range) };
	if (shmlimit_rule_range(l, id, &range) != 0 || shmlimit_rule_get(l, id, &mine) != 0)
		bail("rule_get");
	capacity = mine.capacity;
}

/* Use all that a key has. Returns when that is over, at the latest. */
static uint64_t spend(uint64_t key, uint64_t now_ns)
{
	struct shmlimit_place hold = { .struct_size = sizeof(hold) };
	struct shmlimit_result r = { 0 };

	if (rule->algorithm == SHMLIMIT_HOLD)
		for (uint64_t i = 0; i < rule->capacity; i++)
			shmlimit_enter(at_time(l, now_ns), id, &key, sizeof(key), &hold, &r);
	else if (rule->algorithm == SHMLIMIT_LEASE)
		shmlimit_lease_deposit(at_time(l, now_ns), id, &key, sizeof(key), capacity, 0, 0,
		                       1 + rng_below(&rng, 20 * DAY), &r);
	else if (rule->algorithm == SHMLIMIT_WARMUP)
		shmlimit_charge(at_time(l, now_ns), id, &key, sizeof(key), 1 + rng_below(&rng, capacity), &r);
	else
		shmlimit_take(at_time(l, now_ns), id, &key, sizeof(key), capacity, &r);
	if (rule->max_wait_ns != 0)
		shmlimit_reserve(at_time(l, now_ns), id, &key, sizeof(key), 1, UINT64_MAX, &r);
	shmlimit_peek(at_time(l, now_ns), id, &key, sizeof(key), 0, &r);
	return now_ns + r.reset_after_ns + (range.resolution_ps + 999) / 1000;
}

/* A process was killed after its swap, before it wrote the cells: the time of an admission is in the word alone. */
static void lose_cells(void)
{
	struct layout_slot *slots = l->tables[0].slots;

	if (rule->algorithm != SHMLIMIT_WINDOW)
		return;
	for (uint64_t i = 0; i < l->tables[0].lines * SLOTS_PER_LINE; i++)
		if (slots[i].tag != 0)
			memset(unit_cells(l, &slots[i]), 0, 2 * rule->capacity * sizeof(uint64_t));
}

struct answers {
	int peek, take, more;
	struct shmlimit_result peeked, taken;
	int64_t count;
};

/* What a key has, all of it: by looking, then by taking. */
static struct answers ask(uint64_t key, uint64_t now_ns, int looks)
{
	struct shmlimit_lease lease = { .struct_size = sizeof(lease) };
	struct shmlimit_place hold = { .struct_size = sizeof(hold) };
	struct shmlimit_count count = { .struct_size = sizeof(count) };
	struct answers a;

	memset(&a, 0, sizeof(a));
	if (looks) {
		a.peek = shmlimit_peek(at_time(l, now_ns), id, &key, sizeof(key), capacity, &a.peeked);
		if (rule->algorithm == SHMLIMIT_COUNTER) {
			shmlimit_count(
				at_time(l, now_ns), id, &key, sizeof(key),
				&(struct shmlimit_count_request){ .struct_size = sizeof(struct shmlimit_count_request),
			                                          .n = 0,
			                                          .bound = INT64_MAX },
				&count);
			a.count = count.count;
		}
	}
	if (rule->algorithm == SHMLIMIT_HOLD) {
		a.take = shmlimit_enter(at_time(l, now_ns), id, &key, sizeof(key), &hold, &a.taken);
	} else if (rule->algorithm == SHMLIMIT_LEASE) {
		/* Whether something is known of the key's rate is no answer. */
		a.take = shmlimit_lease_take(
			at_time(l, now_ns), id, &key, sizeof(key),
			&(struct shmlimit_lease_request){ .struct_size = sizeof(struct shmlimit_lease_request),
		                                          .cost = 1,
		                                          .lease_ns = SECOND,
		                                          .claim_ns = SECOND },
			&lease, &a.taken);
	} else {
		a.take = shmlimit_take(at_time(l, now_ns), id, &key, sizeof(key), capacity, &a.taken);
		a.more = shmlimit_take(at_time(l, now_ns), id, &key, sizeof(key), 1, NULL);
	}
	return a;
}

/* Of lengths of all orders; or at which a word's time comes round; or just over. */
static uint64_t jump(uint64_t least)
{
	uint64_t ns;

	switch (rng_below(&rng, 6)) {
	case 0:
	case 5:
		ns = range.back_ns / 4 + rng_below(&rng, range.back_ns);
		break;
	case 1:
		ns = range.back_ns + range.ahead_ns - rng_below(&rng, rule->period_ns + 2);
		break;
	case 2:
		ns = least;
		break;
	case 3:
		ns = ((uint64_t)1 << (40 + rng_below(&rng, 19))) - rng_below(&rng, rule->period_ns + 2);
		break;
	default:
		ns = rng_below(&rng, TEN_YEARS) >> rng_below(&rng, 40);
	}
	if ((int64_t)ns < 0 || ns > TEN_YEARS)
		ns = rng_below(&rng, TEN_YEARS);
	return ns;
}

static void in_between(uint64_t now_ns)
{
	struct shmlimit_rule more = { .struct_size = sizeof(more), .algorithm = SHMLIMIT_COUNTER };
	struct shmlimit_result r;
	uint64_t key = rng_draw(&rng);

	switch (rng_below(&rng, 6)) {
	case 0:
		(void)shmlimit_grow(at_time(l, now_ns), 128u << rng_below(&rng, 3));
		break;
	case 1:
		more.capacity = (uint64_t)1 << (26 + rng_below(&rng, 23));
		more.period_ns = MS << rng_below(&rng, 30);
		(void)shmlimit_rule_set(at_time(l, now_ns), "more", &more);
		break;
	case 2:
		for (unsigned i = 0; i < 20; i++, key++)
			shmlimit_take(at_time(l, now_ns), other, &key, sizeof(key), 1, &r);
		break;
	case 3:
		spend(key | 1, now_ns);
		break;
	case 4:
		shmlimit_peek(at_time(l, now_ns), other, &key, sizeof(key), 1, &r);
		break;
	default:
		break;
	}
}

/* All or none of the key, once or more often, and of a limit that denies. That leaves the key as it was. */
static void ask_in_vain(uint64_t key, uint64_t now_ns)
{
	const struct shmlimit_limit own = { .struct_size = sizeof(own), .capacity = 3, .refill = 1, .period_ns = MS };
	struct shmlimit_request all[4];
	size_t n = 1 + rng_below(&rng, 3);
	uint64_t any = 1;
	int answer;

	for (size_t i = 0; i < n; i++)
		all[i] = (struct shmlimit_request){
			.rule = id,
			.key = &key,
			.key_len = sizeof(key),
			.cost = rule->algorithm == SHMLIMIT_HOLD ? 1 : 1 + rng_below(&rng, capacity / n + 1),
			.limit = rule->algorithm == SHMLIMIT_GCRA && rng_below(&rng, 2) == 0 ? &own : NULL,
		};
	all[n] = (struct shmlimit_request){ .rule = other, .key = &any, .key_len = sizeof(any), .cost = 3 };
	answer = shmlimit_take_all(at_time(l, now_ns), all, n + 1, NULL, NULL);
	if (answer != SHMLIMIT_DENIED)
		bail("a limit of 2 gives 3: %s", shmlimit_strerror(answer));
}

/* A reservation that is undone. Returns when it is over, at the latest: a count's time has begun, a warm-up is warmer. */
static uint64_t reserve_and_undo(uint64_t key, uint64_t now_ns)
{
	struct shmlimit_result r = { 0 };

	if (rule->algorithm == SHMLIMIT_HOLD)
		return now_ns;
	if (shmlimit_reserve(at_time(l, now_ns), id, &key, sizeof(key), 1, UINT64_MAX, NULL) == SHMLIMIT_ALLOWED)
		shmlimit_refund(at_time(l, now_ns), id, &key, sizeof(key), 1, NULL);
	shmlimit_peek(at_time(l, now_ns), id, &key, sizeof(key), 0, &r);
	return now_ns + r.reset_after_ns + (range.resolution_ps + 999) / 1000;
}

static uint64_t later(uint64_t a_ns, uint64_t b_ns)
{
	return a_ns > b_ns ? a_ns : b_ns;
}

static int same(const struct answers *a, const struct answers *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

/* One history. Returns whether the key was as good as new. */
static int is_forgotten(void)
{
	uint64_t start = SECOND + (rng_draw(&rng) >> (3 + rng_below(&rng, 40))), now_ns = start, over_ns, key = 42,
		 fresh;
	unsigned jumps = 1 + (unsigned)rng_below(&rng, 4);
	int looks = rng_below(&rng, 3) != 0;
	struct answers old, new;

	begin(start);
	over_ns = spend(key, start);
	if (rng_below(&rng, 2) == 0)
		lose_cells();
	for (unsigned i = 0; i < jumps; i++) {
		now_ns += jump(over_ns - start);
		if (i + 1 >= jumps || now_ns - start >= TEN_YEARS)
			continue;
		if (rng_below(&rng, 2) == 0)
			in_between(now_ns);
		switch (rng_below(&rng, 4)) {
		case 0:
		case 1:
			ask_in_vain(key, now_ns);
			break;
		case 2:
			over_ns = later(over_ns, reserve_and_undo(key, now_ns));
			break;
		default:
			break;
		}
	}
	now_ns = later(now_ns, over_ns);
	fresh = 1000 + rng_draw(&rng) % 1000000 * 2;
	/* Either first: the first one sweeps. */
	if (rng_below(&rng, 2) == 0) {
		old = ask(key, now_ns, looks);
		new = ask(fresh, now_ns, looks);
	} else {
		new = ask(fresh, now_ns, looks);
		old = ask(key, now_ns, looks);
	}
	shmlimit_close(l);
	if (!same(&old, &new))
		diag("left alone for %" PRIu64 " ns, over for %" PRIu64 ": peek %d take %d more %d remaining %" PRIu64
		     " retry %" PRIu64 ", a new key: %d %d %d %" PRIu64 " %" PRIu64,
		     now_ns - start, now_ns - over_ns, old.peek, old.take, old.more, old.taken.remaining,
		     old.taken.retry_after_ns, new.peek, new.take, new.more, new.taken.remaining,
		     new.taken.retry_after_ns);
	return same(&old, &new);
}

/*
 * The clock steps back by years. Then other keys take, which sweeps; and the key is left alone. After the longest time for which
 * its rule can deny from now on it is as good as new. HOLD's places are renewed by what looks at them: see hold.h.
 */
static int is_forgiven(void)
{
	uint64_t start = TEN_YEARS + (rng_draw(&rng) >> (4 + rng_below(&rng, 20))), key = 42, any = 3;
	uint64_t now_ns = start - 3 * 366 * DAY - rng_below(&rng, 7 * 366 * DAY), own_ns;
	struct answers old, new;

	begin(start);
	own_ns = 3 * range.refill_ns + 2 * rule->max_wait_ns + 2 * SECOND +
	         27 * DAY * (rule->algorithm == SHMLIMIT_LEASE);
	spend(key, start);
	if (rng_below(&rng, 4) == 0)
		lose_cells();
	shmlimit_take(at_time(l, now_ns), other, &any, sizeof(any), 1, NULL);
	now_ns += own_ns + jump(0);
	old = ask(key, now_ns, 1);
	new = ask(key + 1, now_ns, 1);
	shmlimit_close(l);
	return same(&old, &new);
}

/* Any bits in the mark lock no key out for longer than its rule does, and no call takes for ever (I7). */
static int is_bounded(void)
{
	uint64_t start = SECOND + (rng_draw(&rng) >> 4), over_ns, key = 42;
	struct shmlimit_problem problem;
	struct answers old, new;
	int wrong = 0;

	begin(start);
	over_ns = spend(key, start);
	for (unsigned i = 0; i < 3; i++) {
		uint64_t *words[] = { &l->header->swept.ns, &l->header->swept.round, &l->header->sweep.ns,
			              &l->header->sweep.cursor, &l->header->sweep_after_ns };

		*words[rng_below(&rng, 5)] = rng_draw(&rng) >> rng_below(&rng, 64);
	}
	old = ask(key, over_ns, 1);
	new = ask(key + 1, over_ns, 1);
	wrong = !same(&old, &new);
	l->header->sweep_after_ns = SWEEP_AFTER_MAX_NS + 1;
	wrong += shmlimit_verify(unit_name, &problem, 1) != 1 || shmlimit_repair(unit_name, &problem, 1) != 1 ||
	         shmlimit_verify(unit_name, &problem, 1) != 0;
	shmlimit_close(l);
	return wrong == 0;
}

int main(void)
{
	rng.state = rng_seed();
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		uint64_t wrong = 0;

		rule = &rules[i];
		for (uint64_t n = scaled(300); n > 0 && wrong < 3; n--)
			wrong += !is_forgotten();
		is(wrong, 0, "%s of %" PRIu64 " in %" PRIu64 " ns: what is over answers as a new key, for ten years",
		   names[rule->algorithm], rule->capacity, rule->period_ns);
		wrong = 0;
		for (uint64_t n = scaled(50); n > 0; n--)
			wrong += rule->algorithm != SHMLIMIT_HOLD && rule->period_ns < 10 * TEN_YEARS && !is_forgiven();
		is(wrong, 0,
		   "%s of %" PRIu64 " in %" PRIu64 " ns: after a step back of years it denies for its own time",
		   names[rule->algorithm], rule->capacity, rule->period_ns);
		for (uint64_t n = scaled(50); n > 0; n--)
			wrong += !is_bounded();
		is(wrong, 0, "%s of %" PRIu64 " in %" PRIu64 " ns: any bits in the mark of the sweep lock no key out",
		   names[rule->algorithm], rule->capacity, rule->period_ns);
	}
	return tap_done();
}
