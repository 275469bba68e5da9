/*
 * raise: limits that change, all ordered pairs of 40 of them, for each algorithm that has a limit here. The law: a key never
 * owes more than one time to full of the limit that it is asked with. And raising a limit denies nothing that the old one
 * would have allowed: beside the rule that changes, one that does not is asked at the same times.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "unit.h"

#define MINUTE (60 * SECOND)
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)
#define T0 (10000 * DAY)

static struct shmlimit *l;
static struct shmlimit_result r;

static const struct {
	uint64_t capacity, refill, period_ns;
} limits[] = {
	{ 1, 1, SECOND / 1000 }, { 13, 13, SECOND / 1000 },
	{ 1, 1, SECOND },        { 3, 3, SECOND },
	{ 5, 5, SECOND },        { 7, 7, SECOND },
	{ 10, 10, SECOND },      { 20, 10, SECOND },
	{ 100, 100, SECOND },    { 997, 997, SECOND },
	{ 1000, 1000, SECOND },  { 5, 1, SECOND },
	{ 100, 1, SECOND },      { 1, 1, MINUTE },
	{ 2, 2, MINUTE },        { 5, 5, MINUTE },
	{ 5, 5, 90 * SECOND },   { 30, 30, MINUTE },
	{ 60, 60, MINUTE },      { 100, 100, MINUTE },
	{ 1000, 1000, MINUTE },  { 3, 11, MINUTE },
	{ 1, 1, HOUR },          { 5, 5, HOUR },
	{ 20, 20, HOUR },        { 100, 100, HOUR },
	{ 1000, 1000, HOUR },    { 500, 1000, HOUR },
	{ 10, 1000, HOUR },      { 1, 1, DAY },
	{ 5, 5, DAY },           { 24, 24, DAY },
	{ 100, 100, DAY },       { 1000, 1000, DAY },
	{ 997, 997, DAY },       { 10, 1, DAY },
	{ 3, 3, 30 * DAY },      { 100, 100, 30 * DAY },
	{ 1, 1, 365 * DAY },     { 365, 365, 365 * DAY },
};
#define LIMITS (sizeof(limits) / sizeof(limits[0]))

static const struct kind {
	const char *name;
	uint32_t algorithm;
	int by_call;  /* the limit comes with the call */
	int by_count; /* a capacity and a period */
	int keeps;    /* what a key has ends when it would have ended before the change */
} kinds[] = {
	{ "funnel", SHMLIMIT_FUNNEL, 0, 0, 0 }, { "gcra", SHMLIMIT_GCRA, 0, 0, 0 },
	{ "plans", SHMLIMIT_GCRA, 1, 0, 0 },    { "window", SHMLIMIT_WINDOW, 0, 1, 0 },
	{ "warmup", SHMLIMIT_WARMUP, 0, 0, 1 }, { "counter", SHMLIMIT_COUNTER, 0, 1, 1 },
	{ "hold", SHMLIMIT_HOLD, 0, 1, 1 },
};

/* A rule, and the limit that its calls bring. */
struct side {
	const struct kind *kind;
	const char *name;
	int id;
	struct shmlimit_limit limit;
};

static struct shmlimit_rule rule_of(const struct kind *kind, size_t i)
{
	struct shmlimit_rule rule = { .struct_size = sizeof(rule), .algorithm = kind->algorithm };

	if (kind->algorithm != SHMLIMIT_WARMUP)
		rule.capacity = limits[i].capacity;
	if (!kind->by_count)
		rule.refill = limits[i].refill;
	rule.period_ns = limits[i].period_ns;
	/* Of half its capacity it has the tokens that are stored: Guava's stored permits. */
	if (kind->algorithm == SHMLIMIT_WARMUP)
		rule.warmup_ns = limits[i].period_ns / limits[i].refill * limits[i].capacity * 2;
	return rule;
}

