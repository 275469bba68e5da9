/*
 * boundary: through the public calls, a token is available at the nanosecond at which it is due and not one before,
 * from any start.
 *
 * I1: never early, to the rule's printed resolution; if that is below a nanosecond, to the nanosecond.
 * I2: never late: a caller that always asks gets capacity + rate * time, however often it asks.
 * What a decision reports (remaining, retry_after_ns, reset_after_ns) is exact: true at that time, and not yet true a
 * nanosecond earlier.
 *
 * The k-th token after a funnel was emptied at t0 is due at t0 + ceil(k * period / count).
 *
 * SEED=n repeats a run; TEST_SCALE=n makes it n times as long.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "draw.h"
#include "unit.h"

#define DAY (86400 * SECOND)

typedef unsigned __int128 u128;

static struct shmlimit *l;

/* A rule, and by how much its answers may be early. */
struct limit {
	const char *name;
	uint64_t capacity, count, period_ns;
	uint64_t early_ns; /* 0: it has to be exact */
	int id;
};

static struct limit limits[] = {
	{ .name = "5/s", .capacity = 5, .count = 5, .period_ns = SECOND },
	{ .name = "3/s", .capacity = 3, .count = 3, .period_ns = SECOND },
	{ .name = "7/60s", .capacity = 7, .count = 7, .period_ns = 60 * SECOND },
	{ .name = "30/60s", .capacity = 15, .count = 30, .period_ns = 60 * SECOND },
	{ .name = "100/day", .capacity = 100, .count = 100, .period_ns = DAY },
	{ .name = "1/day", .capacity = 1, .count = 1, .period_ns = DAY },
	{ .name = "10/s, burst 20", .capacity = 20, .count = 10, .period_ns = SECOND },
	{ .name = "1000/s, burst 15", .capacity = 15, .count = 1000, .period_ns = SECOND },
	{ .name = "1000/s, burst 511", .capacity = 511, .count = 1000, .period_ns = SECOND },
	{ .name = "1/us, burst 1", .capacity = 1, .count = 1, .period_ns = 1000 },
	{ .name = "1/us, burst 100", .capacity = 100, .count = 1, .period_ns = 1000 },
	/* Of these the words have no quota. */
	{ .name = "1000000/s, burst 1000000", .capacity = 1000000, .count = 1000000, .period_ns = SECOND },
	{ .name = "125 MB/s, burst 10 MB", .capacity = 10000000, .count = 125000000, .period_ns = SECOND },
	{ .name = "1 GB/day", .capacity = 1000000000, .count = 1000000000, .period_ns = DAY },
	{ .name = "150000000/60s", .capacity = 150000000, .count = 150000000, .period_ns = 60 * SECOND },
	{ .name = "100 GB/month", .capacity = 100000000000, .count = 100000000000, .period_ns = 30 * DAY },
};

