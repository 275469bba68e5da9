/*
 * count: COUNTER rules: counts that expire, by hand, and a million random histories
 * against a plain number with a time at which it ends (I1, I2).
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "../rng.h"
#include "unit.h"

#include "algorithm.h"
#include "count.h"
#include "rule.h"

#define T0 (1000 * SECOND)
#define MS (SECOND / 1000)
#define DAY (86400 * SECOND)
#define HISTORIES 1000000
#define HISTORIES_A_RULE 5000
#define HISTORIES_A_TABLE 16
#define ASKS 8

static struct shmlimit *l;
static struct shmlimit_result r;
static struct shmlimit_count c;

static int set(const char *name, uint64_t capacity, uint64_t period_ns)
{
	struct shmlimit_rule rule = {
		.struct_size = sizeof(rule), .algorithm = SHMLIMIT_COUNTER, .capacity = capacity, .period_ns = period_ns
	};

	return shmlimit_rule_set(at_time(l, T0), name, &rule);
}

static int rule(const char *name, uint64_t capacity, uint64_t period_ns)
{
	return unit_id(set(name, capacity, period_ns));
}

static int count(int id, int64_t n, uint64_t ttl_ns, int64_t bound, uint32_t flags, uint64_t at)
{
	c = (struct shmlimit_count){ .struct_size = sizeof(c) };
	return shmlimit_count(at_time(l, at), id, "k", 1,
	                      &(struct shmlimit_count_request){ .struct_size = sizeof(struct shmlimit_count_request),
	                                                        .flags = flags,
	                                                        .n = n,
	                                                        .bound = bound,
	                                                        .ttl_ns = ttl_ns },
	                      &c);
}

static int take(int id, uint64_t n, uint64_t at)
{
	return shmlimit_take(at_time(l, at), id, "k", 1, n, &r);
}

static struct shmlimit_range range_of(int id)
{
	struct shmlimit_range range = { .struct_size = sizeof(range) };

	if (shmlimit_rule_range(l, id, &range) != 0)
		bail("rule_range");
	return range;
}

/* The whole milliseconds of a time: a tick is half of one. */
static uint64_t ms(uint64_t ns)
{
	return ns / MS;
}

