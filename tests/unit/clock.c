/*
 * clock: whatever the clock does, a key gets no more than its funnel holds and is never locked out for long.
 *
 * I8: idleness of any length, several processes' readings of one moment, steps back and forth, the wrap of the
 *	timestamp and of now_ns itself, a process that was stopped between reading the clock and deciding.
 * I1: none of these is an extra admission.
 * I7: nor is a slot with arbitrary bits, and no key waits for longer than its rule's time to full and the slack, by
 *	which another process's clock reading may be ahead.
 *
 * Promised of a clock that steps back: what was left in the funnel may be taken, and no more; the funnel goes on
 * refilling from the clock's new time. A step up to the slack, min(1 s, half the time to full), is taken for another
 * process's reading and waited for first. With a capacity of more than one token that is still within the time to full.
 *
 * Where the rule's state words have no quota, the tokens that came back in the repeated stretch of time are not
 * available until it is over: what is left is smaller by them, or nothing. A key that was idle for longer than the
 * timestamp reaches back may be found empty.
 *
 * The other algorithms, too: a clock that steps back gives no token, and locks no key out for longer than the time to
 * full, the longest debt and the slack.
 *
 * SEED=n repeats a run; TEST_SCALE=n makes it n times as long.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <time.h>

#include "draw.h"
#include "unit.h"

#include "atomic.h"
#include "funnel.h"
#include "limiter.h"

#define HOUR (3600 * SECOND)
#define DAY (24 * HOUR)
#define YEAR (365 * DAY)

typedef unsigned __int128 u128;

static struct shmlimit *l;

/* ---- The library's own clock is ours ---- */

static uint64_t clock_ns = 1000 * DAY;
static int stops;               /* how often the reader is stopped just after reading */
static void (*meanwhile)(void); /* what others do then */

int clock_gettime(clockid_t id, struct timespec *now)
{
	(void)id;
	now->tv_sec = (time_t)(clock_ns / SECOND);
	now->tv_nsec = (long)(clock_ns % SECOND);
	if (stops > 0) {
		stops--;
		meanwhile();
	}
	return 0;
}

/* ---- Rules ---- */

struct limit {
	const char *name;
	uint64_t capacity, count, period_ns;
	int id;
	uint64_t refill_ns, slack_ns, tick_ns;
	struct layout_params params;
};

static struct limit limits[] = {
	{ .name = "5/s", .capacity = 5, .count = 5, .period_ns = SECOND },
	{ .name = "3/s", .capacity = 3, .count = 3, .period_ns = SECOND },
	{ .name = "1/s", .capacity = 1, .count = 1, .period_ns = SECOND },
	{ .name = "30/60s", .capacity = 15, .count = 30, .period_ns = 60 * SECOND },
	{ .name = "100/day", .capacity = 100, .count = 100, .period_ns = DAY },
	{ .name = "1/day", .capacity = 1, .count = 1, .period_ns = DAY },
	{ .name = "1000/s", .capacity = 511, .count = 1000, .period_ns = SECOND },
	{ .name = "1/us", .capacity = 1, .count = 1, .period_ns = 1000 },
	{ .name = "1000000/s, burst 1000", .capacity = 1000, .count = 1000000, .period_ns = SECOND },
	{ .name = "1000000/s, burst 1000000", .capacity = 1000000, .count = 1000000, .period_ns = SECOND },
	{ .name = "125 MB/s, burst 10 MB", .capacity = 10000000, .count = 125000000, .period_ns = SECOND },
	{ .name = "150000000/60s", .capacity = 150000000, .count = 150000000, .period_ns = 60 * SECOND },
	{ .name = "1 GB/day", .capacity = 1000000000, .count = 1000000000, .period_ns = DAY },
	{ .name = "1/year, burst 10", .capacity = 10, .count = 1, .period_ns = YEAR },
	{ .name = "1/year", .capacity = 1, .count = 1, .period_ns = YEAR },
};

#define LIMITS (sizeof(limits) / sizeof(limits[0]))

/* Nanoseconds until n tokens have come back. */
static uint64_t due(const struct limit *limit, uint64_t n)
{
	return (uint64_t)(((u128)n * limit->period_ns + limit->count - 1) / limit->count);
}

