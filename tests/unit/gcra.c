/*
 * gcra: limits that come with the call, beside an oracle of unbounded numbers, and the laws: just the capacity at one
 * instant, never more than capacity and rate in any stretch. Over limits that alternate on a key each limit alone is
 * admitted no more than that, together they spend no more time than there was, and a key never owes more than one time
 * to full of the limit that it is asked with.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <time.h>

#include "../rng.h"
#include "unit.h"

#define MINUTE (60 * SECOND)
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)
#define YEAR (365 * DAY)
#define T0 (1000 * DAY)
#define LONGEST (366 * DAY)
#define TICKS 4 /* a nanosecond */

typedef __int128 i128;

static struct shmlimit *l;
static int rule;
static struct shmlimit_result r;

static struct shmlimit_limit limit_of(uint64_t capacity, uint64_t refill, uint64_t period_ns)
{
	return (struct shmlimit_limit){ .struct_size = sizeof(struct shmlimit_limit),
		                        .capacity = capacity,
		                        .refill = refill,
		                        .period_ns = period_ns };
}

static struct shmlimit_limit parsed(const char *text)
{
	struct shmlimit_limit limit = { .struct_size = sizeof(limit) };
	struct shmlimit_problem wrong;

	if (shmlimit_limit_parse(text, &limit, &wrong) != 0)
		bail("%s: %s", text, wrong.text);
	return limit;
}

static int take(const char *key, uint64_t cost, const struct shmlimit_limit *limit, uint64_t now_ns)
{
	return by_limit(at_time(l, now_ns), SHMLIMIT_TAKE, rule, key, strlen(key), cost, limit, &r);
}

/* ---- One limit ---- */

static const struct {
	const char *text;
	uint64_t capacity;
} limits[] = {
	{ "1/s", 1 },
	{ "3/s", 3 },
	{ "7/s", 7 },
	{ "5/minute", 5 },
	{ "5/1m30s", 5 },
	{ "7/1.5s", 7 },
	{ "100/hour", 100 },
	{ "1000/day", 1000 },
	{ "997/day", 997 },
	{ "3/month", 3 },
	{ "1000/hour strict", 500 },
	{ "10/s burst 20", 20 },
	{ "1k/s", 1000 },
	{ "11/m burst 3", 3 },
	{ "1/y", 1 },
	{ "1/ms", 1 },
	{ "13/ms", 13 },
	{ "1000000/s", 1000000 },
};

static void bursts(void)
{
	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		struct shmlimit_limit limit = parsed(limits[i].text);
		uint64_t passed = 0, at = T0 + i, retry, reset;

		shmlimit_reset(l, rule, NULL, 0);
		while (passed <= limits[i].capacity && take("k", 1, &limit, at) == SHMLIMIT_ALLOWED)
			passed++;
		is(passed, limits[i].capacity, "just its capacity passes at one instant: %s", limits[i].text);
		retry = r.retry_after_ns;
		ok(retry > 0 && r.remaining == 0 && r.limit == limits[i].capacity, "%s: a denial says when",
		   limits[i].text);
		is(take("k", 1, &limit, at + retry - 1), SHMLIMIT_DENIED, "a nanosecond earlier it is denied");
		is(take("k", 1, &limit, at + retry), SHMLIMIT_ALLOWED, "at that nanosecond it is allowed");
		reset = r.reset_after_ns;
		is(take("k", limits[i].capacity + 1, &limit, at + YEAR), SHMLIMIT_DENIED,
		   "more than the capacity never fits");
		is(r.retry_after_ns, UINT64_MAX, "it says never");
		by_limit(at_time(l, at + retry + reset), SHMLIMIT_PEEK, rule, "k", 1, 1, &limit, &r);
		is(r.remaining, limits[i].capacity, "when it said so it is full");
	}
}

/* ---- The oracle ---- */

/*
 * Of a key: the time at which its bucket was empty, in ticks that do not come round, and the place of the longest limit
 * that it was asked with since it was full by all of them.
 */
static i128 empty_at;
static unsigned place;

/* Of a segment: the longest time to full of each place, which is a power of two. */
static i128 longest[64];

struct oracle_limit {
	i128 interval, fraction, tolerance; /* interval / fraction ticks a token */
};

static struct oracle_limit oracle_of(const struct shmlimit_limit *limit)
{
	struct oracle_limit o = { .fraction = 1 };
	i128 ticks = (i128)limit->period_ns * TICKS;

	/* As gcra.h says: where the interval is short and no whole number, all of the capacity has one. */
	if ((ticks % limit->refill != 0 && ticks / limit->refill < 65536) || ticks < limit->refill)
		o.fraction = limit->capacity;
	o.interval = (ticks * o.fraction + limit->refill - 1) / limit->refill;
	o.tolerance = (i128)limit->capacity * o.interval / o.fraction;
	return o;
}

static i128 oracle_cost(struct oracle_limit o, uint64_t cost)
{
	return (cost * o.interval + o.fraction - 1) / o.fraction;
}