static void counting(void)
{
	int id = rule("count", 0, 3600 * SECOND);

	is(count(id, 0, 0, INT64_MAX, 0, T0), SHMLIMIT_ALLOWED, "a key that was never counted can be read");
	ok(c.count == 0 && c.applied == 0 && c.ttl_ns == 0, "a key that was never counted reads as 0, for no time");
	is((int)unit_slots(l, SHMLIMIT_SLOT_LIVE, T0), 0, "it takes no slot");
	is(count(id, 3, SECOND, 10, 0, T0), SHMLIMIT_ALLOWED, "the first addition");
	ok(c.count == 3 && c.applied == 3 && ms(c.ttl_ns) == 1000, "starts the time to live");
	is(count(id, 7, 5 * SECOND, 10, 0, T0 + 400 * MS), SHMLIMIT_ALLOWED, "an addition up to the bound is allowed");
	ok(c.count == 10 && c.applied == 7 && ms(c.ttl_ns) == 600, "an addition does not move the end of the count");
	is(count(id, 1, SECOND, 10, 0, T0 + 500 * MS), SHMLIMIT_DENIED, "an addition beyond the bound is denied");
	ok(c.count == 10 && c.applied == 0 && ms(c.ttl_ns) == 500, "a denied addition changes neither count nor time");
	is(count(id, 1, SECOND, 11, 0, T0 + 500 * MS), SHMLIMIT_ALLOWED, "the bound is the caller's, call by call");
	is(count(id, -4, SECOND, INT64_MAX, 0, T0 + 500 * MS), SHMLIMIT_ALLOWED, "a negative number takes away");
	ok(c.count == 7 && c.applied == -4 && ms(c.ttl_ns) == 500, "taking away leaves the time as it is");
	is(count(id, -8, SECOND, INT64_MAX, 0, T0 + 500 * MS), SHMLIMIT_DENIED, "taking away below 0 is denied");
	ok(c.count == 7 && c.applied == 0, "a denied call takes nothing away");
	is(count(id, -8, SECOND, INT64_MAX, SHMLIMIT_COUNT_SATURATE, T0 + 500 * MS), SHMLIMIT_ALLOWED,
	   "with SATURATE a call takes away what is there");
	ok(c.count == 0 && c.applied == -7 && ms(c.ttl_ns) == 500, "a count of 0 has its time still");
	is(count(id, 4, SECOND, 3, SHMLIMIT_COUNT_SATURATE, T0 + 500 * MS), SHMLIMIT_ALLOWED,
	   "saturating adds what fits");
	ok(c.count == 3 && c.applied == 3, "saturating adds up to the bound");
	is(count(id, 4, SECOND, 3, SHMLIMIT_COUNT_SATURATE, T0 + 500 * MS), SHMLIMIT_ALLOWED,
	   "with SATURATE a call is allowed even if nothing fits");
	ok(c.count == 3 && c.applied == 0 && ms(c.ttl_ns) == 500, "saturating a full count adds nothing");
	is(count(id, 1, SECOND, 2, SHMLIMIT_COUNT_SATURATE, T0 + 500 * MS), SHMLIMIT_ALLOWED,
	   "a count above the bound is allowed to saturate");
	ok(c.count == 2 && c.applied == -1, "saturating lowers a count to the bound, as INCREX does");
	is(count(id, 1, 2 * SECOND, 9, SHMLIMIT_COUNT_RESTART, T0 + 900 * MS), SHMLIMIT_ALLOWED,
	   "RESTART with an addition is allowed");
	ok(c.count == 3 && ms(c.ttl_ns) == 2000, "RESTART begins the time again");
	is(count(id, 0, 3 * SECOND, 9, SHMLIMIT_COUNT_RESTART, T0 + 900 * MS), SHMLIMIT_ALLOWED,
	   "RESTART is allowed if nothing is added");
	ok(c.count == 3 && ms(c.ttl_ns) == 3000, "RESTART begins the time of an existing count again");
	is(count(id, 0, 2 * SECOND, 9, SHMLIMIT_COUNT_LONGER, T0 + 900 * MS), SHMLIMIT_ALLOWED,
	   "LONGER with a shorter time is allowed");
	ok(c.count == 3 && ms(c.ttl_ns) == 3000, "LONGER leaves a longer time as it is");
	is(count(id, 9, 9 * SECOND, 9, SHMLIMIT_COUNT_RESTART, T0 + 900 * MS), SHMLIMIT_DENIED, "what is denied");
	ok(c.count == 3 && ms(c.ttl_ns) == 3000, "does not");
	is(count(id, 0, 0, 9, 0, T0 + 3901 * MS), SHMLIMIT_ALLOWED, "when its time is over");
	ok(c.count == 0 && c.ttl_ns == 0, "a count is 0");
	is((int)unit_slots(l, SHMLIMIT_SLOT_LIVE, T0 + 3901 * MS), 0, "an expired count leaves its slot to other keys");
	is(count(id, 2, SECOND, 9, 0, T0 + 3901 * MS), SHMLIMIT_ALLOWED, "an addition to an expired count is allowed");
	ok(c.count == 2 && ms(c.ttl_ns) == 1000, "is the first of another");
	is(count(id, INT64_MAX, SECOND, INT64_MAX, 0, T0 + 3901 * MS), SHMLIMIT_DENIED, "no sum overflows");
	is(count(id, INT64_MIN, SECOND, INT64_MAX, 0, T0 + 3901 * MS), SHMLIMIT_DENIED, "no difference overflows");
	is(count(id, 2147483645, SECOND, INT64_MAX, 0, T0 + 3901 * MS), SHMLIMIT_ALLOWED, "2^31 - 1 can be counted");
	is(count(id, 1, SECOND, INT64_MAX, 0, T0 + 3901 * MS), SHMLIMIT_DENIED,
	   "a count above 2^31 - 1 is denied by default");
	is(shmlimit_count(at_time(l, T0 + 3901 * MS), id, "k", 1,
	                  &(struct shmlimit_count_request){
				  .struct_size = sizeof(struct shmlimit_count_request), .n = 0, .bound = 0 },
	                  NULL),
	   SHMLIMIT_ALLOWED, "no answer need be wanted");
}