/* Returns 0 where the algorithm has no such limit. */
static int limit_with(struct side *side, size_t i, uint64_t now_ns)
{
	struct shmlimit_rule rule = rule_of(side->kind, i);

	side->limit = (struct shmlimit_limit){ .struct_size = sizeof(side->limit),
		                               .capacity = limits[i].capacity,
		                               .refill = limits[i].refill,
		                               .period_ns = limits[i].period_ns };
	if (side->kind->by_call)
		rule = (struct shmlimit_rule){ .struct_size = sizeof(rule), .algorithm = SHMLIMIT_GCRA };
	side->id = shmlimit_rule_set(at_time(l, now_ns), side->name, &rule);
	return side->id >= 0;
}

static int take(const struct side *side, uint64_t cost, uint64_t now_ns)
{
	struct shmlimit_count_request count = { .struct_size = sizeof(count),
		                                .n = (int64_t)cost,
		                                .bound = (int64_t)side->limit.capacity };
	struct shmlimit_place place = { .struct_size = sizeof(place) };

	if (side->kind->by_call)
		return by_limit(at_time(l, now_ns), SHMLIMIT_TAKE, side->id, "k", 1, cost, &side->limit, &r);
	if (side->kind->algorithm == SHMLIMIT_HOLD)
		return shmlimit_enter(at_time(l, now_ns), side->id, "k", 1, &place, &r);
	if (side->kind->algorithm == SHMLIMIT_COUNTER)
		return shmlimit_count(at_time(l, now_ns), side->id, "k", 1, &count, NULL);
	return shmlimit_take(at_time(l, now_ns), side->id, "k", 1, cost, &r);
}

/* How long one more is denied for. */
static uint64_t denied_ns(const struct side *side, uint64_t now_ns)
{
	int answer = side->kind->by_call
	                     ? by_limit(at_time(l, now_ns), SHMLIMIT_PEEK, side->id, "k", 1, 1, &side->limit, &r)
	                     : shmlimit_peek(at_time(l, now_ns), side->id, "k", 1, 1, &r);

	return answer == SHMLIMIT_DENIED ? r.retry_after_ns : 0;
}

/* One time to full. */
static uint64_t full_ns(const struct kind *kind, size_t i)
{
	__extension__ typedef unsigned __int128 u128;

	if (kind->by_count)
		return limits[i].period_ns;
	return (uint64_t)(((u128)limits[i].capacity * limits[i].period_ns + limits[i].refill - 1) / limits[i].refill);
}

/* Is b at least a, at each time? */
static int is_raise(const struct kind *kind, size_t a, size_t b)
{
	__extension__ typedef unsigned __int128 u128;

	if (limits[b].capacity < limits[a].capacity)
		return 0;
	if (kind->by_count)
		return limits[b].period_ns <= limits[a].period_ns;
	/* A longer warm-up is a slower limit. */
	if (kind->algorithm == SHMLIMIT_WARMUP && full_ns(kind, b) > full_ns(kind, a))
		return 0;
	return (u128)limits[b].refill * limits[a].period_ns >= (u128)limits[a].refill * limits[b].period_ns;
}

/*
 * Is a wait within the time to full of b? A token of GCRA may cost a quarter of a nanosecond more; times of the others are
 * rounded to ticks, a window's to those of the period in which they were taken, too.
 */
static int is_within(const struct kind *kind, size_t a, size_t b, uint64_t wait_ns)
{
	uint64_t ticks_ns = kind->algorithm == SHMLIMIT_GCRA ? limits[b].capacity / 4
	                    : kind->algorithm == SHMLIMIT_WINDOW
	                            ? (full_ns(kind, a) + full_ns(kind, b)) / 100000000000 + 1
	                            : full_ns(kind, b) / 1000000;

	return wait_ns <= full_ns(kind, b) + ticks_ns + 2;
}