static unsigned place_of(i128 tolerance)
{
	unsigned bits = 25;

	while (tolerance >> (bits + 1) != 0)
		bits++;
	return bits;
}

static void oracle_begin(void)
{
	empty_at = -((i128)1 << 100);
	place = 0;
}

/* What a take answers; changes the key's time. */
static int oracle_take(const struct shmlimit_limit *limit, uint64_t cost, uint64_t now_ns)
{
	struct oracle_limit o = oracle_of(limit);
	i128 now = (i128)now_ns * TICKS, room = now - empty_at, price = oracle_cost(o, cost);
	int is_over = room >= longest[place];

	if (is_over || room > o.tolerance)
		room = o.tolerance;
	if (cost > limit->capacity || (cost != 0 && price > room))
		return SHMLIMIT_DENIED;
	if (price == 0)
		return SHMLIMIT_ALLOWED;
	empty_at = now - room + price;
	if (is_over || o.tolerance > longest[place])
		place = place_of(o.tolerance);
	if (longest[place] < o.tolerance)
		longest[place] = o.tolerance;
	return SHMLIMIT_ALLOWED;
}

static int oracle_peek(const struct shmlimit_limit *limit, uint64_t cost, uint64_t now_ns)
{
	i128 was_empty_at = empty_at, was_longest[64];
	unsigned was_place = place;
	int answer;

	memcpy(was_longest, longest, sizeof(longest));
	answer = oracle_take(limit, cost, now_ns);
	memcpy(longest, was_longest, sizeof(longest));
	empty_at = was_empty_at;
	place = was_place;
	return answer;
}

static uint64_t draw_between(struct rng *rng, uint64_t min, uint64_t max)
{
	return min + rng_below(rng, max - min + 1);
}

/* Numbers of all lengths. */
static uint64_t draw_length(struct rng *rng, unsigned bits)
{
	return (rng_draw(rng) >> (64 - draw_between(rng, 1, bits))) | 1;
}

static struct shmlimit_limit draw_limit(struct rng *rng)
{
	for (;;) {
		struct shmlimit_limit limit =
			limit_of(draw_length(rng, 20), draw_length(rng, 30), draw_length(rng, 52));
		struct oracle_limit o = oracle_of(&limit);

		if (o.tolerance > 0 && o.tolerance <= (i128)LONGEST * TICKS)
			return limit;
	}
}

/* One key, one limit: decisions are the oracle's, and in no stretch of time more passes than I1 says. */
static int history(struct rng *rng)
{
	struct shmlimit_limit limit = draw_limit(rng);
	uint64_t now_ns = T0;
	int faults = 0;
	i128 worst = 0; /* the most that passed in a stretch that ends now, less what its time gives; times period */

	shmlimit_reset(l, rule, "k", 1);
	oracle_begin();
	for (int i = 0; i < 200; i++) {
		uint64_t cost = rng_below(rng, 4) == 0 ? draw_between(rng, 0, limit.capacity + 1) : 1;
		uint64_t step = rng_below(rng, 2) == 0 ? 0 : draw_length(rng, 48) % (2 * limit.period_ns);
		int answer, want;

		now_ns += step;
		worst -= (i128)step * limit.refill;
		if (worst < 0)
			worst = 0;
		want = oracle_take(&limit, cost, now_ns);
		answer = take("k", cost, &limit, now_ns);
		faults += answer != want;
		if (answer == SHMLIMIT_ALLOWED) {
			worst += (i128)cost * limit.period_ns;
			faults += worst > (i128)limit.capacity * limit.period_ns;
		} else if (r.retry_after_ns != UINT64_MAX) {
			faults += oracle_peek(&limit, cost, now_ns + r.retry_after_ns) != SHMLIMIT_ALLOWED;
			faults += oracle_peek(&limit, cost, now_ns + r.retry_after_ns - 1) != SHMLIMIT_DENIED;
		}
	}
	return faults;
}

/* What passed in the stretch of time that ends now in which most did, less what its time gives: in ticks. */
static int passes(i128 *worst, i128 cost, i128 most)
{
	*worst += cost;
	return *worst <= most;
}

static void goes_by(i128 *worst, uint64_t step)
{
	*worst -= (i128)step * TICKS;
	if (*worst < 0)
		*worst = 0;
}

/*
 * Limits that alternate on one key: decisions are the oracle's. In no stretch of time is a limit admitted more than its
 * capacity and what came back by it, nor do all together spend more than that time and the longest time to full. And no
 * denial is for longer than a time to full of the limit that was asked.
 */