/* A read-only handle looks at a key that is left in the old table: it carries nothing, and writes nothing. */
static void looks(void)
{
	struct shmlimit *old = unit_create("count", NULL), *reader;
	struct shmlimit_rule counter = { .struct_size = sizeof(counter), .algorithm = SHMLIMIT_COUNTER };
	struct shmlimit_info info = { .struct_size = sizeof(info) };
	int id = shmlimit_rule_set(old, "r", &counter);

	if (id < 0 ||
	    shmlimit_count(old, id, "k", 1,
	                   &(struct shmlimit_count_request){ .struct_size = sizeof(struct shmlimit_count_request),
	                                                     .n = 3,
	                                                     .bound = 9,
	                                                     .ttl_ns = 3600 * SECOND },
	                   NULL) != SHMLIMIT_ALLOWED)
		bail("count");
	shmlimit_info(old, &info);
	is(shmlimit_grow(old, 4 * info.slots), 0, "a segment with a count grows");
	if (shmlimit_open(unit_name, SHMLIMIT_OPEN_READ_ONLY, NULL, &reader) != 0)
		bail("open");
	c = (struct shmlimit_count){ .struct_size = sizeof(c) };
	is(shmlimit_count(reader, id, "k", 1,
	                  &(struct shmlimit_count_request){
				  .struct_size = sizeof(struct shmlimit_count_request), .n = 0, .bound = 9 },
	                  &c),
	   SHMLIMIT_ALLOWED, "a read-only handle reads a count that is left in the old table");
	is(c.count, 3, "the count is the same after growing");
	is(shmlimit_count(reader, id, "k", 1,
	                  &(struct shmlimit_count_request){
				  .struct_size = sizeof(struct shmlimit_count_request), .n = 1, .bound = 9 },
	                  NULL),
	   -EROFS, "a read-only handle adds nothing");
	shmlimit_close(reader);
	shmlimit_close(old);
}

static void errors(void)
{
	int id = rule("errors", 0, 0), funnel = unit_rule(l, "funnel", 5, 5, SECOND);
	struct shmlimit_rule bad = { .struct_size = sizeof(bad), .algorithm = SHMLIMIT_COUNTER };
	uint64_t longest_ns = range_of(id).refill_ns;

	is(count(id, 1, longest_ns, 1, 0, T0), SHMLIMIT_ALLOWED,
	   "the longest time to live, a period's by default, is accepted");
	is(count(id, 1, longest_ns + 1, 1, 0, T0), -ERANGE, "a longer one is not");
	is(count(id, 1, SECOND, -1, 0, T0), -EINVAL, "a bound below 0 is refused");
	is(count(id, 1, SECOND, 1, 4, T0), -EINVAL, "an unknown flag is refused");
	is(count(funnel, 1, SECOND, 1, 0, T0), -EOPNOTSUPP, "a funnel does not count");
	is(count(9, 1, SECOND, 1, 0, T0), -ESRCH, "an id of no rule is refused");
	is(count(-1, 1, SECOND, 1, 0, T0), -ESRCH, "whatever its number");
	is(shmlimit_count(
		   NULL, id, "k", 1,
		   &(struct shmlimit_count_request){
			   .struct_size = sizeof(struct shmlimit_count_request), .n = 1, .bound = 1, .ttl_ns = SECOND },
		   NULL),
	   -EINVAL, "a limiter is needed");
	is(shmlimit_count(
		   l, id, NULL, 1,
		   &(struct shmlimit_count_request){
			   .struct_size = sizeof(struct shmlimit_count_request), .n = 1, .bound = 1, .ttl_ns = SECOND },
		   NULL),
	   -EINVAL, "a key is needed");
	is(shmlimit_count(
		   l, id, "k", 0,
		   &(struct shmlimit_count_request){
			   .struct_size = sizeof(struct shmlimit_count_request), .n = 1, .bound = 1, .ttl_ns = SECOND },
		   NULL),
	   -EMSGSIZE, "with a length");
	c.struct_size = 4;
	is(shmlimit_count(
		   at_time(l, T0), id, "new", 3,
		   &(struct shmlimit_count_request){
			   .struct_size = sizeof(struct shmlimit_count_request), .n = 1, .bound = 1, .ttl_ns = SECOND },
		   &c),
	   -EINVAL, "an answer says how large it is");
	is(shmlimit_peek(at_time(l, T0), id, "new", 3, 0, &r), SHMLIMIT_ALLOWED,
	   "a peek finds that a refused call did nothing");
	is(r.remaining, r.limit, "a call with a bad structure counts nothing");
	bad.max_wait_ns = 1;
	is(shmlimit_rule_set(l, "bad", &bad), -EINVAL, "a counter owes nothing");
	bad.max_wait_ns = 0;
	bad.refill = 3;
	is(shmlimit_rule_set(l, "bad", &bad), -EINVAL, "a counter that refills is refused");
	bad.refill = 0;
	bad.capacity = SHMLIMIT_CAPACITY_MAX + 1;
	is(shmlimit_rule_set(l, "bad", &bad), -ERANGE, "a capacity above 2^48 is refused");
	bad.capacity = SHMLIMIT_CAPACITY_MAX - 1;
	bad.period_ns = 366 * DAY;
	ok(shmlimit_rule_set(l, "bad", &bad) >= 0, "a counter to 2^48 can have a period of a year");
	ok(set("year", 67108863, 366 * DAY) >= 0 && range_of(shmlimit_rule_find(l, "year")).resolution_ps <= 1000 * MS,
	   "a counter to 2^26 for a year tells half milliseconds");
	is(longest_ns, 366 * DAY, "by default a count may live for 366 days");
	ok(range_of(id).resolution_ps <= 10000 * MS, "a counter by default tells hundredths of a second");
	id = rule("hour", 5, 3600 * SECOND);
	is(count(id, 1, 3600 * SECOND, 5, 0, T0), SHMLIMIT_ALLOWED, "a count may live for the rule's period");
	is(count(id, 1, 3600 * SECOND + 1, 5, 0, T0), -ERANGE, "no count may live for longer than the rule's period");
}