/* Of these a tick is longer than a nanosecond. */
static struct limit coarse[] = {
	{ .name = "1000000/s, burst 1000", .capacity = 1000, .count = 1000000, .period_ns = SECOND },
	{ .name = "1000/s, burst 100000", .capacity = 100000, .count = 1000, .period_ns = SECOND },
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

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

/* A time that leaves room for `refill_ns` a few times: any, on a whole period, or near the end of time. */
static uint64_t some_start(const struct limit *limit)
{
	uint64_t room = 4 * due(limit, limit->capacity) + 8 * due(limit, 8) + SECOND;

	switch (up_to(3)) {
	case 0:
		return draw() >> (2 + up_to(60));
	case 1:
		return (draw() >> (2 + up_to(30))) / limit->period_ns * limit->period_ns;
	case 2:
		return UINT64_MAX - room - up_to(1000);
	default:
		return up_to(UINT64_MAX - room);
	}
}

/* ---- One law after another, on one key ---- */

static const struct limit *limit; /* that is being tried */
static uint64_t key, wrong;
static struct shmlimit_result r;

static void expect(int holds, const char *law, uint64_t start, uint64_t at)
{
	if (holds || ++wrong > 3)
		return;
	diag("%s: not so: %s; emptied at %" PRIu64 ", now + %" PRIu64, limit->name, law, start, at - start);
	diag("limit %" PRIu64 " remaining %" PRIu64 " retry %" PRIu64 " reset %" PRIu64, r.limit, r.remaining,
	     r.retry_after_ns, r.reset_after_ns);
}

static int peek(uint64_t cost, uint64_t at)
{
	int answer = shmlimit_peek(at_time(l, at), limit->id, &key, sizeof(key), cost, &r);

	if (answer < 0)
		bail("peek: %s", shmlimit_strerror(answer));
	return answer;
}

/* Take; a peek just before says the same. */
static int take(uint64_t cost, uint64_t at)
{
	int foreseen = peek(cost, at);
	struct shmlimit_result before = r;
	int answer = shmlimit_take(at_time(l, at), limit->id, &key, sizeof(key), cost, &r);

	if (answer < 0)
		bail("take: %s", shmlimit_strerror(answer));
	expect(answer == foreseen && r.retry_after_ns == before.retry_after_ns &&
	               r.remaining == before.remaining - (answer == SHMLIMIT_ALLOWED ? cost : 0) &&
	               r.limit == before.limit,
	       "a take does what a peek said", at, at);
	return answer;
}

/* What is said to come in `told` is due in `right`. */
static int agrees(uint64_t told, uint64_t right)
{
	return told <= right && right - told <= limit->early_ns;
}

/* Empty the funnel; then token by token, each taken on its boundary. */
static void token_by_token(uint64_t start)
{
	uint64_t last = limit->capacity < 8 ? limit->capacity + 3 : 8;

	expect(take(limit->capacity, start) == SHMLIMIT_ALLOWED, "a new key has the whole capacity", start, start);
	expect(r.remaining == 0 && agrees(r.reset_after_ns, due(limit, limit->capacity)),
	       "a new key has nothing left when its capacity was taken", start, start);
	expect(take(1, start) == SHMLIMIT_DENIED && agrees(r.retry_after_ns, due(limit, 1)),
	       "a key without tokens is denied", start, start);
	for (uint64_t k = 1; k <= last; k++) {
		uint64_t at = start + due(limit, k);

		expect(take(1, at - 1 - limit->early_ns) == SHMLIMIT_DENIED, "a token is not there a nanosecond early",
		       start, at - 1 - limit->early_ns);
		expect(agrees(r.retry_after_ns, 1 + limit->early_ns), "it is said to come in one", start, at - 1);
		expect(take(1, at) == SHMLIMIT_ALLOWED, "it is there on its boundary", start, at);
		expect(r.remaining == 0, "no other token is there on a token's boundary", start, at);
		expect(agrees(r.reset_after_ns, due(limit, limit->capacity + k) - due(limit, k)), "full as foreseen",
		       start, at);
	}
}

/* Empty the funnel; then at any time ask for any number, and wait as long as the answer says. */
static void as_told(uint64_t start)
{
	uint64_t cost = up_to(1) ? 1 + up_to(limit->capacity - 1) : limit->capacity;
	uint64_t at = start + up_to(due(limit, limit->capacity) - 1), retry, reset;

	take(limit->capacity, start);
	if (up_to(1)) /* in between two tokens */
		at = start + due(limit, up_to(limit->capacity - 1)) + up_to(due(limit, 1) - 1);
	peek(cost, at);
	retry = r.retry_after_ns;
	reset = r.reset_after_ns;
	expect(r.remaining >= refilled(limit, at - start) &&
	               r.remaining <= refilled(limit, at - start + limit->early_ns) && r.limit == limit->capacity,
	       "what has refilled remains", start, at);
	if (retry != 0) {
		expect(agrees(retry, due(limit, cost) - (at - start)), "a wait is what is missing", start, at);
		expect(take(cost, at) == SHMLIMIT_DENIED, "what does not fit is denied", start, at);
		expect(peek(cost, at + retry - 1) == SHMLIMIT_DENIED && r.remaining == cost - 1,
		       "it does not fit before the wait is over", start, at + retry - 1);
		expect(peek(cost, at + retry) == SHMLIMIT_ALLOWED && r.remaining == cost, "it fits when it is", start,
		       at + retry);
	}
	if (reset != 0) {
		expect(agrees(reset, due(limit, limit->capacity) - (at - start)), "full when all has refilled", start,
		       at);
		peek(0, at + reset - 1);
		expect(r.remaining == limit->capacity - 1, "not full a nanosecond before it is said to be", start,
		       at + reset - 1);
		peek(0, at + reset);
		expect(r.remaining == limit->capacity && r.reset_after_ns == 0, "full when it is said to be", start,
		       at + reset);
	}
	if (retry != 0)
		expect(take(cost, at + retry - 1) == SHMLIMIT_DENIED, "denied a nanosecond early", start,
		       at + retry - 1);
	expect(take(cost, at + retry) == SHMLIMIT_ALLOWED, "allowed at the end of the wait", start, at + retry);
}

static void try(const struct limit *which, uint64_t rounds)
{
	limit = which;
	for (uint64_t i = 0; i < rounds; i++) {
		uint64_t start = some_start(limit);

		key = draw();
		token_by_token(start);
		shmlimit_reset(l, limit->id, &key, sizeof(key));
		as_told(start);
		shmlimit_reset(l, limit->id, &key, sizeof(key));
	}
}

static void define(struct limit *which)
{
	which->id = unit_rule(l, "r", which->capacity, which->count, which->period_ns);
}

static void undefine(void)
{
	shmlimit_rule_remove(l, "r");
}

static struct shmlimit_range range_of(const struct limit *which)
{
	struct shmlimit_range range = { .struct_size = sizeof(range) };