static int changing(struct shmlimit *other, int id, struct rng *rng)
{
	struct shmlimit_limit limit[3] = { draw_limit(rng), draw_limit(rng), draw_limit(rng) };
	i128 most = 0, all = 0, each[3] = { 0 };
	uint64_t now_ns = T0;
	int faults = 0;

	for (int i = 0; i < 3; i++)
		most = oracle_of(&limit[i]).tolerance > most ? oracle_of(&limit[i]).tolerance : most;
	shmlimit_reset(other, id, "k", 1);
	oracle_begin();
	for (int i = 0; i < 300; i++) {
		unsigned n = (unsigned)rng_below(rng, 3);
		const struct shmlimit_limit *of = &limit[n];
		struct oracle_limit o = oracle_of(of);
		uint64_t cost = draw_between(rng, 1, of->capacity);
		uint64_t step = rng_below(rng, 2) == 0 ? 0 : draw_length(rng, 45);
		int want, answer;

		now_ns += step;
		goes_by(&all, step);
		for (int j = 0; j < 3; j++)
			goes_by(&each[j], step);
		want = oracle_take(of, cost, now_ns);
		answer = by_limit(at_time(other, now_ns), SHMLIMIT_TAKE, id, "k", 1, cost, of, &r);
		faults += answer != want;
		if (answer == SHMLIMIT_ALLOWED) {
			faults += !passes(&each[n], oracle_cost(o, cost), o.tolerance);
			faults += !passes(&all, oracle_cost(o, cost), most);
		} else {
			faults += (i128)(r.retry_after_ns - 1) * TICKS >= o.tolerance;
			faults += oracle_peek(of, cost, now_ns + r.retry_after_ns) != SHMLIMIT_ALLOWED;
			faults += oracle_peek(of, cost, now_ns + r.retry_after_ns - 1) != SHMLIMIT_DENIED;
		}
		faults += (i128)r.reset_after_ns * TICKS >= o.tolerance + TICKS;
	}
	return faults;
}

/* In a segment of its own, whose longest limits the oracle knows. */
static int histories_of_changes(struct rng *rng)
{
	struct shmlimit_rule bare = { .struct_size = sizeof(bare), .algorithm = SHMLIMIT_GCRA };
	struct shmlimit *other;
	char name[96];
	int id, faults = 0;

	memset(longest, 0, sizeof(longest));
	snprintf(name, sizeof(name), "%s.changes", unit_name);
	if (shmlimit_create(name, NULL, &other) != 0)
		bail("create");
	id = shmlimit_rule_set(other, "limits", &bare);
	for (int i = 0; i < (int)scaled(500); i++)
		faults += changing(other, id, rng);
	shmlimit_close(other);
	shmlimit_destroy(name);
	return faults;
}

/* ---- The other calls ---- */

static uint64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec;
}

/* It waits by the real clock. */
static void acquires(struct shmlimit_limit *ten)
{
	uint64_t began = clock_ns();

	at_clock(l);
	is(by_limit(l, SHMLIMIT_ACQUIRE, rule, "w", 1, 10, ten, &r), SHMLIMIT_ALLOWED, "all there is needs no wait");
	is(r.wait_ns, 0, "it was none");
	is(by_limit(l, SHMLIMIT_ACQUIRE, rule, "w", 1, 1, ten, &r), SHMLIMIT_ALLOWED, "a token that comes back");
	ok(r.wait_ns <= SECOND / 10 && clock_ns() - began >= SECOND / 10, "was waited for");
	ten->max_wait_ns = 0;
	is(by_limit(l, SHMLIMIT_ACQUIRE, rule, "w", 1, 10, ten, NULL), SHMLIMIT_DENIED,
	   "a limit without a wait denies at once");
	is(by_limit(l, SHMLIMIT_ACQUIRE, rule, "w", 1, 1, NULL, &r), -EDOM, "a limit is needed");
}