static void window(void)
{
	int id = rule("window", 5, SECOND);
	struct shmlimit_request both[2] = { { .rule = id, .key = "a", .key_len = 1, .cost = 2 },
		                            { .rule = id, .key = "b", .key_len = 1, .cost = 6 } };
	size_t failed = 9;

	is(take(id, 3, T0), SHMLIMIT_ALLOWED, "a take opens a window of the rule's period");
	ok(r.limit == 5 && r.remaining == 2 && ms(r.reset_after_ns) == 1000,
	   "a take reports what is left of the window");
	is(take(id, 3, T0 + 400 * MS), SHMLIMIT_DENIED, "more than the capacity is denied");
	ok(r.remaining == 2 && ms(r.retry_after_ns) == 600, "a denial reports when the window ends");
	is(take(id, 6, T0 + 400 * MS), SHMLIMIT_DENIED, "what never fits");
	is(r.retry_after_ns, UINT64_MAX, "is said never to");
	is(shmlimit_peek(at_time(l, T0 + 400 * MS), id, "k", 1, 2, &r), SHMLIMIT_ALLOWED, "a peek takes nothing");
	is(r.remaining, 2, "it says what is left now");
	is(shmlimit_refund(at_time(l, T0 + 400 * MS), id, "k", 1, 1, &r), SHMLIMIT_ALLOWED, "a refund gives back");
	is(r.remaining, 3, "what it says");
	is(shmlimit_charge(at_time(l, T0 + 400 * MS), id, "k", 1, 9, &r), SHMLIMIT_ALLOWED,
	   "a charge takes what there is");
	ok(r.remaining == 0 && r.retry_after_ns == UINT64_MAX, "a charge reports that not all was charged");
	is(shmlimit_reserve(at_time(l, T0 + 400 * MS), id, "k", 1, 1, SECOND, &r), SHMLIMIT_DENIED,
	   "nothing can be reserved in the next window");
	is(take(id, 5, T0 + 1001 * MS), SHMLIMIT_ALLOWED,
	   "the next window begins with the first request after this one");
	is(shmlimit_take_all(l, both, 2, &failed, NULL), SHMLIMIT_DENIED, "of several limits, one denies");
	is((long long)failed, 1, "take_all names the limit that has not enough");
	is(shmlimit_peek(l, id, "a", 1, 5, NULL), SHMLIMIT_ALLOWED, "take_all leaves the other limit as it was");
}

/* A number, until a time. */
struct plain {
	int64_t n;
	uint64_t until_ns;
};