/* The first is used up, and changed some time later. Returns what was wrong. */
static unsigned change(const struct kind *kind, size_t a, size_t b, unsigned part, unsigned *raises)
{
	struct side stays = { .kind = kind, .name = "stays" }, changes = { .kind = kind, .name = "changes" };
	uint64_t at = T0, old_ns = full_ns(kind, a), new_ns = full_ns(kind, b), last;
	unsigned wrong = 0;

	if (!limit_with(&stays, a, at) || !limit_with(&changes, a, at))
		return 0;
	shmlimit_reset(l, stays.id, "k", 1);
	shmlimit_reset(l, changes.id, "k", 1);
	for (uint64_t i = 0; i < (kind->algorithm == SHMLIMIT_HOLD ? limits[a].capacity : 1); i++) {
		uint64_t cost = kind->algorithm == SHMLIMIT_WARMUP ? 1 : limits[a].capacity;

		if (take(&stays, cost, at) != SHMLIMIT_ALLOWED || take(&changes, cost, at) != SHMLIMIT_ALLOWED)
			return 1;
	}
	at += old_ns / 8 * part;
	if (!limit_with(&changes, b, at))
		return 0;
	*raises += (unsigned)is_raise(kind, a, b);
	last = at + (old_ns > new_ns ? old_ns : new_ns) + SECOND;
	/* Times that are dense at first. */
	for (uint64_t step = 1; at <= last; at += step, step = step * 3 / 2 + 1) {
		if (!kind->keeps)
			wrong += !is_within(kind, a, b, denied_ns(&changes, at));
		/* What the old one would not have allowed is not taken: later the new one would lack it. */
		if (is_raise(kind, a, b) && take(&stays, 1, at) == SHMLIMIT_ALLOWED)
			wrong += take(&changes, 1, at) != SHMLIMIT_ALLOWED;
	}
	return wrong;
}

static void changes_of(const struct kind *kind)
{
	unsigned wrong = 0, pairs = 0, raises = 0;

	for (size_t a = 0; a < LIMITS; a++)
		for (size_t b = 0; b < LIMITS; b++)
			for (unsigned part = 0; part < 8; part += 7) {
				unsigned more = change(kind, a, b, part, &raises);

				pairs++;
				if (more != 0 && wrong == 0)
					diag("%s: from %" PRIu64 " (%" PRIu64 " in %" PRIu64 " ns) to %" PRIu64
					     " (%" PRIu64 " in %" PRIu64 " ns) after %u eighths: %u faults",
					     kind->name, limits[a].capacity, limits[a].refill, limits[a].period_ns,
					     limits[b].capacity, limits[b].refill, limits[b].period_ns, part, more);
				wrong += more;
			}
	shmlimit_rule_remove(l, "stays");
	shmlimit_rule_remove(l, "changes");
	ok(raises > LIMITS, "%s: %u of the changes raise the limit", kind->name, raises);
	is(wrong, 0,
	   "%s: after %u changes no key owes more than the new limit's time to full, or is denied by a higher limit",
	   kind->name, pairs);
}

/* What was seen: a rule's own limit, raised from 1000 a day to 1000 an hour, beside a funnel; and 5 a day, and 5 an hour. */
static void seen(void)
{
	struct side gcra = { .kind = &kinds[1], .name = "own" }, funnel = { .kind = &kinds[0], .name = "beside" };
	struct side plans = { .kind = &kinds[2], .name = "bought" };

	limit_with(&gcra, 33, T0);
	limit_with(&funnel, 33, T0);
	take(&gcra, 1000, T0);
	take(&funnel, 1000, T0);
	limit_with(&gcra, 26, T0 + 50 * SECOND);
	limit_with(&funnel, 26, T0 + 50 * SECOND);
	is(take(&gcra, 1, T0 + 100 * SECOND), SHMLIMIT_ALLOWED,
	   "1000 a day, raised to 1000 an hour, are those of an hour");
	is(r.remaining, 26, "since the bucket was empty");
	is(take(&funnel, 1, T0 + 100 * SECOND), SHMLIMIT_ALLOWED, "a funnel allows it, too");
	is(r.remaining, 13, "with what came back since the change");
	limit_with(&plans, 30, T0);
	take(&plans, 5, T0);
	limit_with(&plans, 23, T0);
	is(take(&plans, 1, T0 + MINUTE), SHMLIMIT_DENIED, "5 a day are used up, and 5 an hour are bought");
	is(r.retry_after_ns, 11 * MINUTE, "one is there after a fifth of an hour");
}

int main(void)
{
	struct shmlimit_options options = { .struct_size = sizeof(options), .slots = 16, .rules = 8 };

	l = unit_create("raise", &options);
	seen();
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		changes_of(&kinds[i]);
	shmlimit_close(l);
	return tap_done();
}