static void others(void)
{
	struct shmlimit_limit ten = parsed("10/s"), one = parsed("1/s"), patient = parsed("10/s");

	patient.max_wait_ns = SECOND;
	shmlimit_reset(l, rule, NULL, 0);
	is(by_limit(at_time(l, T0), SHMLIMIT_CHARGE, rule, "o", 1, 4, &ten, &r), SHMLIMIT_ALLOWED, "a charge");
	is(r.remaining, 6, "takes");
	is(by_limit(at_time(l, T0), SHMLIMIT_REFUND, rule, "o", 1, 3, &ten, &r), SHMLIMIT_ALLOWED, "a refund");
	is(r.remaining, 9, "gives back");
	is(by_limit(at_time(l, T0), SHMLIMIT_REFUND, rule, "o", 1, 30, &ten, &r), SHMLIMIT_ALLOWED,
	   "no more than was taken");
	is(r.remaining, 10, "is the capacity");
	is(by_limit(at_time(l, T0), SHMLIMIT_CHARGE, rule, "o", 1, 14, &ten, &r), SHMLIMIT_ALLOWED,
	   "a charge of more than there is");
	is(r.retry_after_ns, UINT64_MAX, "says that it was cut");
	is(r.reset_after_ns, SECOND, "at an empty bucket, without debt");
	is(by_limit(at_time(l, T0), SHMLIMIT_CHARGE, rule, "o", 1, 5, &patient, &r), SHMLIMIT_ALLOWED, "into debt");
	is(r.reset_after_ns, SECOND + SECOND / 2, "where the limit has a wait");
	is(by_limit(at_time(l, T0), SHMLIMIT_RESERVE, rule, "o", 1, 5, &patient, &r), SHMLIMIT_ALLOWED,
	   "a reservation");
	is(r.wait_ns, SECOND, "waits for what was missing");
	is(by_limit(at_time(l, T0), SHMLIMIT_RESERVE, rule, "o", 1, 1, &patient, &r), SHMLIMIT_DENIED,
	   "no longer than the limit says");
	is(r.retry_after_ns, SECOND / 10, "it says when it would not be");
	is(by_limit(at_time(l, T0), SHMLIMIT_RESERVE, rule, "o", 1, 1, &ten, &r), SHMLIMIT_DENIED,
	   "without a wait it is a take");
	is(by_limit(at_time(l, T0 + DAY), SHMLIMIT_RESERVE, rule, "o", 1, 21, &patient, &r), SHMLIMIT_DENIED,
	   "more than can be borrowed");
	is(r.retry_after_ns, UINT64_MAX, "never fits");

	/* A key has the same time under another limit: of ten a second a second ago it was empty. */
	shmlimit_reset(l, rule, NULL, 0);
	is(take("p", 10, &ten, T0), SHMLIMIT_ALLOWED, "a second of ten a second is spent");
	is(take("p", 1, &one, T0 + SECOND / 2), SHMLIMIT_DENIED, "of one a second half is back");
	is(r.retry_after_ns, SECOND / 2, "the rest takes half a second");
	is(take("p", 0, &one, T0), SHMLIMIT_ALLOWED, "a peek of nothing is allowed");
	is(take("p", 1, &one, T0 + SECOND), SHMLIMIT_ALLOWED, "a second later it has its token");
	acquires(&patient);
}

static void modes(void)
{
	struct shmlimit_limit block = parsed("block"), unlimited = parsed("unlimited"), five = parsed("5/m");
	uint64_t allowed = unit_counters(l, rule).allowed, denied = unit_counters(l, rule).denied;

	is(take("m", 1, &block, T0), SHMLIMIT_DENIED, "block denies");
	ok(r.limit == 0 && r.remaining == 0 && r.retry_after_ns == UINT64_MAX, "it says that nothing will help");
	is(take("m", 0, &block, T0), SHMLIMIT_DENIED, "a peek too");
	is(take("m", UINT64_MAX, &unlimited, T0), SHMLIMIT_ALLOWED, "unlimited allows any number");
	is(r.remaining, UINT64_MAX, "it has as many left");
	is(take("m", 5, &five, T0), SHMLIMIT_ALLOWED, "they took nothing");
	is(take("m", 1, &five, T0), SHMLIMIT_DENIED, "of the key's limit");
	is(take("m", 1, &unlimited, T0), SHMLIMIT_ALLOWED, "unlimited allows a key that has used its limit up");
	is(unit_counters(l, rule).allowed - allowed, 3, "what was allowed is counted");
	is(unit_counters(l, rule).denied - denied, 2, "what was denied is counted, but for a peek");
}

static void own_limit(void)
{
	struct shmlimit_rule five = { .struct_size = sizeof(five),
		                      .algorithm = SHMLIMIT_GCRA,
		                      .capacity = 5,
		                      .refill = 5,
		                      .period_ns = MINUTE,
		                      .max_wait_ns = MINUTE };
	struct shmlimit_rule found = { .struct_size = sizeof(found) };
	struct shmlimit_limit ten = parsed("10/m");
	int id = shmlimit_rule_set(l, "five", &five);

	ok(id >= 0, "a rule may have a limit of its own");
	is(shmlimit_rule_get(l, id, &found), 0, "the rule can be read");
	ok(found.capacity == 5 && found.refill == 5 && found.period_ns == MINUTE && found.algorithm == SHMLIMIT_GCRA,
	   "as it is");
	for (int i = 0; i < 5; i++)
		is(shmlimit_take(at_time(l, T0), id, "k", 1, 1, &r), SHMLIMIT_ALLOWED,
		   "a call without one has the rule's");
	is(shmlimit_take(at_time(l, T0), id, "k", 1, 1, &r), SHMLIMIT_DENIED, "no more");
	is(r.retry_after_ns, 12 * SECOND, "one is back after 12 s");
	is(by_limit(at_time(l, T0 + 6 * SECOND), SHMLIMIT_PEEK, id, "k", 1, 1, &ten, &r), SHMLIMIT_ALLOWED,
	   "a call with one has that");
	is(shmlimit_reserve(at_time(l, T0), id, "k", 1, 1, UINT64_MAX, &r), SHMLIMIT_ALLOWED,
	   "a call without one reserves by the rule's");
	is(r.wait_ns, 12 * SECOND, "the reservation waits");
	is(shmlimit_take(at_time(l, T0), rule, "k", 1, 1, &r), -EDOM, "without any limit there is an error");
	is(shmlimit_rule_get(l, rule, &found), 0, "a rule without a limit is no damaged one");
	is(found.capacity, 0, "it has none");
	shmlimit_rule_remove(l, "five");
}