	if (shmlimit_rule_range(l, which->id, &range) != 0)
		bail("no range");
	return range;
}

static void exact(void)
{
	for (size_t i = 0; i < COUNT(limits); i++) {
		define(&limits[i]);
		ok(range_of(&limits[i]).resolution_ps <= 1000, "%s: a tick is no longer than a nanosecond",
		   limits[i].name);
		wrong = 0;
		try(&limits[i], scaled(500));
		is(wrong, 0, "%s: each token is there on its nanosecond and not one before, as is foretold",
		   limits[i].name);
		undefine();
	}
}

static void to_a_tick(void)
{
	for (size_t i = 0; i < COUNT(coarse); i++) {
		uint64_t tick_ps;

		define(&coarse[i]);
		tick_ps = range_of(&coarse[i]).resolution_ps;
		ok(tick_ps > 1000, "%s: a tick is longer than a nanosecond", coarse[i].name);
		coarse[i].early_ns = (tick_ps + 999) / 1000 - 1;
		wrong = 0;
		try(&coarse[i], scaled(300));
		is(wrong, 0, "%s: each token is there on its nanosecond and not a tick before, as is foretold",
		   coarse[i].name);
		undefine();
	}
}

/* Odd periods and counts; a nanosecond may be short of a token by less than a tick. */
static void any_rule(void)
{
	uint64_t tried = 0;

	wrong = 0;
	while (tried < scaled(200)) {
		struct limit any = { .name = "any",
			             .capacity = 2 + (draw() >> (16 + up_to(47))),
			             .count = 1 + up_to(1000) };
		struct shmlimit_rule rule = { .struct_size = sizeof(rule),
			                      .capacity = any.capacity,
			                      .refill = any.count };

		any.period_ns = rule.period_ns = any.count * 1000 + (draw() >> (20 + up_to(30)));
		any.id = shmlimit_rule_set(l, "r", &rule);
		if (any.id == -ERANGE)
			continue;
		if (any.id < 0)
			bail("rule_set: %s", shmlimit_strerror(any.id));
		any.early_ns = (range_of(&any).resolution_ps + 999) / 1000;
		if (any.early_ns < any.period_ns / any.count) {
			tried++;
			try(&any, 3);
			if (wrong != 0)
				diag("capacity %" PRIu64 ", %" PRIu64 " / %" PRIu64, any.capacity, any.count,
				     any.period_ns);
		}
		undefine();
		if (wrong != 0)
			break;
	}
	is(wrong, 0, "any rule: each token is there on its nanosecond and not a tick before, as is foretold");
}

/* ---- Being asked often ---- */

/*
 * Take all but a few tokens; ask for one token `asks` times, up to `step_ns` apart, then until denied. Returns how many
 * were admitted.
 */
static uint64_t ask(uint64_t asks, uint64_t step_ns, uint64_t start, uint64_t *now)
{
	uint64_t admitted = limit->capacity > 1000 ? limit->capacity - 1000 : 0;

	*now = start;
	if (shmlimit_take(at_time(l, start), limit->id, &key, sizeof(key), admitted, NULL) != SHMLIMIT_ALLOWED)
		return 0;
	for (uint64_t i = 0; i < asks; i++) {
		admitted += shmlimit_take(at_time(l, *now), limit->id, &key, sizeof(key), 1, NULL) == SHMLIMIT_ALLOWED;
		*now += up_to(step_ns);
	}
	while (shmlimit_take(at_time(l, *now), limit->id, &key, sizeof(key), 1, NULL) == SHMLIMIT_ALLOWED)
		admitted++;
	return admitted;
}

static void often(struct limit *limits_to_ask, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t token, asks = scaled(30000), start, now, least, most, steps[3];

		limit = &limits_to_ask[i];
		if (limit->capacity < 2)
			continue; /* full with one token, so what comes back after it is lost: see one_at_a_time() */
		define(&limits_to_ask[i]);
		token = limit->period_ns / limit->count;
		steps[0] = 1;
		steps[1] = token / 20;
		steps[2] =
			token - 1; /* asked less often than a token comes back the funnel would be full for moments */
		wrong = 0;
		for (size_t j = 0; j < COUNT(steps); j++) {
			uint64_t admitted;

			key = draw();
			start = up_to(UINT64_MAX / 2);
			admitted = ask(asks, steps[j], start, &now);
			least = limit->capacity + refilled(limit, now - start);
			most = limit->capacity + refilled(limit, now - start + limit->early_ns);
			if ((admitted < least || admitted > most) && ++wrong <= 3)
				diag("%s: %" PRIu64 " admitted in %" PRIu64 " ns, want %" PRIu64, limit->name, admitted,
				     now - start, least);
		}
		is(wrong, 0, "%s: a caller that always asks gets capacity + rate * time, however often it asks",
		   limit->name);
		undefine();
	}
}