static int64_t smaller(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* What shmlimit_count() has to do. Returns the answer. */
static int plainly(struct plain *p, const struct layout_params *params, int64_t n, uint64_t ttl_ns, int64_t bound,
                   uint32_t flags, uint64_t now_ns, struct shmlimit_count *want)
{
	uint64_t tick = count_tick_ns(params);
	int64_t most = smaller(bound, (int64_t)params->capacity), sum = p->n + n;
	int lives = p->until_ns > now_ns, restarts = (flags & SHMLIMIT_COUNT_RESTART) != 0;

	if (!lives)
		*p = (struct plain){ 0, 0 };
	sum = p->n + n;
	*want = (struct shmlimit_count){ .count = p->n, .ttl_ns = lives ? p->until_ns - now_ns : 0 };
	if (n != 0 && (sum > most || sum < 0)) {
		if (!(flags & SHMLIMIT_COUNT_SATURATE))
			return SHMLIMIT_DENIED;
		sum = sum < 0 ? 0 : most;
	}
	want->applied = sum - p->n;
	want->count = p->n = sum;
	if (flags & SHMLIMIT_COUNT_LONGER)
		restarts = lives && p->until_ns - now_ns < (ttl_ns != 0 ? ttl_ns : params->back);
	if (lives ? restarts : sum != 0)
		p->until_ns = (now_ns + (ttl_ns != 0 ? ttl_ns : params->back) + tick - 1) / tick * tick;
	want->ttl_ns = p->until_ns > now_ns ? p->until_ns - now_ns : 0;
	return SHMLIMIT_ALLOWED;
}

static unsigned history(struct rng *rng, int id, const struct layout_params *params, uint64_t key, uint64_t did[4])
{
	uint64_t now_ns = T0 + rng_below(rng, 1000 * SECOND), most_ns = 3 * MS;
	struct plain p = { 0, 0 };
	unsigned wrong = 0;

	for (int i = 0; i < ASKS; i++) {
		struct shmlimit_count want, got = { .struct_size = sizeof(got) };
		int64_t n = (int64_t)rng_below(rng, 9) - 3, bound = (int64_t)rng_below(rng, 12);
		uint64_t ttl_ns = rng_below(rng, 4) == 0 ? 0 : 1 + rng_below(rng, params->back);
		uint32_t flags = (uint32_t)rng_below(rng, 8) * SHMLIMIT_COUNT_SATURATE;
		int answer, expected;

		now_ns += rng_below(rng, 2) * rng_below(rng, most_ns);
		if (rng_below(rng, 4) == 0) {
			n = (int64_t)rng_below(rng, 6);
			bound = (int64_t)params->capacity;
			flags = 0;
			ttl_ns = 0;
			expected = plainly(&p, params, n, ttl_ns, bound, flags, now_ns, &want);
			answer = shmlimit_take(at_time(l, now_ns), id, &key, sizeof(key), (uint64_t)n, &r);
			wrong += answer != expected || r.remaining != params->capacity - (uint64_t)want.count ||
			         r.reset_after_ns != want.ttl_ns;
		} else {
			expected = plainly(&p, params, n, ttl_ns, bound, flags, now_ns, &want);
			answer = shmlimit_count(
				at_time(l, now_ns), id, &key, sizeof(key),
				&(struct shmlimit_count_request){ .struct_size = sizeof(struct shmlimit_count_request),
			                                          .flags = flags,
			                                          .n = n,
			                                          .bound = bound,
			                                          .ttl_ns = ttl_ns },
				&got);
			wrong += answer != expected || got.count != want.count || got.applied != want.applied ||
			         got.ttl_ns != want.ttl_ns;
		}
		did[answer == SHMLIMIT_DENIED]++;
		did[2] += want.applied != 0 && want.applied != n;
	}
	return wrong;
}

static void histories(void)
{
	struct rng rng = { rng_seed() };
	uint64_t did[4] = { 0 };
	unsigned wrong = 0;

	for (uint64_t i = 0; i < scaled(HISTORIES) && wrong == 0; i++) {
		static struct rule_view view;
		static int id;

		if (i % HISTORIES_A_RULE == 0) {
			/* Ticks are a thousandth of the period, or 2 us beside 2^48. */
			id = rule("history", rng_below(&rng, 2) ? 1 + rng_below(&rng, 10) : SHMLIMIT_CAPACITY_MAX,
			          (1 + rng_below(&rng, 4)) * MS);
			if (rule_load(l, (uint32_t)id, &view) != 0)
				bail("rule_load");
		}
		if (i % HISTORIES_A_TABLE == 0)
			shmlimit_reset(l, id, NULL, 0);
		wrong += history(&rng, id, &view.params, i, did);
	}
	is(wrong, 0, "a million random histories are those of a number that expires");
	ok(did[0] > scaled(HISTORIES) && did[1] > scaled(HISTORIES) && did[2] > scaled(HISTORIES) / 10,
	   "in which much is allowed, denied and applied in part");
}

/* ---- Changes of the rule ---- */

/* As reported by users: what was counted, what had ended and how long a count lives, across a change of the rule. */
static void changed(void)
{
	int id = rule("changed", 100, 3600 * SECOND);

	take(id, 100, T0);
	rule("changed", 1, 3600 * SECOND);
	is(take(id, 1, T0), SHMLIMIT_DENIED, "a lowered capacity is exceeded by what was counted before");
	ok(r.remaining == 0 && r.limit == 1, "no more is left than nothing");
	is(count(id, 0, 0, 0, 0, T0), SHMLIMIT_ALLOWED, "the count can be read");
	is(c.count, 100, "a count above a lowered capacity is what was counted");
	is(count(id, 1, 0, INT64_MAX, 0, T0), SHMLIMIT_DENIED, "nothing is added to it");
	shmlimit_refund(at_time(l, T0), id, "k", 1, 1, &r);
	is(r.remaining, 0, "what is given back is taken off the count, not off the capacity");
	rule("changed", 100, 3600 * SECOND);
	is(take(id, 2, T0), SHMLIMIT_DENIED, "a capacity that is lowered and raised again forgets nothing");
	is(r.remaining, 1, "what was given back under the lowered capacity is free under the raised one");

	shmlimit_reset(l, id, NULL, 0);
	rule("changed", 10000000000, 3600 * SECOND);
	take(id, 9999999999, T0);
	rule("changed", 100, 3600 * SECOND);
	shmlimit_refund(at_time(l, T0), id, "k", 1, 1, &r);
	rule("changed", 10000000000, 3600 * SECOND);
	is(take(id, 1, T0), SHMLIMIT_DENIED,
	   "a count of more than the bits of a lowered capacity uses up all of a raised one");
	is(take(id, 1, T0 + 3601 * SECOND), SHMLIMIT_ALLOWED,
	   "a count of more than the bits of a lowered capacity ends with its time");

	id = rule("days", 1000000, 0);
	count(id, 7, 30 * DAY, 1000000, 0, T0);
	for (uint64_t capacity = 10000000000; capacity <= 100000000000000; capacity *= 100) {
		uint64_t tick_ns;

		rule("days", capacity, 0);
		tick_ns = range_of(id).resolution_ps / 1000;
		count(id, 0, 0, 0, 0, T0);
		ok(c.count == 7 && c.ttl_ns >= 30 * DAY && c.ttl_ns < 30 * DAY + 2 * tick_ns && tick_ns < DAY / 20,
		   "a capacity of %" PRIu64 " leaves 30 days to live, to a tick", capacity);
	}
	rule("days", 1000000, DAY);
	count(id, 0, 0, 0, 0, T0);
	is(ms(c.ttl_ns), ms(DAY), "a shorter period shortens the time to live to it");
}

static const uint64_t capacities[] = {
	1,          2,          100,          ((uint64_t)1 << 26) - 1, (uint64_t)1 << 26,
	2147483647, 2147483648, 100000000000, 1000000000000,           SHMLIMIT_CAPACITY_MAX
};
static const uint64_t periods[] = { 0,        1,           1000,          10 * MS,
	                            SECOND,   60 * SECOND, 3600 * SECOND, DAY,
	                            30 * DAY, 366 * DAY,   9 * 366 * DAY, (uint64_t)1 << 60 };
#define CAPACITIES (sizeof(capacities) / sizeof(capacities[0]))
#define PERIODS (sizeof(periods) / sizeof(periods[0]))
#define RULES (CAPACITIES * PERIODS)

/* The zero params: the rule is refused. */
static struct layout_params params_of(size_t i)
{
	struct shmlimit_rule rule = { .capacity = capacities[i % CAPACITIES], .period_ns = periods[i / CAPACITIES] };
	struct layout_params params = { 0 };

	if (count_compile(&rule, &params) != 0)
		return (struct layout_params){ 0 };
	return params;
}

static uint64_t lesser(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* A word that is read `after` nanoseconds later, under two rules one after the other. Returns 1 if all is right. */
static int converts(const struct layout_params *from, const struct layout_params *to, uint64_t n, uint64_t ttl_ns,
                    uint64_t now_ns, uint64_t after_ns, uint64_t later_ns)
{
	struct count count = { .n = n }, then, got, back;
	uint64_t word, most = count_largest(to), least_ns;

	count_begin(from, &count, ttl_ns, now_ns);
	word = count_pack(from, count);
	then = count_read(from, word, now_ns + after_ns);
	word = count_convert(from, word, to, now_ns + after_ns);
	got = count_read(to, word, now_ns + after_ns);
	if (after_ns >= count.left_ns) {
		uint64_t past_ns = count_range_ns(to) / 2 - count_tick_ns(to);
		struct count late = count_read(to, word, now_ns + after_ns + later_ns % past_ns);

		return then.left_ns == 0 && got.left_ns == 0 && got.n == 0 && late.left_ns == 0 && late.n == 0;
	}
	least_ns = lesser(then.left_ns, to->debt);
	if (then.n != n || got.stepped || got.n != lesser(n, most) || got.left_ns < least_ns ||
	    got.left_ns > to->ahead || got.left_ns - least_ns > to->ahead - to->debt ||
	    (then.left_ns <= to->debt && got.left_ns - least_ns >= count_tick_ns(to)))
		return 0;
	/* And back again: nothing is forgotten; what fits is as it was. */
	back = count_read(from, count_convert(to, word, from, now_ns + after_ns), now_ns + after_ns);
	if (n < most || to->capacity >= most)
		return back.n == got.n;
	return back.n == (got.n == most && most > to->capacity && most < from->capacity ? from->capacity : got.n);
}

static void every_change(void)
{
	struct rng rng = { rng_seed() };
	/* Where a call is slow, each rule is changed to some of the others. */
	size_t some = (size_t)(1000 / (scaled(1000) | 1)) | 1;
	uint64_t wrong = 0, tried = 0;

	for (size_t i = 0; i < RULES; i++)
		for (size_t j = i % some; j < RULES; j += some) {
			struct layout_params from = params_of(i), to = params_of(j);
			uint64_t tick = count_tick_ns(&from), longest = from.debt | (from.debt == 0);
			uint64_t ttls[] = { 1, longest / 3, longest - longest / 1000, longest };
			uint64_t ns[] = { 0, 1, from.capacity / 2, from.capacity - 1, from.capacity };

			for (size_t k = 0; k < 20 && from.debt != 0 && to.debt != 0; k++) {
				uint64_t ttl = ttls[k % 4] | (ttls[k % 4] == 0), n = ns[k / 4];
				uint64_t now = T0 + rng_below(&rng, (uint64_t)1 << 61);
				uint64_t afters[] = { 0,
					              1,
					              ttl / 2,
					              ttl - 1,
					              ttl,
					              ttl + 1,
					              ttl + tick,
					              ttl + 2 * tick,
					              2 * ttl,
					              rng_below(&rng, ttl),
					              ttl + rng_below(&rng, longest) };

				for (size_t m = 0; m < sizeof(afters) / sizeof(afters[0]); m++, tried++) {
					if (converts(&from, &to, n, ttl, now, afters[m], rng_draw(&rng)))
						continue;
					if (++wrong <= 3)
						diag("capacity %" PRIu64 " to %" PRIu64 ", period %" PRIu64
						     " to %" PRIu64 ": %" PRIu64 " for %" PRIu64 " ns, after %" PRIu64,
						     from.capacity, to.capacity, from.debt, to.debt, n, ttl, afters[m]);
				}
			}
		}
	is(wrong, 0,
	   "every change of a rule, at every moment of a life, keeps the count and its end: %" PRIu64 " tried", tried);
}

/* A tick is short beside the life, and sweeps of the table are rare beside it: what shmlimit(7) says of them. */
static void ticks_and_ranges(void)
{
	uint64_t long_ticks = 0, short_ranges = 0, alive = 0, refused = 0, wrongly = 0;

	for (size_t i = 0; i < RULES; i++) {
		struct layout_params params = params_of(i);
		uint64_t half_ns = count_range_ns(&params) / 2 + 1;

		if (params.debt == 0) {
			refused++;
			wrongly += periods[i / CAPACITIES] > MS || periods[i / CAPACITIES] == 0 ||
			           capacities[i % CAPACITIES] < (uint64_t)1 << 41;
			continue;
		}
		long_ticks += count_tick_ns(&params) > 1 && count_tick_ns(&params) > params.debt / 512 &&
		              count_tick_ns(&params) > MS / 1024;
		short_ranges += half_ns < params.ahead || half_ns - params.debt < lesser(7 * params.debt, 30 * DAY);
		for (uint64_t ago_ns = 0; ago_ns < 4000 * DAY; ago_ns = 3 * ago_ns + 1) {
			struct rebase rebase = { .now_ns = 5000 * DAY + 12345, .elapsed_ns = ago_ns };
			uint64_t word = algorithm_counter.load(&params, 5, 0, &rebase);

			alive += count_read(&params, word, rebase.now_ns).left_ns != 0;
		}
	}
	ok(refused > 0 && wrongly == 0,
	   "periods below a millisecond are refused beside the largest capacities, and no others");
	is(alive, 0, "a count that ended before it was loaded is over");
	is(long_ticks, 0, "no tick is longer than a five hundredth of the longest time to live");
	is(short_ranges, 0, "a word tells the past and the future for seven lives or thirty days more than a life");
}

/* A process with write access may set any capacity, in all versions of a rule. */
static void damaged_capacity(void)
{
	struct shmlimit *other = unit_create("count", NULL);
	struct shmlimit_rule counter = {
		.struct_size = sizeof(counter), .algorithm = SHMLIMIT_COUNTER, .capacity = 100, .period_ns = 60 * SECOND
	};
	static const uint64_t wild[] = { UINT64_MAX, ((uint64_t)1 << 63) + 5, (uint64_t)1 << 63, INT64_MAX, 1, 0 };
	int id = shmlimit_rule_set(at_time(other, T0), "r", &counter);
	uint64_t wrong = 0;

	for (size_t w = 0; w < sizeof(wild) / sizeof(wild[0]); w++) {
		struct shmlimit_count got = { .struct_size = sizeof(got) };

		for (unsigned version = 0; version < RULE_VERSIONS; version++)
			other->rules[id].params[version].capacity = wild[w];
		for (uint32_t i = 0; i < 4; i++) {
			uint32_t flags = i * SHMLIMIT_COUNT_SATURATE;

			shmlimit_count(
				at_time(other, T0), id, "k", 1,
				&(struct shmlimit_count_request){ .struct_size = sizeof(struct shmlimit_count_request),
			                                          .flags = flags,
			                                          .n = 50 - 13 * (int64_t)i,
			                                          .bound = 1000 },
				&got);
			wrong += got.count < 0 || got.count > 1000;
			shmlimit_count(
				at_time(other, T0), id, "k", 1,
				&(struct shmlimit_count_request){ .struct_size = sizeof(struct shmlimit_count_request),
			                                          .flags = flags,
			                                          .n = INT64_MAX,
			                                          .bound = INT64_MAX },
				&got);
			wrong += got.count < 0;
			shmlimit_count(
				at_time(other, T0), id, "k", 1,
				&(struct shmlimit_count_request){ .struct_size = sizeof(struct shmlimit_count_request),
			                                          .flags = flags,
			                                          .n = -INT64_MAX,
			                                          .bound = INT64_MAX },
				&got);
			wrong += got.count < 0;
		}
		shmlimit_take(at_time(other, T0), id, "k", 1, UINT64_MAX, &r);
		shmlimit_take(at_time(other, T0), id, "k", 1, (uint64_t)1 << 62, &r);
		shmlimit_charge(at_time(other, T0), id, "k", 1, UINT64_MAX, &r);
		wrong += r.remaining > r.limit;
		shmlimit_reset(other, id, NULL, 0);
	}
	is(wrong, 0, "whatever capacity is written over a rule's, no count is below 0 or above its bound");
	shmlimit_close(other);
}

int main(void)
{
	/* Few slots: a history begins at any time, so that the whole table is swept for each. */
	struct shmlimit_options options = { .struct_size = sizeof(options),
		                            .slots = 64,
		                            .on_full = SHMLIMIT_FULL_DENY };

	looks();
	damaged_capacity();
	l = unit_create("count", &options);
	counting();
	errors();
	window();
	changed();
	every_change();
	ticks_and_ranges();
	histories();
	is(shmlimit_verify(unit_name, NULL, 0), 0, "the segment is sound");
	shmlimit_close(l);
	return tap_done();
}