static void errors(void)
{
	struct shmlimit_limit good = parsed("5/m"), bad;
	struct shmlimit_limit longer[2] = { good, { 0 } };
	struct shmlimit_problem wrong;
	int funnel = unit_rule(l, "funnel", 5, 5, SECOND);

	is(take("e", 1, NULL, T0), -EDOM, "no limit of the call, and none of the rule");
	bad = good;
	bad.struct_size = 8;
	is(take("e", 1, &bad, T0), -EINVAL, "too small a limit");
	bad = good;
	bad.flags = 1;
	is(take("e", 1, &bad, T0), -EINVAL, "an unknown flag");
	bad.flags = SHMLIMIT_LIMIT_BLOCK | SHMLIMIT_LIMIT_UNLIMITED;
	is(take("e", 1, &bad, T0), -EINVAL, "two flags that contradict");
	for (int i = 0; i < 3; i++) {
		bad = good;
		*(i == 0 ? &bad.capacity : i == 1 ? &bad.refill : &bad.period_ns) = 0;
		is(take("e", 1, &bad, T0), -EDOM, "a number that is 0");
	}
	bad = limit_of(SHMLIMIT_CAPACITY_MAX + 1, SHMLIMIT_CAPACITY_MAX, SECOND);
	is(take("e", 1, &bad, T0), -ERANGE, "too large a capacity");
	bad = limit_of(367, 1, DAY);
	is(take("e", 1, &bad, T0), -ERANGE, "too long a time to full");
	bad = limit_of(366, 1, DAY);
	is(take("e", 1, &bad, T0), SHMLIMIT_ALLOWED, "the longest");
	bad = limit_of(1, 1, UINT64_MAX);
	is(take("e", 1, &bad, T0), -ERANGE, "a period beyond all clocks");
	bad = good;
	bad.max_wait_ns = LONGEST + 1;
	is(take("e", 1, &bad, T0), -ERANGE, "too long a wait");
	is(by_limit(at_time(l, T0), SHMLIMIT_TAKE, funnel, "e", 1, 1, &good, &r), -EOPNOTSUPP,
	   "a rule of another algorithm");
	is(by_limit(at_time(l, T0), SHMLIMIT_TAKE, 99, "e", 1, 1, &good, &r), -ESRCH, "no rule");
	is(by_limit(at_time(l, T0), SHMLIMIT_TAKE, rule, "", 0, 1, &good, &r), -EMSGSIZE, "no key");
	longer[0].struct_size = sizeof(longer);
	is(take("e2", 1, longer, T0), SHMLIMIT_ALLOWED, "a longer limit that says no more");
	longer[1].capacity = 1;
	is(take("e2", 1, longer, T0), -E2BIG, "one that does");
	is(shmlimit_limit_parse("20 at once for 5m", &good, &wrong), -EINVAL, "places with a time are no such limit");
	is(shmlimit_limit_parse("5/m window", &good, &wrong), -EINVAL, "a window is no such limit");
	is(shmlimit_limit_parse("5 apples", &good, &wrong), -EINVAL, "apples are no limit");
	ok(good.capacity == 5 && wrong.text[0] != '\0', "nothing was changed, and it says why");
	shmlimit_rule_remove(l, "funnel");
}

/* 10^11 a second, a capacity of 2^48, and times at the ends of the range. */
static void extremes(void)
{
	struct shmlimit_limit fast = limit_of((uint64_t)1 << 48, 100000000000, SECOND);
	uint64_t passed = 0;

	shmlimit_reset(l, rule, NULL, 0);
	is(take("f", (uint64_t)1 << 48, &fast, T0), SHMLIMIT_ALLOWED, "2^48 tokens at once");
	is(take("f", 1, &fast, T0), SHMLIMIT_DENIED, "no more than these");
	for (int i = 1; i <= 1000; i++)
		while (take("f", 1000, &fast, T0 + (uint64_t)i) == SHMLIMIT_ALLOWED)
			passed += 1000;
	ok(passed <= 100000 && passed >= 97000, "of 10^11 a second, in a microsecond about 10^5 (%llu)",
	   (unsigned long long)passed);
	for (int i = 0; i < 8; i++) {
		/* A word has 4.6 years: what is over says nothing after any time. */
		struct shmlimit_limit one = parsed("1/s");
		uint64_t at = T0 + (uint64_t)i * 5 * YEAR + (uint64_t)i;

		is(take("y", 1, &one, at), SHMLIMIT_ALLOWED, "after years a key is full");
		is(take("y", 1, &one, at), SHMLIMIT_DENIED, "of one");
	}
}

static void steps_back(void)
{
	struct shmlimit_limit five = parsed("5/m");

	shmlimit_reset(l, rule, NULL, 0);
	for (int i = 0; i < 5; i++)
		take("b", 1, &five, T0 + 10 * YEAR);
	is(take("b", 1, &five, T0), SHMLIMIT_DENIED, "a clock that stepped back forgives nothing");
	is(r.retry_after_ns, 12 * SECOND, "it denies no longer than the limit's own time");
	is(take("b", 1, &five, T0 + 12 * SECOND), SHMLIMIT_ALLOWED, "as if it had been spent just now");
}