/* A funnel of one token: the next comes a period after the last was taken, to the nanosecond. */
static void one_at_a_time(void)
{
	struct limit one = { .name = "1/us", .capacity = 1, .count = 1, .period_ns = 1000 };
	uint64_t now = up_to(UINT64_MAX / 2), last = 0, start = now, admitted = 0;

	define(&one);
	limit = &one;
	wrong = 0;
	for (uint64_t i = 0; i < scaled(100000); i++) {
		int due_now = last == 0 || now - last >= 1000;

		if ((shmlimit_take(at_time(l, now), one.id, "k", 1, 1, NULL) == SHMLIMIT_ALLOWED) != due_now)
			wrong++;
		if (due_now)
			last = now;
		now += up_to(100);
	}
	is(wrong, 0, "a funnel of one token admits one a period, whenever it is asked");
	shmlimit_reset(l, one.id, "k", 1);
	for (now = start; now < start + 100000; now++)
		admitted += shmlimit_take(at_time(l, now), one.id, "k", 1, 1, NULL) == SHMLIMIT_ALLOWED;
	is(admitted, 100, "asked each nanosecond of 100 periods it admits 100");
	undefine();
}

/* ---- Costs ---- */

static void costs(void)
{
	wrong = 0;
	for (size_t i = 0; i < COUNT(limits); i++) {
		uint64_t start = some_start(&limits[i]);

		define(&limits[i]);
		limit = &limits[i];
		key = draw();
		expect(take(0, start) == SHMLIMIT_ALLOWED && r.remaining == limit->capacity && r.reset_after_ns == 0,
		       "a cost of 0 is allowed and takes nothing", start, start);
		expect(take(limit->capacity + 1, start) == SHMLIMIT_DENIED && r.retry_after_ns == UINT64_MAX &&
		               r.remaining == limit->capacity,
		       "a cost above the capacity never fits", start, start);
		expect(take(UINT64_MAX, start) == SHMLIMIT_DENIED && r.retry_after_ns == UINT64_MAX,
		       "the largest cost never fits", start, start);
		expect(take(limit->capacity, start) == SHMLIMIT_ALLOWED && r.remaining == 0,
		       "a cost of the capacity fits a full funnel", start, start);
		expect(take(0, start) == SHMLIMIT_ALLOWED && r.remaining == 0 && r.retry_after_ns == 0,
		       "a cost of 0 is allowed by an empty one", start, start);
		expect(take(limit->capacity + 1, start) == SHMLIMIT_DENIED && r.retry_after_ns == UINT64_MAX,
		       "a cost above the capacity still never fits", start, start);
		expect(take(limit->capacity, start) == SHMLIMIT_DENIED &&
		               r.retry_after_ns == due(limit, limit->capacity) && r.retry_after_ns == r.reset_after_ns,
		       "a cost of the capacity fits when the funnel is full", start, start);
		start += r.retry_after_ns;
		expect(take(limit->capacity, start - 1) == SHMLIMIT_DENIED && r.retry_after_ns == 1,
		       "a cost of the capacity does not fit a nanosecond before the funnel is full", start, start - 1);
		expect(take(limit->capacity, start) == SHMLIMIT_ALLOWED,
		       "the capacity can be taken when the funnel is full", start, start);
		undefine();
	}
	is(wrong, 0, "a cost of 0, of the capacity, and above it do what they should");
}

int main(void)
{
	struct shmlimit_options options = { .struct_size = sizeof(options), .slots = 64 };

	draws.state = rng_seed();
	l = unit_create("boundary", &options);
	exact();
	to_a_tick();
	any_rule();
	often(limits, COUNT(limits));
	often(coarse, COUNT(coarse));
	one_at_a_time();
	costs();
	shmlimit_close(l);
	return tap_done();
}