/* Tokens that come back in this many nanoseconds. */
static uint64_t refilled(const struct limit *limit, uint64_t elapsed_ns)
{
	return (uint64_t)((u128)elapsed_ns * limit->count / limit->period_ns);
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Words without a quota: see lib/algorithm/funnel/funnel.h. */
static int has_quota(const struct limit *limit)
{
	return params_quota_bits(&limit->params) != 0;
}

static void define(void)
{
	for (size_t i = 0; i < LIMITS; i++) {
		struct shmlimit_range range = { .struct_size = sizeof(range) };
		struct limit *limit = &limits[i];
		struct shmlimit_rule rule;
		char name[16];

		snprintf(name, sizeof(name), "r%zu", i);
		limit->id = unit_rule(l, name, limit->capacity, limit->count, limit->period_ns);
		shmlimit_rule_range(l, limit->id, &range);
		limit->refill_ns = range.refill_ns;
		limit->slack_ns = least(SECOND, range.refill_ns / 2);
		limit->tick_ns = (range.resolution_ps + 999) / 1000;
		rule = (struct shmlimit_rule){ .capacity = limit->capacity,
			                       .refill = limit->count,
			                       .period_ns = limit->period_ns };
		funnel_compile(&rule, &limit->params);
	}
}

/* ---- One law after another, on one key ---- */

static const struct limit *limit; /* that is being tried */
static uint64_t key, wrong;
static struct shmlimit_result r;

static int expect(int holds, const char *law, uint64_t since, uint64_t at)
{
	if (!holds && ++wrong <= 3) {
		diag("%s: not so: %s; first %" PRIu64 ", then %" PRIu64, limit->name, law, since, at);
		diag("remaining %" PRIu64 " retry %" PRIu64 " reset %" PRIu64, r.remaining, r.retry_after_ns,
		     r.reset_after_ns);
	}
	return holds;
}

static int answered(int answer)
{
	if (answer != SHMLIMIT_ALLOWED && answer != SHMLIMIT_DENIED)
		bail("%s: %s", limit->name, shmlimit_strerror(answer));
	expect(r.remaining <= limit->capacity, "never more than the capacity", 0, 0);
	return answer;
}

static int take(uint64_t cost, uint64_t at)
{
	return answered(shmlimit_take(at_time(l, at), limit->id, &key, sizeof(key), cost, &r));
}

static uint64_t left(uint64_t at)
{
	answered(shmlimit_peek(at_time(l, at), limit->id, &key, sizeof(key), 0, &r));
	return r.remaining;
}

/* Take all there is, and see that it was. Returns how much. */
static uint64_t drain(uint64_t at)
{
	uint64_t all = left(at);

	expect(all <= limit->capacity && take(all, at) == SHMLIMIT_ALLOWED && take(1, at) == SHMLIMIT_DENIED,
	       "what remains can be taken, and no more at that moment", at, at);
	return all;
}

static void fresh(const struct limit *which)
{
	shmlimit_reset(l, SHMLIMIT_ALL_RULES, NULL, 0);
	limit = which;
	key = draw();
}

/* ---- Idleness ---- */

static void idle(void)
{
	static const uint64_t idle_ns[] = { SECOND, HOUR, DAY, YEAR };

	for (size_t i = 0; i < LIMITS; i++) {
		wrong = 0;
		for (size_t j = 0; j < 4; j++)
			for (uint64_t round = 0; round < scaled(200); round++) {
				uint64_t start = draw() >> 1, old, now = start + idle_ns[j], want;

				fresh(&limits[i]);
				old = up_to(limit->capacity);
				take(limit->capacity - old, start);
				want = least(limit->capacity, old + refilled(limit, idle_ns[j]));
				expect(left(now) == want, "what had refilled is there", start, now);
				expect(left(start + limit->refill_ns) == limit->capacity,
				       "it is full when it had the time to fill", start, now);
			}
		is(wrong, 0, "%s: after a second, an hour, a day, a year it is as full as it should be",
		   limits[i].name);
	}
}

static void idle_for_ages(void)
{
	wrong = 0;
	for (size_t i = 0; i < LIMITS; i++)
		for (uint64_t round = 0; round < scaled(200); round++) {
			uint64_t start = draw() >> 2, old, now = start + 10 * YEAR + up_to(200 * YEAR), full;

			fresh(&limits[i]);
			old = up_to(1) ? 0 : up_to(limit->capacity);
			take(limit->capacity - old, start);
			expect(left(now) == least(limit->capacity, old + refilled(limit, now - start)),
			       "what had refilled is there", start, now);
			full = now + limit->refill_ns + limit->slack_ns;
			drain(now);
			expect(left(full) == limit->capacity, "after a step the funnel is full in the time to fill",
			       start, full);
		}
	is(wrong, 0, "after 10 years and more a funnel is as full as it should be");
}

/* ---- One moment, read by five processes ---- */

/* Five ask at `base` as their clocks have it, in the order with this number, 0 to 119; and then a sixth. */
static void ask_in_order(uint64_t base, const int64_t spread[5], unsigned order)
{
	uint64_t reading[5], latest = 0;

	for (unsigned k = 0; k < 5; k++) {
		reading[k] = base + (uint64_t)spread[k];
		if (reading[k] > latest)
			latest = reading[k];
	}
	for (unsigned to_go = 5; to_go > 0; to_go--) {
		unsigned pick = order % to_go;

		order /= to_go;
		expect(take(1, reading[pick]) == SHMLIMIT_ALLOWED, "each of five is allowed", base, reading[pick]);
		reading[pick] = reading[to_go - 1];
	}
	for (unsigned k = 0; k < 5; k++)
		expect(take(1, base + (uint64_t)spread[k]) == SHMLIMIT_DENIED, "the sixth is denied", base, base);
	expect(left(latest + due(limit, 5)) == 5, "full again when all had the time to refill", base, latest);
}

static void together(void)
{
	static const int64_t spreads[][5] = {
		{ -50, -20, 0, 20, 50 },
		{ -1000000, -300000, 0, 500000, 1000000 },
		{ -1000000, -50, 0, 50, 1000000 },
		{ -1, -1, 0, 1, 1 },
		{ 0, 0, 0, 0, 0 },
	};
	struct limit five[] = {
		{ .name = "five a second", .capacity = 5, .count = 5, .period_ns = SECOND },
		{ .name = "five a day", .capacity = 5, .count = 5, .period_ns = DAY },
		{ .name = "five, one in 10 ms", .capacity = 5, .count = 1, .period_ns = SECOND / 100 },
	};

	for (size_t i = 0; i < sizeof(five) / sizeof(five[0]); i++) {
		char name[16];

		snprintf(name, sizeof(name), "five%zu", i);
		five[i].id = unit_rule(l, name, five[i].capacity, five[i].count, five[i].period_ns);
		wrong = 0;
		for (size_t j = 0; j < sizeof(spreads) / sizeof(spreads[0]); j++)
			for (unsigned round = 0; round < 3 * 120; round++) {
				uint64_t base = DAY + up_to(UINT64_MAX / 2);

				/* A key never seen; one whose funnel has filled just now; or a while ago. */
				fresh(&five[i]);
				if (round % 3 == 1)
					take(5, base - 1000000 - due(limit, 5));
				if (round % 3 == 2)
					take(5, base - HOUR - due(limit, 5));
				ask_in_order(base, spreads[j], round / 3);
			}
		is(wrong, 0, "%s: five at one moment are allowed and a sixth is not, in all orders of their clocks",
		   five[i].name);
	}
}

/* ---- Steps ---- */

/*
 * The funnel was changed at `then`, which left `old` tokens and a part of one, worth `content_ns` of refilling; now
 * the clock steps back by `step`.
 */
static void step_back(uint64_t then, uint64_t old, uint64_t content_ns, uint64_t step)
{
	uint64_t now = then - step, waited = least(step, limit->slack_ns), retry, admitted;

	if (has_quota(limit)) {
		expect(left(now) == old, "what was left is left", then, now);
	} else {
		uint64_t less = content_ns > step ? content_ns - step : 0;

		expect(left(now) <= refilled(limit, less) && left(now) >= refilled(limit, less - (less != 0)),
		       "what was left is left, except what refilled in the time that is to come again", then, now);
		old = r.remaining;
	}
	expect(drain(now) == old, "what is left after a step can be taken", then, now);
	expect(take(1, now) == SHMLIMIT_DENIED, "no more than what is left after a step can be taken", then, now);
	retry = r.retry_after_ns;
	expect(retry <= due(limit, 1) + waited, "the next token takes its time, and a step within the slack", then,
	       now);
	expect(retry <= limit->refill_ns + (limit->capacity == 1 ? waited : 0),
	       "that is no longer than the time to fill", then, now);
	expect(take(1, now + retry - 1) == SHMLIMIT_DENIED, "a nanosecond before it is not there", then, now);
	expect(take(1, now + retry) == SHMLIMIT_ALLOWED, "a token is there when the denial said", then, now);

	/* From here on it is an ordinary funnel. */
	admitted = old + 1;
	now += retry;
	for (int i = 0; i < 8; i++) {
		now += up_to(due(limit, 2));
		admitted += drain(now);
		expect(admitted <= refilled(limit, content_ns + now - (then - step) + limit->tick_ns),
		       "no more is admitted after the step than was left and refilled", then, now);
	}
	expect(left(now + limit->refill_ns) == limit->capacity, "the funnel fills in the time to fill after a step",
	       then, now);
}

static void stepping_back(void)
{
	static const uint64_t steps[] = { 1, 1000, 1000000, SECOND / 2, SECOND, 2 * SECOND, HOUR, DAY, 10 * DAY };

	for (size_t i = 0; i < LIMITS; i++) {
		wrong = 0;
		for (size_t j = 0; j < sizeof(steps) / sizeof(steps[0]); j++)
			for (uint64_t round = 0; round < scaled(200); round++) {
				uint64_t then = 11 * DAY + (draw() >> 1), old;

				fresh(&limits[i]);
				/* A key never seen, one with a part of a token, one whose funnel has filled. */
				if (round % 3 == 1)
					take(limit->capacity, then - up_to(limit->refill_ns));
				if (round % 3 == 2)
					take(limit->capacity, then - 20 * limit->refill_ns);
				old = left(then);
				if (old == 0)
					continue;
				old = up_to(1) ? 0 : up_to(old - 1);
				take(r.remaining - old, then);
				step_back(then, old, limit->refill_ns - r.reset_after_ns, steps[j]);
			}
		is(wrong, 0, "%s: a clock that steps back takes nothing and gives nothing", limits[i].name);
	}
}

static void stepping_forth(void)
{
	for (size_t i = 0; i < LIMITS; i++) {
		wrong = 0;
		for (uint64_t round = 0; round < scaled(100); round++) {
			uint64_t now = up_to(YEAR), sooner;

			fresh(&limits[i]);
			take(limit->capacity - up_to(limit->capacity), now);
			/* Years, ever more of them, and back to where it was. */
			for (uint64_t years = 1; years <= 512; years *= 2) {
				drain(now + years * YEAR);
				drain(now);
			}
			sooner = limit->refill_ns + limit->slack_ns;
			expect(left(now + sooner) == limit->capacity, "the funnel fills from its step on", now,
			       now + sooner);
		}
		is(wrong, 0, "%s: a clock that leaps by years never gives more than the capacity at once",
		   limits[i].name);
	}
}

/* ---- Wraps ---- */

/* Empty at `start`; each token comes on its nanosecond, within a tick, and the funnel is full when it should be. */
static void on_the_boundary(uint64_t start)
{
	for (uint64_t k = 1; k <= least(limit->capacity, 8); k++) {
		uint64_t at = start + due(limit, k);

		expect(left(at) == k, "a token is there on its boundary", start, at);
		expect(left(at - limit->tick_ns) == k - 1, "a token is not there a tick before its boundary", start,
		       at);
	}
	expect(left(start + limit->refill_ns) == limit->capacity, "full in time", start, start + limit->refill_ns);
}

static void timestamp_wraps(void)
{
	uint64_t wraps = 0;

	for (size_t i = 0; i < LIMITS; i++) {
		const struct layout_params *params = &limits[i].params;
		u128 ticks = (u128)1 << (64 - params_quota_bits(params));

		wrong = 0;
		for (u128 n = 1; n <= scaled(40); n++) {
			/* The first nanosecond at which the timestamp has wrapped n times. */
			u128 wrap = (n * ticks * params->den + params->num - 1) / params->num;
			uint64_t start;

			if (wrap > UINT64_MAX - 2 * limits[i].refill_ns || wrap < limits[i].refill_ns)
				break;
			fresh(&limits[i]);
			start = (uint64_t)wrap - (n % 2 ? up_to(due(limit, 1)) : up_to(limit->refill_ns));
			take(limit->capacity, start);
			on_the_boundary(start);
			wraps++;
		}
		is(wrong, 0, "%s: the wrap of the timestamp is a moment like others", limits[i].name);
	}
	ok(wraps >= scaled(101), "the timestamp did wrap: %" PRIu64 " times", wraps);
}

static void now_wraps(void)
{
	wrong = 0;
	for (size_t i = 0; i < LIMITS; i++)
		for (uint64_t round = 0; round < scaled(100); round++) {
			uint64_t before = UINT64_MAX - up_to(limits[i].refill_ns), after, full;

			fresh(&limits[i]);
			take(limit->capacity, before);
			after = UINT64_MAX - up_to(UINT64_MAX - before);
			expect(left(after) <= refilled(limit, after - before + limit->tick_ns) &&
			               left(after) >= least(limit->capacity, refilled(limit, after - before)),
			       "up to the end of time it is exact", before, after);
			drain(UINT64_MAX);
			after = up_to(1) ? 0 : up_to(SECOND);
			drain(after);
			full = after + limit->refill_ns + limit->slack_ns;
			expect(left(full) == limit->capacity, "after it, full in the time to fill", after, full);
		}
	is(wrong, 0, "when now_ns itself wraps nothing gets more than the capacity at once, and nothing is locked out");
}

/* ---- Damage ---- */

static struct layout_slot *only_slot(void)
{
	struct layout_slot *found = NULL;

	for (uint64_t i = 0; i < l->tables[0].lines * SLOTS_PER_LINE; i++)
		if (load_relaxed(&l->tables[0].slots[i].tag) != 0) {
			if (found != NULL)
				bail("there are two slots in use");
			found = &l->tables[0].slots[i];
		}
	if (found == NULL)
		bail("there is no slot in use");
	return found;
}

static uint64_t some_word(uint64_t now)
{
	uint64_t quota_mask = ((uint64_t)1 << params_quota_bits(&limit->params)) - 1, word = draw();
	uint64_t stamp = funnel_time(&limit->params, now).stamp;

	switch (up_to(5)) {
	case 0:
		return word;
	case 1: /* empty, in the past */
		return (stamp - (word >> up_to(63))) & ~quota_mask;
	case 2: /* empty, in the future */
		return (stamp + (word >> up_to(63))) & ~quota_mask;
	case 3: /* all ones, all but a few */
		return ~(word & quota_mask >> up_to(63));
	case 4: /* more tokens than there can be */
		return word | quota_mask;
	default:
		return word >> up_to(63);
	}
}

/* What becomes of a damaged word when the caller brings the time. Returns 1 if it denies. */
static int damaged(uint64_t now)
{
	uint64_t cost = up_to(1) ? 1 : limit->capacity, longest = limit->refill_ns + limit->slack_ns, retry;

	store_relaxed(&only_slot()->word, some_word(now));
	left(now);
	if (take(cost, now) == SHMLIMIT_ALLOWED) {
		drain(now);
		expect(left(now + longest) == limit->capacity, "it is full in time", now, now + longest);
		return 0;
	}
	retry = r.retry_after_ns;
	expect(retry <= longest, "the wait is no longer than filling and slack", now, now);
	expect(take(cost, now + retry) == SHMLIMIT_ALLOWED, "the wait is over when the denial said", now, now + retry);
	return 1;
}

/* And when it is the library's clock that tells. */
static int damaged_on_own_clock(uint64_t now)
{
	store_relaxed(&only_slot()->word, some_word(now));
	clock_ns = now;
	if (answered(shmlimit_take(at_clock(l), limit->id, &key, sizeof(key), 1, &r)) == SHMLIMIT_ALLOWED)
		return 0;
	expect(r.retry_after_ns <= limit->refill_ns + limit->slack_ns, "the same on the library's clock", now, now);
	clock_ns += r.retry_after_ns;
	expect(shmlimit_take(at_clock(l), limit->id, &key, sizeof(key), 1, &r) == SHMLIMIT_ALLOWED, "over there too",
	       now, clock_ns);
	return 1;
}

static void damage(void)
{
	for (size_t i = 0; i < LIMITS; i++) {
		int denied = 0, denied_on_own_clock = 0;

		wrong = 0;
		for (uint64_t round = 0;
		     round < scaled(1000) || ((denied <= 10 || denied_on_own_clock <= 10) && round < 1000); round++) {
			uint64_t now = draw() >> 1;

			fresh(&limits[i]);
			take(1, now);
			denied += damaged(now);
			denied_on_own_clock += damaged_on_own_clock(now);
		}
		is(wrong, 0, "%s: a slot of any bits gives no more than the capacity, and locks no key out",
		   limits[i].name);
		ok(denied > 10 && denied_on_own_clock > 10, "%s: some slots of any bits deny at first", limits[i].name);
	}
}

/* ---- Stopped between reading the clock and deciding ---- */

static uint64_t admitted_meanwhile;

/* The time to full goes by (three times are less than ahead_ns), and others take all there is. */
static void others_go_on(void)
{
	clock_ns += limit->refill_ns;
	admitted_meanwhile += drain(clock_ns);
}

static int take_one(struct shmlimit_result *result)
{
	return shmlimit_take(at_clock(l), limit->id, &key, sizeof(key), 1, result);
}

static int acquire_one(struct shmlimit_result *result)
{
	return shmlimit_acquire(at_clock(l), limit->id, &key, sizeof(key), 1, 0, result);
}

static void stopped(const char *verb, int (*ask)(struct shmlimit_result *result))
{
	meanwhile = others_go_on;
	for (size_t i = 0; i < LIMITS && limits[i].refill_ns <= DAY; i++)
		for (int times = 1; times <= 3; times++) {
			int answer;

			fresh(&limits[i]);
			wrong = 0;
			clock_ns = 1000 * DAY + up_to(DAY);
			drain(clock_ns);
			admitted_meanwhile = 0;
			stops = times;
			answer = ask(times == 2 ? NULL : &r);
			expect(answer == SHMLIMIT_DENIED, "a process that was stopped finds nothing left", clock_ns,
			       clock_ns);
			stops = 0;
			expect(admitted_meanwhile != 0, "others went on", clock_ns, clock_ns);
			expect(left(clock_ns) == 0, "they had all there was", clock_ns, clock_ns);
			is(wrong, 0,
			   "%s: %s: a process that was stopped %d times after reading the clock gives no key a token twice",
			   limit->name, verb, times);
		}
}

/* The slack goes by, and others leave one token, which was there before or has come back since. */
static void others_leave_one(void)
{
	clock_ns += limit->refill_ns / 2 < SECOND ? limit->refill_ns / 2 : SECOND;
	shmlimit_peek(at_clock(l), limit->id, &key, sizeof(key), 0, &r);
	admitted_meanwhile = r.remaining;
	if (r.remaining > 1)
		shmlimit_take(at_clock(l), limit->id, &key, sizeof(key), r.remaining - 1, &r);
}

/* Charging goes on by the old clock, within the slack: what has come back since must not come back again. */
static void stopped_before_charging(void)
{
	uint64_t hurt = 0;

	meanwhile = others_leave_one;
	for (size_t i = 0; i < LIMITS && limits[i].refill_ns <= DAY; i++) {
		fresh(&limits[i]);
		wrong = 0;
		clock_ns = 1000 * DAY + up_to(DAY);
		shmlimit_take(at_clock(l), limit->id, &key, sizeof(key), 1, NULL);
		admitted_meanwhile = 0;
		stops = 1;
		shmlimit_charge(at_clock(l), limit->id, &key, sizeof(key), limit->capacity + 1, NULL);
		stops = 0;
		hurt += admitted_meanwhile > 2;
		expect(left(clock_ns) <= 1, "no more than was there", clock_ns, clock_ns);
		is(wrong, 0, "%s: a process that was stopped before it charged leaves no more than was there",
		   limit->name);
	}
	ok(hurt > 3, "others were admitted while a charge was stopped");
}

static uint64_t slept_until_ns;

int clock_nanosleep(clockid_t id, int flags, const struct timespec *time, struct timespec *left)
{
	(void)id;
	(void)flags;
	(void)left;
	slept_until_ns = (uint64_t)time->tv_sec * SECOND + (uint64_t)time->tv_nsec;
	return 0;
}

/* A minute goes by, and others take and owe all there is. */
static void others_owe(void)
{
	clock_ns += 60 * SECOND;
	shmlimit_charge(at_time(l, clock_ns), limit->id, &key, sizeof(key), 5, NULL);
}

static void stopped_before_waiting(void)
{
	static struct limit slow = { .name = "1/s, in debt" };
	struct shmlimit_rule rule = {
		.struct_size = sizeof(rule), .capacity = 1, .refill = 1, .period_ns = SECOND, .max_wait_ns = 10 * SECOND
	};

	slow.id = shmlimit_rule_set(at_clock(l), "slow", &rule);
	fresh(&slow);
	meanwhile = others_owe;
	shmlimit_take(at_clock(l), slow.id, &key, sizeof(key), 1, NULL);
	stops = 1;
	is(shmlimit_acquire(at_clock(l), slow.id, &key, sizeof(key), 1, 10 * SECOND, &r), SHMLIMIT_ALLOWED,
	   "a caller that was stopped before it acquired has a place behind the others");
	stops = 0;
	is(r.wait_ns, 5 * SECOND, "as far behind as they owe");
	ok(slept_until_ns >= clock_ns + r.wait_ns, "a caller does not go on before its token is there");
}

/* Of four tokens others take three, at a later time than was read: to GCRA a token is a time. */
static struct shmlimit_limit four = { .struct_size = sizeof(four), .capacity = 4, .refill = 4, .period_ns = DAY };
static int gcra;

static void others_take_three(void)
{
	clock_ns += SECOND;
	for (int i = 0; i < 3; i++)
		by_limit(l, SHMLIMIT_TAKE, gcra, &key, sizeof(key), 1, &four, NULL);
}

static void stopped_before_the_last(void)
{
	struct shmlimit_rule rule = { .struct_size = sizeof(rule),
		                      .algorithm = SHMLIMIT_GCRA,
		                      .capacity = four.capacity,
		                      .refill = four.refill,
		                      .period_ns = four.period_ns };
	struct shmlimit_request both[2] = { { .key = &key, .key_len = sizeof(key), .cost = 1, .limit = &four } };

	gcra = shmlimit_rule_set(at_clock(l), "gcra", &rule);
	both[0].rule = both[1].rule = gcra;
	meanwhile = others_take_three;
	for (int call = 0; call < 5; call++) {
		int answer = -1;

		shmlimit_reset(l, gcra, NULL, 0);
		by_limit(l, SHMLIMIT_TAKE, gcra, &key, sizeof(key), 1, &four, NULL);
		by_limit(l, SHMLIMIT_REFUND, gcra, &key, sizeof(key), 1, &four, NULL);
		stops = 1;
		if (call == 0)
			answer = by_limit(l, SHMLIMIT_TAKE, gcra, &key, sizeof(key), 1, &four, &r);
		else if (call == 1)
			answer = shmlimit_take(at_clock(l), gcra, &key, sizeof(key), 1, &r);
		else if (call == 2)
			answer = shmlimit_reserve(at_clock(l), gcra, &key, sizeof(key), 1, 0, &r);
		else if (call == 3)
			answer = by_limit(l, SHMLIMIT_PEEK, gcra, &key, sizeof(key), 1, &four, &r);
		else
			answer = shmlimit_take_all(at_clock(l), both, 1, NULL, &r);
		is(stops, 0, "the process was stopped");
		is(answer, SHMLIMIT_ALLOWED, "call %d: a process that was stopped gets the token that others left",
		   call);
		is(by_limit(l, SHMLIMIT_TAKE, gcra, &key, sizeof(key), 1, &four, &r),
		   call == 3 ? SHMLIMIT_ALLOWED : SHMLIMIT_DENIED, "there is no more");
	}
}

static void take_two_meanwhile(void)
{
	clock_ns += SECOND;
	by_limit(l, SHMLIMIT_TAKE, gcra, &key, sizeof(key), 2, &four, NULL);
}

/* As many as fit: by the time that was read before, only one would. */
static void stopped_before_a_batch(void)
{
	meanwhile = take_two_meanwhile;
	shmlimit_reset(l, gcra, NULL, 0);
	by_limit(l, SHMLIMIT_TAKE, gcra, &key, sizeof(key), 1, &four, NULL);
	by_limit(l, SHMLIMIT_REFUND, gcra, &key, sizeof(key), 1, &four, NULL);
	stops = 1;
	is(by_limit(l, SHMLIMIT_TAKE_SOME, gcra, &key, sizeof(key), 3, &four, &r), SHMLIMIT_ALLOWED,
	   "a batch of a process that was stopped is allowed what fits");
	is(stops, 0, "the process was stopped before its batch");
	is(r.granted, 2, "that is all that others left");
}

/* A clock that stepped forward and back, by any time: the key is denied for no longer than the longest limit so far. */
static void steps_of_gcra(void)
{
	struct shmlimit_limit patient = four;

	patient.max_wait_ns = HOUR;
	for (uint64_t step = SECOND; step < 40 * YEAR; step *= 3) {
		for (int charges = 0; charges < 2; charges++) {
			uint64_t then = 1000 * DAY, wait;

			shmlimit_reset(l, gcra, NULL, 0);
			if (charges)
				by_limit(at_time(l, then + step), SHMLIMIT_CHARGE, gcra, &key, sizeof(key), 5, &patient,
				         NULL);
			else
				by_limit(at_time(l, then + step), SHMLIMIT_TAKE, gcra, &key, sizeof(key), 4, &patient,
				         NULL);
			by_limit(at_time(l, then), SHMLIMIT_TAKE, gcra, &key, sizeof(key), 1, &patient, &r);
			wait = r.retry_after_ns;
			ok(wait <= DAY + HOUR + SECOND,
			   "a clock that steps back by %" PRIu64 " s denies for %" PRIu64 " s", step / SECOND,
			   wait / SECOND);
			is(by_limit(at_time(l, then + DAY + HOUR + SECOND), SHMLIMIT_TAKE, gcra, &key, sizeof(key), 1,
			            &patient, &r),
			   SHMLIMIT_ALLOWED, "it is allowed when the longest limit is over");
		}
	}
}

/* At the second look at the clock: a rule that was off is on again. */
static struct shmlimit_rule off = {
	.struct_size = sizeof(off), .capacity = 5, .refill = 1, .period_ns = DAY, .mode = SHMLIMIT_OFF
};

static void others_switch_on(void)
{
	if (stops != 0)
		return;
	off.mode = SHMLIMIT_ENFORCE;
	shmlimit_rule_set(at_clock(l), "off", &off);
}

/* What an OFF rule allowed was not taken, so it is not given back, whatever the rule is by then. */
static void switched_on_before_giving_back(void)
{
	int id = shmlimit_rule_set(at_clock(l), "off", &off);
	struct shmlimit_request all[] = {
		{ .rule = id, .key = "k", .key_len = 1, .cost = 2 },
		{ .rule = limits[0].id, .key = &key, .key_len = sizeof(key), .cost = 1 },
	};
	size_t failed = 0;

	fresh(&limits[0]);
	shmlimit_rule_set(
		l, "off",
		&(struct shmlimit_rule){ .struct_size = sizeof(off), .capacity = 5, .refill = 1, .period_ns = DAY });
	shmlimit_take(at_time(l, clock_ns), id, "k", 1, 3, NULL);
	shmlimit_rule_set(at_clock(l), "off", &off);
	drain(clock_ns + HOUR);
	meanwhile = others_switch_on;
	stops = 2;
	is(shmlimit_take_all(at_clock(l), all, 2, &failed, NULL), SHMLIMIT_DENIED,
	   "two limits, of which the second denies");
	is(failed, 1, "it is that one");
	is(off.mode, SHMLIMIT_ENFORCE, "the first, which was off, is on when it is given back");
	stops = 0;
	shmlimit_peek(at_time(l, clock_ns), id, "k", 1, 0, &r);
	is(r.remaining, 2, "it gets nothing that was not taken");
}

/* ---- Every algorithm ---- */

struct kind {
	const char *name;
	struct shmlimit_rule rule;
	uint64_t longest_ns; /* after a step a key is denied for no longer */
	uint64_t ahead_ns;   /* steps of up to this are recognised */
	uint64_t cost;       /* of a take; 0: 1 */
	int counts;          /* by shmlimit_count() */
	int id;
};

/* clang-format off */
static struct kind kinds[] = {
	{ .name = "FUNNEL, 10 at 1 a second", .longest_ns = 11 * SECOND,
	  .rule = { .algorithm = SHMLIMIT_FUNNEL, .capacity = 10, .refill = 1, .period_ns = SECOND } },
	{ .name = "FUNNEL in debt for up to 20 s", .longest_ns = 31 * SECOND,
	  .rule = { .algorithm = SHMLIMIT_FUNNEL, .capacity = 10, .refill = 1, .period_ns = SECOND,
	            .max_wait_ns = 20 * SECOND } },
	{ .name = "WARMUP of 10 s to 10 a second", .longest_ns = 26 * SECOND,
	  .rule = { .algorithm = SHMLIMIT_WARMUP, .refill = 10, .period_ns = SECOND, .warmup_ns = 10 * SECOND } },
	{ .name = "WARMUP of a minute to 1 a second", .longest_ns = 151 * SECOND,
	  .rule = { .algorithm = SHMLIMIT_WARMUP, .refill = 1, .period_ns = SECOND, .warmup_ns = 60 * SECOND } },
	{ .name = "WINDOW of 10 in 60 s", .longest_ns = 61 * SECOND,
	  .rule = { .algorithm = SHMLIMIT_WINDOW, .capacity = 10, .period_ns = 60 * SECOND } },
	{ .name = "WINDOW of 16 in a day", .longest_ns = DAY + SECOND,
	  .rule = { .algorithm = SHMLIMIT_WINDOW, .capacity = 16, .period_ns = DAY } },
	{ .name = "COUNTER of 10 in 60 s", .longest_ns = 62 * SECOND,
	  .rule = { .algorithm = SHMLIMIT_COUNTER, .capacity = 10, .period_ns = 60 * SECOND } },
	{ .name = "COUNTER of 10 in 60 s, counted", .longest_ns = 62 * SECOND, .counts = 1,
	  .rule = { .algorithm = SHMLIMIT_COUNTER, .capacity = 10, .period_ns = 60 * SECOND } },
	{ .name = "COUNTER of 10^12 in an hour", .longest_ns = HOUR + 2 * SECOND, .cost = 100000000000,
	  .rule = { .algorithm = SHMLIMIT_COUNTER, .capacity = 1000000000000, .period_ns = HOUR } },
	{ .name = "HOLD of 10 for 60 s", .longest_ns = 62 * SECOND,
	  .rule = { .algorithm = SHMLIMIT_HOLD, .capacity = 10, .period_ns = 60 * SECOND } },
	{ .name = "HOLD of one for 208 days", .longest_ns = 209 * DAY,
	  .rule = { .algorithm = SHMLIMIT_HOLD, .capacity = 1, .period_ns = (uint64_t)1 << 54 } },
	{ .name = "COUNTER of 10 in 366 days", .longest_ns = 366 * DAY + 2 * SECOND,
	  .rule = { .algorithm = SHMLIMIT_COUNTER, .capacity = 10 } },
};
/* clang-format on */

#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

/* A call whose time is given, or on the limiter's own clock. Returns 1 if it is allowed. */
static int allows(const struct kind *kind, int given, uint64_t now)
{
	uint64_t cost = kind->cost != 0 ? kind->cost : 1;
	int answer;

	clock_ns = now;
	if (kind->counts) {
		struct shmlimit_count c = { .struct_size = sizeof(c) };

		answer = given ? shmlimit_count(at_time(l, now), kind->id, &key, sizeof(key),
		                                &(struct shmlimit_count_request){
							.struct_size = sizeof(struct shmlimit_count_request),
							.n = 1,
							.bound = INT64_MAX },
		                                &c)
		               : shmlimit_count(at_clock(l), kind->id, &key, sizeof(key),
		                                &(struct shmlimit_count_request){
							.struct_size = sizeof(struct shmlimit_count_request),
							.n = 1,
							.bound = INT64_MAX },
		                                &c);
		r.retry_after_ns = c.ttl_ns;
		return answer == SHMLIMIT_ALLOWED;
	}
	answer = given ? shmlimit_take(at_time(l, now), kind->id, &key, sizeof(key), cost, &r)
	               : shmlimit_take(at_clock(l), kind->id, &key, sizeof(key), cost, &r);
	if (answer != SHMLIMIT_ALLOWED && answer != SHMLIMIT_DENIED)
		bail("%s: %s", kind->name, shmlimit_strerror(answer));
	return answer == SHMLIMIT_ALLOWED;
}

static void holds(const struct kind *kind, int given, uint64_t step, int good, const char *law)
{
	if (!good && ++wrong <= 3)
		diag("%s, %s, a step of %" PRIu64 " ns: not so: %s", kind->name, given ? "given" : "own clock", step,
		     law);
}

/* Take all there is, then the clock steps back; and on from there. */
static void stepped(const struct kind *kind, int given, uint64_t step)
{
	uint64_t then = 1000 * DAY + up_to(DAY), now = then - step;

	shmlimit_reset(l, SHMLIMIT_ALL_RULES, NULL, 0);
	key = draw();
	while (allows(kind, given, then))
		;
	if (kind->rule.max_wait_ns != 0 && up_to(1))
		shmlimit_reserve(at_time(l, then), kind->id, &key, sizeof(key), 1 + up_to(9), UINT64_MAX, &r);
	holds(kind, given, step, !allows(kind, given, now), "a key without tokens gets none by a step back");
	holds(kind, given, step, r.retry_after_ns <= kind->longest_ns,
	      "a denial reports no wait longer than the longest");
	holds(kind, given, step, !allows(kind, given, now), "asking again does not make a denial longer");
	holds(kind, given, step, allows(kind, given, now + kind->longest_ns), "it is locked out no longer than that");
}

/*
 * The same by steps beyond what is recognised. What was taken may be forgotten then, but no key is locked out for longer,
 * nor is one whose first request after the step only looks.
 */
static void stepped_far(const struct kind *kind, int given, uint64_t step)
{
	uint64_t then = 6000 * DAY + up_to(DAY), now = then - step;

	shmlimit_reset(l, SHMLIMIT_ALL_RULES, NULL, 0);
	key = draw();
	while (allows(kind, given, then))
		;
	clock_ns = now;
	if (given ? shmlimit_peek(at_time(l, now), kind->id, &key, sizeof(key), 1, &r)
	          : shmlimit_peek(at_clock(l), kind->id, &key, sizeof(key), 1, &r))
		holds(kind, given, step, r.retry_after_ns <= kind->longest_ns, "a peek reports no longer wait");
	(void)allows(kind, given, now);
	holds(kind, given, step, allows(kind, given, now + kind->longest_ns), "no step locks out for longer");
}

/* A clock that goes to and fro by days: no key gets more in a moment than there can be. */
static void swinging(const struct kind *kind, int given)
{
	uint64_t base = 1000 * DAY + up_to(DAY), most = kind->rule.capacity != 0 ? kind->rule.capacity : 1;

	if (kind->cost != 0)
		most /= kind->cost;

	shmlimit_reset(l, SHMLIMIT_ALL_RULES, NULL, 0);
	key = draw();
	for (int i = 0; i < 20; i++) {
		uint64_t now = base + (i % 2 ? up_to(least(30 * DAY, kind->ahead_ns - kind->longest_ns)) : 0), got = 0;

		while (got <= most && allows(kind, given, now))
			got++;
		holds(kind, given, now - base, got <= most, "no more at once than the capacity");
		holds(kind, given, now - base, i % 2 || i == 0 || got == 0,
		      "nothing where all was taken before the step");
	}
}

static void every_algorithm(void)
{
	static const uint64_t steps[] = { 1, 1000, 1000000, SECOND / 2, SECOND, 2 * SECOND, HOUR, DAY, 10 * DAY, YEAR };

	for (size_t i = 0; i < KINDS; i++) {
		struct shmlimit_range range = { .struct_size = sizeof(range) };
		struct kind *kind = &kinds[i];
		char name[16];

		snprintf(name, sizeof(name), "kind%zu", i);
		kind->rule.struct_size = sizeof(kind->rule);
		kind->id = unit_id(shmlimit_rule_set(at_clock(l), name, &kind->rule));
		shmlimit_rule_range(l, kind->id, &range);
		kind->ahead_ns = range.ahead_ns;
		wrong = 0;
		for (uint64_t round = 0; round < scaled(20); round++)
			for (size_t j = 0; j < sizeof(steps) / sizeof(steps[0]); j++)
				for (int given = 0; given < 2; given++)
					stepped(kind, given,
					        least(steps[j] + (round == 0 ? 0 : up_to(steps[j])),
					              kind->ahead_ns - kind->longest_ns));
		is(wrong, 0, "%s: a clock that steps back gives nothing, and locks no key out for long", kind->name);
		wrong = 0;
		for (uint64_t round = 0; round < scaled(20); round++)
			for (size_t j = 0; j < sizeof(steps) / sizeof(steps[0]); j++)
				for (int given = 0; given < 2; given++)
					stepped_far(kind, given, least(10 * YEAR, steps[j] + up_to(9 * steps[j])));
		is(wrong, 0, "%s: no step of up to ten years locks a key out for long", kind->name);
		wrong = 0;
		for (uint64_t round = 0; round < scaled(20); round++)
			for (int given = 0; given < 2; given++)
				swinging(kind, given);
		is(wrong, 0, "%s: a clock that swings by days gives no more than the capacity at once", kind->name);
	}
}

/* Leased tokens are spent once, whatever the clock does. Once expired, even by an hour's step, the answer is to ask. */
static void leases_and_steps(void)
{
	struct shmlimit_rule rule = { .struct_size = sizeof(rule),
		                      .algorithm = SHMLIMIT_LEASE,
		                      .capacity = 100,
		                      .refill = 10,
		                      .period_ns = SECOND };
	int id = shmlimit_rule_set(at_clock(l), "leases", &rule);
	uint64_t too_many = 0, not_asked = 0;

	for (uint64_t round = 0; round < scaled(200); round++) {
		struct shmlimit_lease lease = { .struct_size = sizeof(lease) };
		uint64_t base = 1000 * DAY + up_to(DAY), spent = 0;

		key = draw();
		if (shmlimit_lease_take(
			    at_time(l, base), id, &key, sizeof(key),
			    &(struct shmlimit_lease_request){ .struct_size = sizeof(struct shmlimit_lease_request),
		                                              .cost = 1,
		                                              .lease_ns = SECOND,
		                                              .claim_ns = SECOND },
			    &lease, NULL) != SHMLIMIT_LEASE_ASK)
			bail("no caller is told to ask");
		shmlimit_lease_deposit(at_time(l, base), id, &key, sizeof(key), 50, 0, 0, SECOND, NULL);
		for (int i = 0; i < 100; i++)
			spent += shmlimit_take(at_time(l, base + up_to(4 * SECOND) - 2 * SECOND -
			                                          (up_to(3) == 0 ? up_to(YEAR) : 0)),
			                       id, &key, sizeof(key), 1, NULL) == SHMLIMIT_ALLOWED;
		too_many += spent > 50;
		not_asked += shmlimit_lease_take(at_time(l, base + SECOND + HOUR), id, &key, sizeof(key),
		                                 &(struct shmlimit_lease_request){
							 .struct_size = sizeof(struct shmlimit_lease_request),
							 .cost = 1,
							 .lease_ns = SECOND,
							 .claim_ns = SECOND },
		                                 &lease, NULL) != SHMLIMIT_LEASE_ASK;
	}
	is(too_many, 0, "what is leased is spent once, however the clock steps");
	is(not_asked, 0, "when a lease is over a caller is told to ask");
}

static void set_times(void)
{
	static const uint64_t times[] = { 0, 1, SECOND, UINT64_MAX };
	struct shmlimit *another = NULL;
	int kept = 0, others = 0;

	if (shmlimit_open(l->name, 0, NULL, &another) != 0)
		bail("no other handle");
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		kept += shmlimit_now(at_time(l, times[i])) == times[i] && shmlimit_now(l) == times[i];
		others += shmlimit_now(another) == clock_ns;
	}
	is(kept, 4, "a time that is set is the limiter's, whatever it is");
	is(others, 4, "another handle goes by the clock");
	is(shmlimit_now(at_clock(l)), clock_ns, "without one the clock is read again");
	is(shmlimit_set_time(NULL, &times[0]), -EINVAL, "no limiter has no time");
	shmlimit_close(another);
}

int main(void)
{
	struct shmlimit_options options = { .struct_size = sizeof(options), .slots = 64 };

	draws.state = rng_seed();
	l = unit_create("clock", &options);
	define();
	idle();
	idle_for_ages();
	together();
	stepping_back();
	stepping_forth();
	timestamp_wraps();
	now_wraps();
	damage();
	stopped("take", take_one);
	stopped("acquire", acquire_one);
	stopped_before_charging();
	stopped_before_waiting();
	stopped_before_the_last();
	stopped_before_a_batch();
	steps_of_gcra();
	switched_on_before_giving_back();
	every_algorithm();
	leases_and_steps();
	set_times();
	shmlimit_close(l);
	return tap_done();
}