/*
 * After how long a key is full, and how far ahead its time can be, is the segment's, see gcra_row.h: a limit that is
 * longer, or owes more, than all before raises that before it leaves anything, whatever the operation. Else the next
 * reader would take the key for full, or its time for impossible.
 */
static void longer_than_all_before(void)
{
	static const struct {
		const char *what;
		int is_known; /* the key has a slot, from a limit of a second, which is over; 2: of an hour, which is not */
		int op;       /* 0 take, 1 reserve, 2 charge */
		uint64_t cost;
		uint64_t left; /* hours of the days until it is full */
	} cases[] = {
		{ "a take of a new key", 0, 0, 2, 48 },
		{ "a take of a known key", 1, 0, 2, 48 },
		{ "a reservation of a new key", 0, 1, 7, 168 },
		{ "a reservation of a known key", 1, 1, 7, 168 },
		{ "a charge of a new key", 0, 2, 7, 168 },
		{ "a charge of a known key", 1, 2, 7, 168 },
		{ "a reservation within the limit", 1, 1, 3, 72 },
		{ "a charge of all that can be owed", 1, 2, 15, 168 },
		{ "a reservation of a key that is not full", 2, 1, 2, 168 - 1 },
		{ "a charge of a key that is not full", 2, 2, 1, 144 - 1 },
	};
	struct shmlimit_rule bare = { .struct_size = sizeof(bare), .algorithm = SHMLIMIT_GCRA };
	struct shmlimit_limit second = parsed("5/s"), slow = parsed("5/2h"), days = parsed("5 per 5 days");
	char name[96];

	days.max_wait_ns = 2 * DAY;
	snprintf(name, sizeof(name), "%s.longer", unit_name);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct shmlimit *fresh;
		int id, answer;

		if (shmlimit_create(name, NULL, &fresh) != 0)
			bail("create");
		id = shmlimit_rule_set(fresh, "limits", &bare);
		if (cases[i].is_known)
			by_limit(at_time(fresh, T0 - HOUR), SHMLIMIT_TAKE, id, "k", 1, cases[i].is_known == 1 ? 1 : 5,
			         cases[i].is_known == 1 ? &second : &slow, NULL);
		if (cases[i].op == 0)
			answer = by_limit(at_time(fresh, T0), SHMLIMIT_TAKE, id, "k", 1, cases[i].cost, &days, NULL);
		else if (cases[i].op == 1)
			answer = by_limit(at_time(fresh, T0), SHMLIMIT_RESERVE, id, "k", 1, cases[i].cost, &days, NULL);
		else
			answer = by_limit(at_time(fresh, T0), SHMLIMIT_CHARGE, id, "k", 1, cases[i].cost, &days, NULL);
		is(answer, SHMLIMIT_ALLOWED, "%s by a longer limit", cases[i].what);
		by_limit(at_time(fresh, T0), SHMLIMIT_PEEK, id, "k", 1, 1, &days, &r);
		is(r.reset_after_ns, cases[i].left * HOUR, "%s: the key is full again after its own time",
		   cases[i].what);
		by_limit(at_time(fresh, T0 - SECOND / 2), SHMLIMIT_PEEK, id, "k", 1, 1, &days, &r);
		is(r.reset_after_ns, cases[i].left * HOUR + SECOND / 2,
		   "%s: a clock that was read a moment earlier says so, too", cases[i].what);
		shmlimit_close(fresh);
		shmlimit_destroy(name);
	}
}

/* As longer_than_all_before(), by the clock, so that the first try decides. */
static void longer_at_the_first_try(void)
{
	struct shmlimit_rule bare = { .struct_size = sizeof(bare), .algorithm = SHMLIMIT_GCRA };
	struct shmlimit_limit hour = parsed("5/h"), days = parsed("100/d");
	struct shmlimit *fresh;
	char name[96];
	int id;

	snprintf(name, sizeof(name), "%s.first", unit_name);
	if (shmlimit_create(name, NULL, &fresh) != 0)
		bail("create");
	id = shmlimit_rule_set(fresh, "limits", &bare);
	is(by_limit(fresh, SHMLIMIT_TAKE, id, "k", 1, 2, &hour, NULL), SHMLIMIT_ALLOWED, "a limit of an hour");
	is(by_limit(fresh, SHMLIMIT_TAKE, id, "k", 1, 1, &days, NULL), SHMLIMIT_ALLOWED,
	   "a limit of a day has what came back in the 36 minutes that are left of the hour");
	is(by_limit(fresh, SHMLIMIT_PEEK, id, "k", 1, 1, &days, &r), SHMLIMIT_ALLOWED,
	   "its key is not taken for empty");
	ok(r.reset_after_ns < 23 * HOUR + 39 * MINUTE && r.reset_after_ns > 23 * HOUR + 38 * MINUTE,
	   "by the longer limit the key is full a day after it was empty");
	is(by_limit(fresh, SHMLIMIT_PEEK, id, "k", 1, 1, &hour, &r), SHMLIMIT_ALLOWED, "the shorter limit has a token");
	ok(r.remaining == 1 && r.reset_after_ns < 39 * MINUTE,
	   "the shorter limit is full an hour after the key was empty");
	shmlimit_close(fresh);
	shmlimit_destroy(name);
}

/* A smaller limit after a larger one, and the other way round: what each finds, and until when. */
static void larger_and_smaller(void)
{
	struct shmlimit_rule bare = { .struct_size = sizeof(bare), .algorithm = SHMLIMIT_GCRA };
	struct shmlimit_limit hour = parsed("5/h"), day = parsed("5/d");
	struct shmlimit *fresh;
	char name[96];
	int id;

	snprintf(name, sizeof(name), "%s.bought", unit_name);
	if (shmlimit_create(name, NULL, &fresh) != 0)
		bail("create");
	id = shmlimit_rule_set(fresh, "limits", &bare);
	is(by_limit(at_time(fresh, T0), SHMLIMIT_TAKE, id, "up", 2, 5, &day, NULL), SHMLIMIT_ALLOWED,
	   "5 a day are used up");
	is(by_limit(at_time(fresh, T0 + MINUTE), SHMLIMIT_TAKE, id, "up", 2, 1, &hour, &r), SHMLIMIT_DENIED,
	   "5 an hour are bought a minute later");
	is(r.retry_after_ns, 11 * MINUTE, "the first comes back 12 minutes after the last of a day was taken");
	is(r.reset_after_ns, 59 * MINUTE, "all of 5 an hour come back after an hour");
	is(by_limit(at_time(fresh, T0 + HOUR), SHMLIMIT_TAKE, id, "up", 2, 5, &hour, &r), SHMLIMIT_ALLOWED,
	   "all are there then");
	is(by_limit(at_time(fresh, T0 + HOUR), SHMLIMIT_TAKE, id, "up", 2, 1, &day, &r), SHMLIMIT_DENIED,
	   "5 a day are nearly used up by them");
	is(r.reset_after_ns, DAY, "since a day was used before");
	is(by_limit(at_time(fresh, T0), SHMLIMIT_TAKE, id, "down", 4, 1, &hour, NULL), SHMLIMIT_ALLOWED,
	   "one of 5 an hour");
	is(by_limit(at_time(fresh, T0), SHMLIMIT_TAKE, id, "down", 4, 1, &day, &r), SHMLIMIT_DENIED,
	   "leaves none of 5 a day, since the bucket of the day has only what came back in 48 minutes");
	is(r.retry_after_ns, 12 * MINUTE, "5 a day are denied for no longer than until 5 an hour are full");
	is(r.reset_after_ns, 12 * MINUTE, "5 a day are full no later, too");
	is(by_limit(at_time(fresh, T0), SHMLIMIT_RESERVE, id, "down", 4, 1, &day, &r), SHMLIMIT_DENIED,
	   "a reservation waits as long");
	is(r.retry_after_ns, 12 * MINUTE, "it says so");
	is(by_limit(at_time(fresh, T0 + 12 * MINUTE), SHMLIMIT_TAKE, id, "down", 4, 5, &day, &r), SHMLIMIT_ALLOWED,
	   "when 5 an hour are full the key is like a new one");
	shmlimit_close(fresh);
	shmlimit_destroy(name);
}

static void together(void)
{
	struct shmlimit_limit five = parsed("5/m"), none = parsed("block"), two = parsed("2/m");
	struct shmlimit_request q[3] = {
		{ .rule = rule, .key = "a", .key_len = 1, .cost = 2, .limit = &five },
		{ .rule = rule, .key = "b", .key_len = 1, .cost = 1, .limit = &two },
		{ .rule = rule, .key = "c", .key_len = 1, .cost = 1, .limit = &none },
	};
	struct shmlimit_result results[3];
	int answers[3];
	size_t failed = 7;

	shmlimit_reset(l, rule, NULL, 0);
	is(shmlimit_take_all(at_time(l, T0), q, 3, &failed, results), SHMLIMIT_DENIED, "one that blocks denies all");
	is(failed, 2, "it is that one");
	by_limit(at_time(l, T0), SHMLIMIT_PEEK, rule, "a", 1, 1, &five, &r);
	is(r.remaining, 5, "what was taken comes back");
	is(shmlimit_take_all(at_time(l, T0), q, 2, &failed, results), SHMLIMIT_ALLOWED, "without it all are allowed");
	ok(results[0].limit == 5 && results[0].remaining == 3 && results[1].limit == 2 && results[1].remaining == 1,
	   "each by its own limit");
	is(shmlimit_take_many(at_time(l, T0), q, 3, answers, results), 0, "a batch");
	ok(answers[0] == SHMLIMIT_ALLOWED && answers[1] == SHMLIMIT_ALLOWED && answers[2] == SHMLIMIT_DENIED,
	   "answers each by its own limit");
	ok(results[0].remaining == 1 && results[1].remaining == 0, "the batch takes");
	q[1].limit = NULL;
	is(shmlimit_take_many(at_time(l, T0), q, 3, answers, results), 0, "where a request brings none");
	is(answers[1], -EDOM, "if the rule has none either, that one is an error");
	five.flags = 1;
	is(shmlimit_take_all(at_time(l, T0), q, 1, &failed, results), -EINVAL, "a wrong limit is an error");
}

/* A million distinct limits under one rule, each exact. */
static void many_limits(void)
{
	uint64_t wrong = 0, keys = scaled(20000);

	shmlimit_reset(l, rule, NULL, 0);
	for (uint64_t i = 0; i < keys; i++) {
		struct shmlimit_limit limit = limit_of(1 + i % 7, 1 + i % 11, SECOND + i);
		uint64_t passed = 0;

		while (by_limit(at_time(l, T0), SHMLIMIT_TAKE, rule, &i, sizeof(i), 1, &limit, NULL) ==
		       SHMLIMIT_ALLOWED)
			passed++;
		wrong += passed != limit.capacity;
	}
	is(wrong, 0, "each key has its own limit exactly");
}

static void survives(void)
{
	struct shmlimit_limit five = parsed("5/h"), hundred = parsed("100/d");
	struct shmlimit_rule own = {
		.struct_size = sizeof(own), .algorithm = SHMLIMIT_GCRA, .capacity = 9, .refill = 1, .period_ns = HOUR
	};
	char name[96];
	struct shmlimit *copy;
	FILE *file = tmpfile();

	shmlimit_reset(l, rule, NULL, 0);
	is(by_limit(l, SHMLIMIT_TAKE, rule, "s", 1, 5, &five, NULL), SHMLIMIT_ALLOWED, "a limit is used up");
	is(by_limit(l, SHMLIMIT_TAKE, rule, "h", 1, 60, &hundred, NULL), SHMLIMIT_ALLOWED,
	   "another one is used in part");
	is(shmlimit_grow(l, 1 << 17), 0, "the table grows");
	is(by_limit(l, SHMLIMIT_TAKE, rule, "s", 1, 1, &five, &r), SHMLIMIT_DENIED, "the key keeps its time");
	is(shmlimit_rule_set(l, "limits", &own), rule, "the rule gets a limit of its own");
	is(by_limit(l, SHMLIMIT_TAKE, rule, "s", 1, 1, &five, &r), SHMLIMIT_DENIED, "the key keeps its time");
	is(by_limit(l, SHMLIMIT_TAKE, rule, "h", 1, 41, &hundred, &r), SHMLIMIT_DENIED, "the other keeps its time too");
	if (file == NULL)
		bail("tmpfile");
	is(shmlimit_save(l, fileno(file)), 0, "the segment is saved");
	rewind(file);
	lseek(fileno(file), 0, SEEK_SET);
	snprintf(name, sizeof(name), "%s.copy", unit_name);
	is(shmlimit_load(name, fileno(file), 0, &copy), 0, "the segment is loaded");
	is(by_limit(copy, SHMLIMIT_TAKE, rule, "s", 1, 1, &five, &r), SHMLIMIT_DENIED, "the key keeps its time");
	ok(r.retry_after_ns > 10 * MINUTE && r.retry_after_ns <= 12 * MINUTE, "to the second");
	is(by_limit(copy, SHMLIMIT_TAKE, rule, "h", 1, 39, &hundred, &r), SHMLIMIT_ALLOWED,
	   "the other has what it had");
	is(shmlimit_verify(name, NULL, 0), 0, "the copy is sound");
	shmlimit_close(copy);
	shmlimit_destroy(name);
	fclose(file);
}

int main(void)
{
	struct shmlimit_options options = { .struct_size = sizeof(options), .slots = 65536, .rules = 4 };
	struct shmlimit_rule limits_rule = { .struct_size = sizeof(limits_rule), .algorithm = SHMLIMIT_GCRA };
	struct rng rng = { .state = rng_seed() };
	int faults = 0;

	l = unit_create("gcra", &options);
	rule = shmlimit_rule_set(l, "limits", &limits_rule);
	ok(rule >= 0, "a rule needs no limit of its own");
	bursts();
	for (int i = 0; i < (int)scaled(2000); i++)
		faults += history(&rng);
	is(faults, 0, "decisions are those of unbounded numbers, and no stretch of time has more");
	is(histories_of_changes(&rng), 0, "over limits that alternate each has what it would have alone, and no more");
	others();
	modes();
	own_limit();
	errors();
	extremes();
	steps_back();
	longer_than_all_before();
	longer_at_the_first_try();
	larger_and_smaller();
	together();
	many_limits();
	survives();
	is(shmlimit_verify(unit_name, NULL, 0), 0, "the segment is sound");
	shmlimit_close(l);
	return tap_done();
}
