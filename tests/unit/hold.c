/*
 * hold: HOLD rules: places that are held, by hand, and random histories against
 * a plain set of intervals (I13).
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <pthread.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "../rng.h"
#include "unit.h"
#include "unit_cells.h"

#include "clock.h"
#include "decide.h"
#include "generation.h"
#include "hold.h"
#include "hold_place.h"
#include "holder.h"
#include "limiter.h"
#include "ring.h"

#define T0 (1000 * SECOND)
#define PERIOD (10 * SECOND)
#define WINDOW_MAX 8
#define OWNER 1 /* of the first place, among the cells */
#define HISTORIES 100000
#define ASKS 16
#define HOLDERS 12

static struct shmlimit *l;
static struct shmlimit_result r;

static int set(const char *name, uint64_t capacity, uint64_t period_ns, uint32_t mode)
{
	struct shmlimit_rule rule = { .struct_size = sizeof(rule),
		                      .algorithm = SHMLIMIT_HOLD,
		                      .capacity = capacity,
		                      .period_ns = period_ns,
		                      .mode = mode };

	return shmlimit_rule_set(at_time(l, T0), name, &rule);
}

static int rule(const char *name, uint64_t capacity, uint64_t period_ns)
{
	return unit_id(set(name, capacity, period_ns, SHMLIMIT_ENFORCE));
}

static struct shmlimit_place none(void)
{
	return (struct shmlimit_place){ .struct_size = sizeof(struct shmlimit_place) };
}

/* To be bound to this process by the entry. */
static struct shmlimit_place binding(void)
{
	return (struct shmlimit_place){ .struct_size = sizeof(struct shmlimit_place), .flags = SHMLIMIT_PLACE_BIND };
}

static int enter_as(int id, struct shmlimit_place *hold, struct shmlimit_place as, uint64_t at)
{
	*hold = as;
	return shmlimit_enter(at_time(l, at), id, "k", 1, hold, &r);
}

static int enter(int id, struct shmlimit_place *hold, uint64_t at)
{
	return enter_as(id, hold, none(), at);
}

static int leave(int id, const struct shmlimit_place *hold, uint64_t at)
{
	return shmlimit_leave(at_time(l, at), id, "k", 1, hold);
}

static uint64_t left(int id, uint64_t at)
{
	if (shmlimit_peek(at_time(l, at), id, "k", 1, 0, &r) != SHMLIMIT_ALLOWED)
		bail("peek");
	return r.remaining;
}

/* How long a place of PERIOD is held that begins at `at`: until the tick ends in which the period does. */
static uint64_t whole_ticks(uint64_t at)
{
	return (at + PERIOD + HOLD_TICK_NS - 1) / HOLD_TICK_NS * HOLD_TICK_NS - at;
}

static void holding(void)
{
	int id = rule("holding", 2, PERIOD);
	struct shmlimit_place a, b, c, before;

	is(enter(id, &a, T0), SHMLIMIT_ALLOWED, "the first holder enters");
	ok(r.limit == 2 && r.remaining == 1 && r.reset_after_ns == whole_ticks(T0),
	   "the answer says how many places are free, and until when one is held");
	is(enter(id, &b, T0 + SECOND), SHMLIMIT_ALLOWED, "a second holder enters");
	is(enter(id, &c, T0 + 2 * SECOND), SHMLIMIT_DENIED, "a holder above the capacity is denied");
	ok(c.value == 0 && r.remaining == 0, "it holds nothing");
	ok(r.retry_after_ns >= 8 * SECOND && r.retry_after_ns < 8 * SECOND + HOLD_TICK_NS,
	   "a denied request is told when the first place ends");
	is(shmlimit_peek(at_time(l, T0 + 2 * SECOND), id, "k", 1, 1, NULL), SHMLIMIT_DENIED, "a peek is denied too");
	is(leave(id, &c, T0 + 2 * SECOND), 0, "a denied holder may leave, which does nothing");
	is(left(id, T0 + 2 * SECOND), 0, "two places are held still");
	is(leave(id, &a, T0 + 2 * SECOND), 0, "the first holder leaves");
	is(left(id, T0 + 2 * SECOND), 1, "its place is free at once");
	is(leave(id, &a, T0 + 2 * SECOND), -ETIME, "a place is left once");
	is(enter(id, &c, T0), SHMLIMIT_ALLOWED, "another holder enters the same place, at the very time of the first");
	is(c.index, a.index, "it is the same place");
	is(leave(id, &a, T0 + 2 * SECOND), -ETIME, "a leave that is late does not end the place of the next holder");
	is(shmlimit_renew(at_time(l, T0 + 2 * SECOND), id, "k", 1, &a), -ETIME,
	   "a renewal that is late does not take the place of the next holder");
	is(left(id, T0 + 2 * SECOND), 0, "the next holder is in");
	before = b;
	is(shmlimit_renew(at_time(l, T0 + 9 * SECOND), id, "k", 1, &b), 0, "a holder renews its place");
	is(leave(id, &before, T0 + 9 * SECOND), -ETIME, "what it was before is left no more");
	is(left(id, T0 + 10 * SECOND + HOLD_TICK_NS), 1, "a place that was not left ends after the period");
	is(leave(id, &c, T0 + 11 * SECOND), -ETIME, "a leave after that is an error");
	is(shmlimit_renew(at_time(l, T0 + 11 * SECOND), id, "k", 1, &c), -ETIME,
	   "a renewal after the end of a place is an error");
	is(left(id, T0 + 18 * SECOND), 1, "the renewed place is held for a period from its renewal");
	is(left(id, T0 + 19 * SECOND + HOLD_TICK_NS), 2, "a renewed place ends a period after its renewal");
	is((int)unit_slots(l, SHMLIMIT_SLOT_LIVE, T0 + 19 * SECOND + HOLD_TICK_NS), 0,
	   "a key without holders needs no slot");
}

static void taking(void)
{
	int id = rule("taking", 2, PERIOD), funnel = unit_rule(l, "funnel", 1, 1, 3600 * SECOND);
	struct shmlimit_request both[2] = { { .rule = id, .key = "k", .key_len = 1, .cost = 1 },
		                            { .rule = funnel, .key = "k", .key_len = 1, .cost = 2 } };
	int answers[2];

	is(shmlimit_take_all(at_time(l, T0), both, 2, NULL, NULL), SHMLIMIT_DENIED, "of two limits the second denies");
	is(left(id, T0), 2, "the place that was entered for the first is left");
	is(shmlimit_take(at_time(l, T0), id, "k", 1, 1, &r), SHMLIMIT_ALLOWED, "a take enters");
	is(r.remaining, 1, "it leaves one place");
	is(shmlimit_reserve(at_time(l, T0), id, "k", 1, 1, SECOND, &r), SHMLIMIT_ALLOWED,
	   "a reservation enters a place");
	ok(r.wait_ns == 0 && r.remaining == 0, "a reservation of a place waits for nothing");
	is(shmlimit_reserve(at_time(l, T0), id, "k", 1, 1, 2 * PERIOD, &r), SHMLIMIT_DENIED,
	   "nothing can be reserved later");
	is(shmlimit_take(at_time(l, T0), id, "k", 1, 2, &r), -EOPNOTSUPP, "two places are not taken at once");
	is(shmlimit_peek(at_time(l, T0), id, "k", 1, 3, &r), SHMLIMIT_DENIED, "a peek may ask for any number");
	is(r.retry_after_ns, UINT64_MAX, "more than the capacity is never there");
	is(shmlimit_charge(at_time(l, T0), id, "k", 1, 1, &r), -EOPNOTSUPP, "there is nothing to charge");
	is(shmlimit_refund(at_time(l, T0), id, "k", 1, 1, &r), -EOPNOTSUPP, "there is nothing to refund");
	both[1] = both[0];
	is(shmlimit_take_many(at_time(l, T0 + 2 * PERIOD), both, 2, answers, NULL), 0, "a batch is decided");
	ok(answers[0] == SHMLIMIT_ALLOWED && answers[1] == SHMLIMIT_ALLOWED, "each request enters a place");
	is(left(id, T0 + 2 * PERIOD), 0, "both places are held");
	is(shmlimit_reset(l, id, "k", 1), 1, "a reset forgets them");
	is(left(id, T0 + 2 * PERIOD), 2, "all places are free");
}

static struct shmlimit_limit places_at_once(uint64_t places)
{
	return (struct shmlimit_limit){ .struct_size = sizeof(struct shmlimit_limit),
		                        .flags = SHMLIMIT_LIMIT_PLACES,
		                        .capacity = places };
}

/* Entered with a bound of its own. */
static int enter_within(int id, struct shmlimit_limit limit, struct shmlimit_place *hold)
{
	struct shmlimit_request q = { .rule = id, .key = "k", .key_len = 1, .cost = 1, .limit = &limit, .place = hold };

	*hold = none();
	return shmlimit_decide(at_time(l, T0), SHMLIMIT_TAKE, &q, &r);
}

static void bounds(void)
{
	int id = rule("bounds", 5, PERIOD);
	struct shmlimit_limit three = places_at_once(3), one = places_at_once(1), nine = places_at_once(9);
	struct shmlimit_limit block = { .struct_size = sizeof(block), .flags = SHMLIMIT_LIMIT_BLOCK };
	struct shmlimit_limit unlimited = { .struct_size = sizeof(block), .flags = SHMLIMIT_LIMIT_UNLIMITED };
	struct shmlimit_place h[6], more;
	struct shmlimit_request q = { .rule = id, .key = "k", .key_len = 1, .cost = 1, .limit = &one };

	is(enter_within(id, three, &h[0]), SHMLIMIT_ALLOWED, "an entry by a bound of three places");
	ok(r.limit == 3 && r.remaining == 2, "the answer is by the bound");
	enter_within(id, three, &h[1]);
	is(enter_within(id, three, &h[2]), SHMLIMIT_ALLOWED, "a third entry is within a bound of three");
	is(enter_within(id, three, &more), SHMLIMIT_DENIED, "a fourth is not");
	ok(more.value == 0 && r.limit == 3 && r.remaining == 0 && r.retry_after_ns == whole_ticks(T0),
	   "it holds nothing, and is told when the first place ends");
	is(enter_within(id, nine, &h[3]), SHMLIMIT_ALLOWED, "a higher bound admits at once");
	ok(r.limit == 5 && r.remaining == 1, "at most the rule's capacity counts");
	is(enter_within(id, one, &more), SHMLIMIT_DENIED, "a lower bound denies");
	is(left(id, T0), 1, "it ends no place");
	is(enter(id, &h[4], T0), SHMLIMIT_ALLOWED, "an entry without a bound is by the rule's capacity");
	is(enter_within(id, nine, &more), SHMLIMIT_DENIED, "a bound above the capacity admits no more than that");
	for (int i = 1; i < 4; i++) {
		is(leave(id, &h[i], T0), 0, "a place that was entered by a bound is left");
		is(enter_within(id, one, &more), SHMLIMIT_DENIED, "a lowered bound denies while as many are held");
	}
	is(shmlimit_decide(at_time(l, T0), SHMLIMIT_PEEK, &q, &r), SHMLIMIT_DENIED, "a peek is by its bound too");
	leave(id, &h[0], T0);
	is(enter_within(id, one, &more), SHMLIMIT_DENIED, "a place in the last cell counts as any other");
	leave(id, &h[4], T0);
	is(shmlimit_decide(at_time(l, T0), SHMLIMIT_PEEK, &q, &r), SHMLIMIT_ALLOWED,
	   "when all have left a peek is allowed");
	is(enter_within(id, one, &more), SHMLIMIT_ALLOWED, "an entry is then, too");
	is(leave(id, &more, T0), 0, "its place is left");
	is(shmlimit_decide(at_time(l, T0), SHMLIMIT_TAKE, &q, &r), SHMLIMIT_ALLOWED, "a take is by its bound");
	is(shmlimit_decide(at_time(l, T0), SHMLIMIT_TAKE, &q, &r), SHMLIMIT_DENIED, "the next take is denied");
	is(enter_within(id, block, &more), SHMLIMIT_DENIED, "a bound that blocks denies");
	ok(r.limit == 0 && r.remaining == 0 && r.retry_after_ns == UINT64_MAX, "for ever");
	is(enter_within(id, unlimited, &more), SHMLIMIT_ALLOWED, "without a bound every entry is allowed");
	ok(more.value == 0 && r.limit == UINT64_MAX && r.remaining == UINT64_MAX, "it holds nothing");
	is(left(id, T0), 4, "nothing was entered");
	shmlimit_reset(l, id, "k", 1);
	rule("bounds", 2, PERIOD);
	enter_within(id, three, &h[0]);
	enter_within(id, three, &h[1]);
	is(enter_within(id, three, &h[2]), SHMLIMIT_DENIED, "a lowered capacity counts for bounds too");
	rule("bounds", 40, PERIOD);
	is(enter_within(id, three, &h[2]), SHMLIMIT_ALLOWED, "a raised capacity leaves the bound");
	is(enter_within(id, three, &more), SHMLIMIT_DENIED, "no more than the bound, where there are many places");
	set("bounds", 40, PERIOD, SHMLIMIT_OFF);
	is(enter_within(id, one, &more), SHMLIMIT_ALLOWED, "under a rule that is off a bound denies nothing");
	set("bounds", 40, PERIOD, SHMLIMIT_DRY_RUN);
	is(enter_within(id, one, &more), SHMLIMIT_ALLOWED, "in a dry run it denies nothing");
	ok(more.value == 0 && r.retry_after_ns > 0, "it says that it would have");
	shmlimit_rule_remove(l, "bounds");
}

/* How many places were entered before this one; or an error. */
static int ahead_of(int id, struct shmlimit_place *place, uint64_t at)
{
	struct shmlimit_request q = { .rule = id, .key = "k", .key_len = 1, .cost = 1, .place = place };
	int answer = shmlimit_decide(at_time(l, at), SHMLIMIT_PEEK, &q, &r);

	return answer < 0 ? answer : answer == SHMLIMIT_ALLOWED ? (int)(r.limit - 1 - r.remaining) : 1000;
}

/* A peek with a place says how many are ahead in the line. */
static void lines(void)
{
	int id = rule("lines", 5, PERIOD), funnel = unit_rule(l, "funnel", 1, 1, SECOND);
	struct shmlimit_limit two = places_at_once(2);
	struct shmlimit_place h[4], again, nothing = none(), small = { .struct_size = 8 };
	struct shmlimit_request q = { .rule = id, .key = "k", .key_len = 1, .cost = 1, .place = &h[1] };
	struct shmlimit *reader;

	for (int i = 0; i < 4; i++)
		enter(id, &h[i], T0 + (uint64_t)i * SECOND);
	for (int i = 0; i < 4; i++)
		is(ahead_of(id, &h[i], T0 + 4 * SECOND), i, "%d places were entered before the place number %d", i, i);
	is(r.reset_after_ns, whole_ticks(T0 + 3 * SECOND) - SECOND, "the answer says how long the place is held");
	is(leave(id, &h[1], T0 + 4 * SECOND), 0, "one is left");
	is(ahead_of(id, &h[0], T0 + 4 * SECOND), 0, "that changes nothing for those before it");
	is(ahead_of(id, &h[3], T0 + 4 * SECOND), 2, "those behind it move up");
	is(ahead_of(id, &h[1], T0 + 4 * SECOND), -ETIME, "a place that was left is in no line");
	is(enter(id, &again, T0 + 5 * SECOND), SHMLIMIT_ALLOWED, "the same place is entered again");
	ok(again.index == h[1].index && ahead_of(id, &again, T0 + 5 * SECOND) == 3,
	   "it is at the end, though its index is low");
	is(shmlimit_renew(at_time(l, T0 + 6 * SECOND), id, "k", 1, &h[0]), 0, "the first is renewed");
	is(ahead_of(id, &h[0], T0 + 6 * SECOND), 3, "a renewed place is at the end");
	is(ahead_of(id, &h[2], T0 + 6 * SECOND), 0, "those behind it move up then, too");
	is(ahead_of(id, &h[3], T0 + 2 * SECOND + PERIOD + HOLD_TICK_NS), 0,
	   "the places ahead that have ended are not counted");
	is(ahead_of(id, &h[2], T0 + 2 * SECOND + PERIOD + HOLD_TICK_NS), -ETIME,
	   "a place that has ended is not in the line");
	is(left(id, T0 + 6 * SECOND), 1, "peeks change nothing");

	is(ahead_of(id, &nothing, T0), -ETIME, "a place that was not entered is in no line");
	is(ahead_of(id, &small, T0), -EINVAL, "a peek refuses a place that is too small");
	q.rule = funnel;
	is(shmlimit_decide(at_time(l, T0), SHMLIMIT_PEEK, &q, NULL), -EOPNOTSUPP, "a funnel has no line");
	q.rule = id;
	q.cost = 2;
	is(shmlimit_decide(at_time(l, T0), SHMLIMIT_PEEK, &q, NULL), -EOPNOTSUPP, "a peek for two has no place");
	q.cost = 1;
	q.limit = &two;
	is(shmlimit_decide(at_time(l, T0), SHMLIMIT_PEEK, &q, NULL), -EINVAL, "a peek with a place has no bound");
	is(shmlimit_decide(at_time(NULL, T0), SHMLIMIT_PEEK, &q, NULL), -EINVAL, "it needs a limiter");
	q.limit = NULL;
	q.place = &h[0];
	is(shmlimit_decide(at_time(l, T0 + 6 * SECOND), SHMLIMIT_PEEK, &q, NULL), SHMLIMIT_ALLOWED,
	   "it needs no result");
	if (shmlimit_open(unit_name, SHMLIMIT_OPEN_READ_ONLY, NULL, &reader) != 0)
		bail("open");
	is(shmlimit_decide(at_time(reader, T0 + 6 * SECOND), SHMLIMIT_PEEK, &q, &r), SHMLIMIT_ALLOWED,
	   "a reader may ask");
	is(r.remaining, 1, "it gets the same answer");
	shmlimit_close(reader);
	set("lines", 5, PERIOD, SHMLIMIT_OFF);
	is(ahead_of(id, &h[0], T0 + 6 * SECOND), -ETIME, "under a rule that is off there is no line");
	set("lines", 5, PERIOD, SHMLIMIT_DRY_RUN);
	is(ahead_of(id, &h[0], T0 + 6 * SECOND), 3, "in a dry run there is");
	shmlimit_rule_remove(l, "lines");
}

/* Several at once, each with a place of its own, and what is wrong with one. */
static void bounds_together(void)
{
	int id = rule("bounds", 5, PERIOD), other = rule("others", 5, PERIOD),
	    funnel = unit_rule(l, "funnel", 1, 1, SECOND);
	struct shmlimit_limit two = places_at_once(2),
			      rate = { .struct_size = sizeof(rate), .capacity = 1, .refill = 1 };
	struct shmlimit_place a = none(), b = none(), small = { .struct_size = 8 };
	struct shmlimit_request q[3] = {
		{ .rule = id, .key = "k", .key_len = 1, .cost = 1, .limit = &two, .place = &a },
		{ .rule = other, .key = "k", .key_len = 1, .cost = 1, .place = &b },
		{ .rule = funnel, .key = "k", .key_len = 1, .cost = 2 },
	};
	struct shmlimit_result results[3];
	size_t failed;
	int answers[3];

	is(shmlimit_take_all(at_time(l, T0), q, 2, NULL, results), SHMLIMIT_ALLOWED, "two places are entered together");
	ok(a.value != 0 && b.value != 0 && results[0].limit == 2 && results[0].remaining == 1, "each is known");
	ok(leave(id, &a, T0) == 0 && leave(other, &b, T0) == 0, "each is left");
	is(shmlimit_take_all(at_time(l, T0), q, 3, &failed, NULL), SHMLIMIT_DENIED, "a third limit denies");
	ok(failed == 2 && a.value == 0 && b.value == 0, "no place is held then");
	ok(left(id, T0) == 5 && left(other, T0) == 5, "both that were entered are left");
	a.value = 1;
	q[0].limit = NULL;
	q[0].cost = 2;
	is(shmlimit_take_all(at_time(l, T0), q, 2, &failed, NULL), -EOPNOTSUPP, "two places are not entered at once");
	ok(failed == 0 && a.value == 0, "nothing is held");
	q[0].cost = 1;
	q[0].place = &small;
	is(shmlimit_take_all(at_time(l, T0), q, 2, &failed, NULL), -EINVAL, "a place that is too small is refused");
	is(shmlimit_decide(at_time(l, T0), SHMLIMIT_TAKE, q, NULL), -EINVAL, "by itself, too");
	q[0].place = &a;
	q[0].limit = &two;
	is(shmlimit_take_many(at_time(l, T0), q, 3, answers, results), 0, "a batch with places is decided");
	ok(answers[0] == SHMLIMIT_ALLOWED && answers[1] == SHMLIMIT_ALLOWED && answers[2] == SHMLIMIT_DENIED,
	   "each is answered by itself");
	ok(results[0].limit == 2 && leave(id, &a, T0) == 0 && leave(other, &b, T0) == 0, "the places are left");
	for (uint32_t verb = SHMLIMIT_PEEK; verb <= SHMLIMIT_ACQUIRE; verb++)
		is(shmlimit_decide(l, verb, q, NULL), -EINVAL, "verb %u has no place", verb);
	q[0].rule = funnel;
	is(shmlimit_decide(at_time(l, T0), SHMLIMIT_TAKE, q, NULL), -EOPNOTSUPP,
	   "a funnel has no places to bring a bound for");
	q[0].place = NULL;
	is(shmlimit_decide(at_time(l, T0), SHMLIMIT_TAKE, q, NULL), -EOPNOTSUPP,
	   "a funnel has none without a place either");
	q[0].limit = NULL;
	q[0].place = &a;
	is(shmlimit_decide(at_time(l, T0), SHMLIMIT_TAKE, q, NULL), -EOPNOTSUPP, "a funnel has no place to fill in");
	q[0].rule = id;
	q[0].limit = &rate;
	rate.period_ns = SECOND;
	is(shmlimit_decide(at_time(l, T0), SHMLIMIT_TAKE, q, NULL), -EOPNOTSUPP, "a rate is no bound");
	rate.flags = SHMLIMIT_LIMIT_PLACES;
	is(shmlimit_decide(at_time(l, T0), SHMLIMIT_TAKE, q, NULL), -EINVAL, "a bound has no rate");
	q[0].limit = &two;
	two.capacity = 0;
	is(shmlimit_decide(at_time(l, T0), SHMLIMIT_TAKE, q, NULL), -EDOM, "a bound is 1 or more");
	two.capacity = SHMLIMIT_WINDOW_MAX + 1;
	is(shmlimit_decide(at_time(l, T0), SHMLIMIT_TAKE, q, NULL), -ERANGE, "a bound is at most the largest capacity");
	two.capacity = SHMLIMIT_WINDOW_MAX;
	two.flags |= SHMLIMIT_LIMIT_BLOCK;
	is(shmlimit_decide(at_time(l, T0), SHMLIMIT_TAKE, q, NULL), -EINVAL, "it has one flag");
	is(left(id, T0), 5, "none of them entered anything");
	shmlimit_rule_remove(l, "bounds");
	shmlimit_rule_remove(l, "others");
}

static void bounds_as_text(void)
{
	static const char *const wrong[] = { "20 at once for 5m", "20 at once at most 5 minutes each", "70000 at once",
		                             "20 at once for 60s" };
	struct shmlimit_limit limit = { .struct_size = sizeof(limit), .max_wait_ns = 7 };
	struct shmlimit_problem problem;

	is(shmlimit_limit_parse("20 at once", &limit, &problem), 0, "places are read");
	ok(limit.flags == SHMLIMIT_LIMIT_PLACES && limit.capacity == 20 && limit.refill == 0 && limit.period_ns == 0,
	   "as a number and a flag");
	is(shmlimit_limit_parse(" 3 AT ONCE ", &limit, &problem), 0, "in any case, with blanks");
	is(limit.capacity, 3, "the number is read");
	for (unsigned i = 0; i < 4; i++) {
		int error = shmlimit_limit_parse(wrong[i], &limit, &problem);

		ok(error == (i == 2 ? -ERANGE : -EINVAL) && limit.capacity == 3, "\"%s\" is refused: %s", wrong[i],
		   problem.text);
	}
}

static void errors(void)
{
	int id = rule("errors", 1, PERIOD), funnel = unit_rule(l, "funnel", 1, 1, SECOND);
	struct shmlimit_place hold = none(), small = { .struct_size = 8 };
	struct shmlimit_rule bad = { .struct_size = sizeof(bad), .algorithm = SHMLIMIT_HOLD, .period_ns = 1 };
	struct shmlimit_range range = { .struct_size = sizeof(range) };
	struct shmlimit *reader;

	is(shmlimit_enter(l, id, "k", 1, NULL, NULL), -EINVAL, "a holder needs somewhere to keep its place");
	is(shmlimit_enter(l, id, "k", 1, &small, NULL), -EINVAL, "a structure that is too small is refused");
	hold.flags = SHMLIMIT_PLACE_BIND | 1;
	is(shmlimit_enter(l, id, "k", 1, &hold, NULL), -E2BIG, "a flag that is not known is refused");
	is(shmlimit_take_all(
		   l, &(struct shmlimit_request){ .rule = id, .key = "k", .key_len = 1, .cost = 1, .place = &hold }, 1,
		   NULL, NULL),
	   -E2BIG, "by take_all too");
	hold = none();
	is(shmlimit_renew(l, id, "k", 1, &small), -EINVAL, "to renew too");
	is(shmlimit_leave(l, id, "k", 1, &small), -EINVAL, "to leave too");
	is(shmlimit_bind(l, id, "k", 1, &small, 0), -EINVAL, "to bind too");
	is(shmlimit_bind(l, id, "k", 1, NULL, 0), -EINVAL, "there is no place to bind");
	is(shmlimit_bind(NULL, id, "k", 1, &hold, 0), -EINVAL, "a limiter is needed to bind");
	is(shmlimit_bind(l, funnel, "k", 1, &hold, 0), -EOPNOTSUPP, "a funnel has no place to bind");
	is(shmlimit_bind(l, 63, "k", 1, &hold, 0), -ESRCH, "a rule must be there to bind");
	is(shmlimit_enter(NULL, id, "k", 1, &hold, NULL), -EINVAL, "a limiter is needed to enter");
	is(shmlimit_renew(NULL, id, "k", 1, &hold), -EINVAL, "a limiter is needed to renew");
	is(shmlimit_leave(NULL, id, "k", 1, &hold), -EINVAL, "a limiter is needed to leave");
	is(shmlimit_enter(l, id, "k", 0, &hold, NULL), -EMSGSIZE, "a key has a length");
	is(shmlimit_enter(l, 63, "k", 1, &hold, NULL), -ESRCH, "a rule must be there");
	is(shmlimit_enter(l, funnel, "k", 1, &hold, NULL), -EOPNOTSUPP, "a funnel has no places");
	is(shmlimit_leave(l, funnel, "k", 1, &hold), -EOPNOTSUPP, "a funnel has no place to leave");
	is(shmlimit_leave(l, id, "k", 1, &hold), 0, "to leave no place is no error");
	is(shmlimit_renew(l, id, "k", 1, &hold), 0, "renewing no place is no error");
	if (shmlimit_open(unit_name, SHMLIMIT_OPEN_READ_ONLY, NULL, &reader) != 0)
		bail("open");
	is(shmlimit_enter(reader, id, "k", 1, &hold, NULL), -EROFS, "a reader does not enter");
	shmlimit_close(reader);
	is(shmlimit_rule_set(l, "bad", &bad), -EDOM, "a rule has a capacity");
	bad.capacity = SHMLIMIT_WINDOW_MAX + 1;
	is(shmlimit_rule_set(l, "bad", &bad), -EFBIG, "of 65,536 at most");
	bad.capacity = WINDOW_MAX;
	bad.period_ns = 0;
	is(shmlimit_rule_set(l, "bad", &bad), -EDOM, "a rule has a period");
	bad.period_ns = HOLD_PERIOD_MAX_NS + 1;
	is(shmlimit_rule_set(l, "bad", &bad), -ERANGE, "of 208 days at most");
	bad.period_ns = HOLD_PERIOD_MAX_NS;
	bad.max_wait_ns = 1;
	is(shmlimit_rule_set(l, "bad", &bad), -EINVAL, "nothing is owed");
	bad.max_wait_ns = 0;
	bad.refill = 3;
	is(shmlimit_rule_set(l, "bad", &bad), -EINVAL, "nothing refills");
	bad.refill = 0;
	ok(shmlimit_rule_set(l, "bad", &bad) >= 0, "the longest period is accepted");
	is(shmlimit_rule_range(l, shmlimit_rule_find(l, "bad"), &range), 0, "it has a range");
	ok(range.refill_ns == HOLD_PERIOD_MAX_NS && range.resolution_ps == 1000 * HOLD_TICK_NS,
	   "of its period, in ticks of 66 us");
	bad.algorithm = SHMLIMIT_WINDOW;
	is(shmlimit_rule_set(l, "bad", &bad), -EBUSY, "its algorithm is not changed");
}

static void changes(void)
{
	int id = rule("changes", 4, PERIOD);
	struct shmlimit_place h[4], more;

	for (int i = 0; i < 4; i++)
		enter(id, &h[i], T0);
	rule("changes", 2, PERIOD);
	is(left(id, T0), 0, "a smaller capacity takes no place away");
	leave(id, &h[0], T0);
	leave(id, &h[1], T0);
	is(enter(id, &more, T0), SHMLIMIT_DENIED, "two of four have left, and two places are held: no other enters");
	is(shmlimit_enter(at_time(l, T0), id, "k", 1, &more, NULL), SHMLIMIT_DENIED,
	   "places beyond the capacity count where no result is asked for");
	is(leave(id, &h[3], T0), 0, "a place beyond the capacity is left as any other");
	is(enter(id, &more, T0), SHMLIMIT_ALLOWED,
	   "another holder enters when fewer places than the lowered capacity are held");
	is(enter(id, &h[0], T0), SHMLIMIT_DENIED, "no more than the lowered capacity enter");
	rule("changes", 3, PERIOD / 10);
	is(left(id, T0), 1, "a larger capacity counts at once");
	is(left(id, T0 + 2 * SECOND), 1, "a shorter period does not end places that are held");
	is(enter(id, &h[0], T0), SHMLIMIT_ALLOWED, "a new one");
	is(left(id, T0 + 2 * SECOND), 1, "ends sooner");
	is(shmlimit_renew(at_time(l, T0), id, "k", 1, &more), 0, "a renewed one");
	is(left(id, T0 + 2 * SECOND), 2, "does too");
	set("changes", 3, PERIOD, SHMLIMIT_OFF);
	is(enter(id, &h[0], T0), SHMLIMIT_ALLOWED, "under a rule that is off every request enters");
	is((long long)h[0].value, 0, "a holder under a rule that is off holds nothing");
	is(leave(id, &h[2], T0), 0, "a place that was held before can be left");
	set("changes", 1, PERIOD, SHMLIMIT_DRY_RUN);
	shmlimit_reset(l, id, NULL, 0);
	is(enter(id, &h[0], T0), SHMLIMIT_ALLOWED, "in a dry run the first holder enters");
	is(enter(id, &h[1], T0), SHMLIMIT_ALLOWED, "in a dry run a second holder enters");
	ok(h[0].value != 0 && h[1].value == 0, "in a dry run a second holder holds nothing");
	is(leave(id, &h[0], T0 + 2 * PERIOD), -ETIME, "a late leave is reported");
}

/* Places with ends of all kinds, and a capacity that was lowered: told exactly when the next fits. */
static void retries(struct rng *rng)
{
	int id = rule("retries", WINDOW_MAX, PERIOD);
	uint64_t early = 0, late = 0, tried = 0;

	for (uint64_t round = 0; round < scaled(2000); round++) {
		uint64_t at = T0 + round * 3 * PERIOD, capacity = 1 + rng_below(rng, WINDOW_MAX), retry;
		uint64_t asked = 1 + rng_below(rng, capacity);
		struct shmlimit_place h;

		rule("retries", WINDOW_MAX, PERIOD);
		for (uint64_t i = 1 + rng_below(rng, WINDOW_MAX); i > 0; i--)
			enter(id, &h, at + rng_below(rng, PERIOD / 2));
		rule("retries", capacity, PERIOD);
		at += PERIOD / 2;
		if (shmlimit_peek(at_time(l, at), id, "k", 1, asked, &r) == SHMLIMIT_ALLOWED)
			continue;
		retry = r.retry_after_ns;
		if (asked == 1)
			late += enter(id, &h, at) != SHMLIMIT_DENIED || r.retry_after_ns != retry;
		early += shmlimit_peek(at_time(l, at + retry - 1), id, "k", 1, asked, NULL) == SHMLIMIT_ALLOWED;
		late += shmlimit_peek(at_time(l, at + retry), id, "k", 1, asked, NULL) == SHMLIMIT_DENIED;
		tried++;
	}
	is(late, 0, "a denied request fits when it was told, however many places are beyond a lowered capacity");
	is(early, 0, "a denied request does not fit a nanosecond earlier");
	ok(tried > scaled(400), "many requests are denied");
}

/* Places that end later than they can: they go on being held, and by their holders, for a period from the first denial. */
static void shortened(void)
{
	int id = rule("shortened", 3, PERIOD);
	struct shmlimit_place a, b, c, d;
	uint64_t day = 86400 * SECOND, then = T0 + 2 * day, now = then - day;

	enter(id, &a, then);
	enter(id, &b, then);
	enter(id, &c, then);
	is(shmlimit_peek(at_time(l, now), id, "k", 1, 1, &r), SHMLIMIT_DENIED,
	   "when the clock steps back all places are held");
	ok(r.retry_after_ns == whole_ticks(now) && r.reset_after_ns == whole_ticks(now),
	   "a peek then reports a period, to the end of a tick");
	is(enter(id, &d, now), SHMLIMIT_DENIED, "no other holder enters");
	is(r.retry_after_ns, whole_ticks(now), "a denied holder is told a period, to the end of a tick");
	is(d.value, 0, "a denied holder holds nothing");
	is(leave(id, &a, now + 1), 0, "a place that was shortened is left by its holder");
	is(leave(id, &a, now + 1), -ETIME, "a place that was shortened is left once");
	is(left(id, now + 1), 1, "it is free then");
	is(shmlimit_renew(at_time(l, now + PERIOD - 1), id, "k", 1, &b), 0,
	   "a place that was shortened is renewed by its holder");
	is(left(id, now + PERIOD + HOLD_TICK_NS), 2,
	   "one that is neither left nor renewed ends a period after the denial");
	is(leave(id, &c, now + PERIOD + HOLD_TICK_NS), -ETIME, "what has ended is not left");
	is(left(id, now + 2 * PERIOD + HOLD_TICK_NS), 3, "the renewed place ends a period after it was renewed");

	shmlimit_reset(l, id, NULL, 0);
	enter(id, &a, T0);
	enter(id, &b, T0);
	rule("shortened", 2, SECOND);
	is(left(id, T0 + 3 * SECOND), 0, "a shorter period leaves places as they are");
	is(enter(id, &d, T0 + 3 * SECOND), SHMLIMIT_DENIED, "a place beyond a shorter period denies a holder");
	is(left(id, T0 + 4 * SECOND + HOLD_TICK_NS), 2, "from then on they are held for the shorter period");
}

/* A place that had ended is held again, since the clock stepped back, in a cell beyond the key's reach. */
static void ended_before_the_step(void)
{
	int id = rule("ended", 2, PERIOD);
	uint64_t then = T0 + 10 * 86400 * SECOND, now = then - 86400 * SECOND;
	struct shmlimit_place a, b, d;

	enter(id, &a, then);
	enter(id, &b, then);
	/* A smaller capacity takes the second cell out of reach. */
	rule("ended", 1, PERIOD);
	is(enter(id, &a, then + 2 * PERIOD), SHMLIMIT_ALLOWED,
	   "both places have ended, and the first one is entered again");
	rule("ended", 2, PERIOD);
	is(enter(id, &d, now), SHMLIMIT_DENIED, "when the clock steps back, both are held");
	now += PERIOD + HOLD_TICK_NS;
	is(enter(id, &d, now), SHMLIMIT_ALLOWED, "one is free a period after the denial");
	is(enter(id, &d, now), SHMLIMIT_ALLOWED, "the one that had ended before is free then, too");
	shmlimit_rule_remove(l, "ended");
}

/* A killed holder's place beside one that is renewed for ten years: it is free after the period, and stays so. */
static void years_beside_a_renewed_place(void)
{
	uint64_t day = 86400 * SECOND, late = 0, wrong = 0;
	int id = rule("years", 2, 150 * day);
	struct shmlimit_place kept, killed;

	enter(id, &kept, T0);
	enter(id, &killed, T0);
	for (uint64_t d = 100; d < 3650; d += 100) {
		late += shmlimit_renew(at_time(l, T0 + d * day), id, "k", 1, &kept) != 0;
		wrong += left(id, T0 + d * day) != (d > 150);
	}
	is(late, 0, "a place is renewed for ten years");
	is(wrong, 0, "a killed holder's place beside it is free after the period, for all of them");
	is(leave(id, &killed, T0 + 3600 * day), -ETIME, "it is not left years later");
	shmlimit_rule_remove(l, "years");
}

/* A holder that leaves twice, while others enter the same cell under a shorter period until each number has come round. */
static void left_twice(void)
{
	int id = rule("twice", 1, 360 * SECOND);
	struct shmlimit_place a, b;
	uint64_t left_again = 0, lost = 0;

	enter(id, &a, T0);
	is(leave(id, &a, T0 + 1), 0, "a place is left");
	rule("twice", 1, SECOND);
	for (uint64_t i = 0; i < 5000; i++) {
		uint64_t now = T0 + SECOND + i * 1000;

		lost += enter(id, &b, now) != SHMLIMIT_ALLOWED;
		left_again += leave(id, &a, now) != -ETIME;
		lost += leave(id, &b, now) != 0;
	}
	is(left_again, 0, "a place that was left is never another holder's");
	is(lost, 0, "each other holder enters and leaves");
	shmlimit_rule_remove(l, "twice");
}

static void moves(void)
{
	struct shmlimit_options options = { .struct_size = sizeof(options), .slots = 64 };
	struct shmlimit_place a, b, c;
	int id;

	shmlimit_close(l);
	l = unit_create("hold", &options);
	id = rule("moves", 3, PERIOD);
	enter(id, &a, T0);
	enter(id, &b, T0);
	enter(id, &c, T0);
	is(shmlimit_grow(at_time(l, T0), 128), 0, "the table grows");
	is(left(id, T0), 0, "places are held in the old table");
	is(leave(id, &a, T0), 0, "one is left: the key moves");
	is(shmlimit_renew(at_time(l, T0 + SECOND), id, "k", 1, &b), 0, "one is renewed in the new table");
	is(leave(id, &a, T0), -ETIME, "what was left is left");
	is(left(id, T0 + SECOND), 1, "two places are held");
	is(shmlimit_grow(at_time(l, T0 + SECOND), 0), 0, "the old table is empty");
	is(leave(id, &c, T0 + SECOND), 0, "a place that moved is left in the new table");
	is(enter(id, &a, T0), SHMLIMIT_ALLOWED, "it is entered again");
	is(leave(id, &c, T0), -ETIME, "a place that was entered again is not its old holder's");
	is(left(id, T0), 1, "two places are held still");
	is(shmlimit_verify(unit_name, NULL, 0), 0, "the segment is sound");
}

/* ---- Places that are bound to a process ---- */

static pid_t child_that(void (*lives)(void))
{
	pid_t pid = fork();

	if (pid < 0)
		bail("fork");
	if (pid == 0) {
		lives();
		_exit(0);
	}
	return pid;
}

static void sleep_on(void)
{
	for (;;)
		pause();
}

static void *thread_sleeps(void *unused)
{
	sleep_on();
	return unused;
}

/* Its first thread ends, and is a zombie. */
static void live_in_a_thread(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, thread_sleeps, NULL) == 0)
		pthread_exit(NULL);
}

static char state_of(pid_t pid)
{
	char path[64], state = '?';
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "r");
	if (f == NULL || fscanf(f, "%*d %*s %c", &state) != 1)
		bail("%s", path);
	fclose(f);
	return state;
}

/* Its first thread has ended; others may live. */
static void await_zombie(pid_t pid)
{
	while (state_of(pid) != 'Z')
		sched_yield();
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static uint64_t *cell_of(uint64_t number)
{
	for (uint64_t i = 0; i < l->tables->lines * SLOTS_PER_LINE; i++)
		if (l->tables->slots[i].tag != 0)
			return &unit_cells(l, &l->tables->slots[i])[number];
	bail("no slot");
}

static int bind_to(int id, struct shmlimit_place *place, pid_t pid)
{
	return shmlimit_bind(at_time(l, T0), id, "k", 1, place, (uint32_t)pid);
}

/* The rule's only place, bound to a process that is then ended. */
static int orphaned(int id, struct shmlimit_place *place)
{
	pid_t pid = child_that(sleep_on);
	int error;

	shmlimit_reset(l, id, NULL, 0);
	enter(id, place, T0);
	error = bind_to(id, place, pid);
	end(pid);
	return error;
}

/* Until the holder, which was found alive just before, is looked at again. */
static int enter_in_time(int id, struct shmlimit_place *place, uint64_t now)
{
	for (long asks = 0; asks < 1000000; asks++) {
		if (enter(id, place, now) == SHMLIMIT_ALLOWED)
			return SHMLIMIT_ALLOWED;
		sched_yield();
	}
	return SHMLIMIT_DENIED;
}

static void holders(void)
{
	uint64_t now = clock_read(CLOCK_MONOTONIC);
	uint32_t killed, reaped;
	siginfo_t dead;
	pid_t pid = child_that(sleep_on);

	is(holder_of((uint32_t)pid, &killed), 0, "a process can be named");
	is(holder_is_dead(killed, now), 0, "a process that sleeps is alive");
	kill(pid, SIGKILL);
	waitid(P_PID, (id_t)pid, &dead, WEXITED | WNOWAIT);
	is(holder_is_dead(killed, now + HOLDER_FRESH_NS / 2), 0, "a zombie that was alive just now is not looked at");
	is(holder_is_dead(killed, now + 2 * HOLDER_FRESH_NS), 1, "a zombie that was alive a while ago is dead");
	is(holder_is_dead(killed ^ 1, now), 1, "a process that started at another time was not alive just now");
	waitpid(pid, NULL, 0);

	pid = child_that(sleep_on);
	is(holder_of((uint32_t)pid, &reaped), 0, "another process can be named");
	is(holder_is_dead(reaped, now), 0, "another process that sleeps is alive");
	end(pid);
	is(holder_is_dead(reaped, now), 1, "a process that is gone is dead at once, also if it was alive just now");
}

/* A holder that is asked about again: no answer is remembered. */
static void forget_answers(void)
{
	struct layout_holder *h = (struct layout_holder *)(void *)((char *)l->header + LAYOUT_HOLDERS_OFFSET);

	for (unsigned i = 0; i < LAYOUT_HOLDERS; i++)
		h[i].seen = 0;
}

static struct layout_holder *entry_of(uint64_t number)
{
	return (struct layout_holder *)(void *)((char *)l->header + LAYOUT_HOLDERS_OFFSET) + registry_entry(number);
}

/*
 * An emulator of user programs clears no page in a child, and its /proc tells a process another
 * start than its parent.
 */
#ifdef UNDER_EMULATOR
#define UNDER_AN_EMULATOR 1
#else
#define UNDER_AN_EMULATOR 0
#endif

/* A process that entered the rule's only place, of a new key, which is bound to it. */
static pid_t bound_by_child(int id, int with_result)
{
	int ends[2];
	char entered = 1;
	pid_t pid;

	shmlimit_reset(l, id, NULL, 0);
	if (pipe(ends) != 0)
		bail("no pipe");
	pid = fork();
	if (pid == 0) {
		struct shmlimit_place place = binding();

		entered =
			shmlimit_enter(at_time(l, T0), id, "k", 1, &place, with_result ? &r : NULL) != SHMLIMIT_ALLOWED;
		if (write(ends[1], &entered, 1) == 1)
			sleep_on();
	}
	if (read(ends[0], &entered, 1) != 1 || entered != 0)
		bail("no entry");
	close(ends[0]);
	close(ends[1]);
	return pid;
}

static void bound(void)
{
	struct shmlimit_options options = { .struct_size = sizeof(options), .slots = 16 };
	struct shmlimit_place a, b, c, copy;
	pid_t pid, zombie;
	siginfo_t dead;
	uint64_t own;
	int id, two;

	shmlimit_close(l);
	l = unit_create("hold", &options);
	id = rule("bound", 1, PERIOD);
	is(orphaned(id, &a), 0, "a place is bound to a process");
	forget_answers();
	is(enter(id, &b, T0), SHMLIMIT_ALLOWED, "a dead process's place goes to the next entry at once");
	is(r.remaining, 0, "it counts that place");
	is(leave(id, &a, T0), -ETIME, "the dead process's place is left no more");
	is(enter(id, &c, T0), SHMLIMIT_DENIED, "a place that is not bound is held, also where a bound one was");
	copy = b;
	is(bind_to(id, &b, 0), 0, "the next holder binds it to itself");
	is(b.value, copy.value, "that does not change what it has of the place");
	is(enter(id, &c, T0), SHMLIMIT_DENIED, "a living process's place is held");
	is(shmlimit_take(at_time(l, T0), id, "k", 1, 1, NULL), SHMLIMIT_DENIED, "a take is denied, too");
	is(bind_to(id, &b, 0), 0, "to bind it again is no error");
	is(leave(id, &copy, T0), 0, "a bound place is left, also by a copy from before");
	orphaned(id, &a);
	forget_answers();
	is(shmlimit_peek(at_time(l, T0), id, "k", 1, 1, NULL), SHMLIMIT_ALLOWED,
	   "a peek counts no place of a dead process");
	is(shmlimit_take(at_time(l, T0), id, "k", 1, 1, NULL), SHMLIMIT_ALLOWED, "a take gets a dead process's place");

	/* In a line. */
	two = rule("line", 3, PERIOD);
	enter(two, &a, T0);
	enter(two, &b, T0 + SECOND);
	enter(two, &c, T0 + 2 * SECOND);
	bind_to(two, &b, 0);
	is(ahead_of(two, &c, T0 + 3 * SECOND), 2, "a living process's place is ahead");
	pid = child_that(sleep_on);
	bind_to(two, &a, pid);
	end(pid);
	forget_answers();
	is(ahead_of(two, &c, T0 + 3 * SECOND), 1, "a dead process's place is not ahead");
	is(ahead_of(two, &b, T0 + 3 * SECOND), 0, "the first of those that live has none ahead");
	shmlimit_rule_remove(l, "line");

	/* The clock. */
	shmlimit_reset(l, id, NULL, 0);
	enter(id, &a, T0);
	bind_to(id, &a, 0);
	is(enter(id, &b, T0 + 20 * PERIOD), SHMLIMIT_DENIED, "a place does not end while its process lives");
	ok(r.retry_after_ns > 0 && r.retry_after_ns <= SECOND, "a denied holder is told to ask again soon");
	is(shmlimit_enter(at_time(l, T0 + 20 * PERIOD), id, "k", 1, &b, NULL), SHMLIMIT_DENIED,
	   "a place does not end while its process lives where no result is asked for, either");
	is(left(id, T0 + 20 * PERIOD), 0, "a peek counts it");
	is(shmlimit_renew(at_time(l, T0 + 20 * PERIOD), id, "k", 1, &a), 0, "it can be renewed then");
	is(enter(id, &b, T0 + 40 * PERIOD), SHMLIMIT_DENIED, "a renewed place is bound still");
	is(leave(id, &a, T0 + 40 * PERIOD), 0, "it is left at any time");
	is(left(id, T0 + 40 * PERIOD), 1, "it is free then");
	orphaned(id, &a);
	forget_answers();
	is(left(id, T0 + 20 * PERIOD), 1, "a dead process's place that has ended is free");
	shmlimit_rule_set(at_time(l, T0), "bound",
	                  &(struct shmlimit_rule){ .struct_size = sizeof(struct shmlimit_rule),
	                                           .algorithm = SHMLIMIT_HOLD,
	                                           .capacity = 1,
	                                           .period_ns = PERIOD,
	                                           .flags = SHMLIMIT_RULE_CUT_OFF });
	shmlimit_reset(l, id, NULL, 0);
	enter(id, &a, T0);
	bind_to(id, &a, 0);
	is(enter(id, &b, T0 + PERIOD - 1), SHMLIMIT_DENIED, "a place that is to be cut off is held for its period");
	is(enter(id, &b, T0 + PERIOD + HOLD_TICK_NS), SHMLIMIT_ALLOWED, "it ends then, while its process lives");
	is(leave(id, &a, T0 + PERIOD + HOLD_TICK_NS), -ETIME, "its holder is told so");
	orphaned(id, &a);
	forget_answers();
	is(enter(id, &b, T0), SHMLIMIT_ALLOWED, "a dead process's place that is to be cut off is free at once");
	rule("bound", 1, PERIOD);

	/* From one process to another. */
	shmlimit_reset(l, id, NULL, 0);
	pid = child_that(sleep_on);
	enter(id, &a, T0);
	bind_to(id, &a, 0);
	is(bind_to(id, &a, pid), 0, "a place is bound to another process");
	is(enter(id, &c, T0), SHMLIMIT_DENIED,
	   "a place that was bound to another process is held while that one lives");
	is(shmlimit_renew(at_time(l, T0 + SECOND), id, "k", 1, &a), 0, "it is renewed");
	is(enter(id, &c, T0 + SECOND), SHMLIMIT_DENIED, "the renewed place is held still");
	kill(pid, SIGSTOP);
	forget_answers();
	is(enter(id, &c, T0 + 2 * PERIOD), SHMLIMIT_DENIED, "a process that is stopped has its place");
	kill(pid, SIGKILL);
	/* Until all of its threads have ended, also one that a sanitizer has started. */
	waitid(P_PID, (id_t)pid, &dead, WEXITED | WNOWAIT);
	is(state_of(pid), 'Z', "a process that was killed is a zombie until it is waited for");
	is(enter_in_time(id, &c, T0 + SECOND), SHMLIMIT_ALLOWED,
	   "a zombie's place goes to an entry within a few milliseconds, also after a renewal");
	is(bind_to(id, &c, pid), -ECHILD, "a place is not bound to a zombie");
	waitpid(pid, NULL, 0);
	is(bind_to(id, &c, pid), -ECHILD, "a place is not bound to a process that is gone");
	is(enter(id, &b, T0 + SECOND), SHMLIMIT_DENIED, "it is held as before");
	is(bind_to(id, &a, 0), -ETIME, "a place that is not held is not bound");
	a = none();
	is(bind_to(id, &a, 0), 0, "to bind no place is no error");

	shmlimit_reset(l, id, NULL, 0);
	zombie = child_that(live_in_a_thread);
	await_zombie(zombie);
	enter(id, &a, T0);
	is(bind_to(id, &a, zombie), 0, "a process whose first thread ended can have a place");
	is(enter(id, &c, T0), SHMLIMIT_DENIED, "it lives while another thread does");
	end(zombie);
	is(enter_in_time(id, &c, T0), SHMLIMIT_ALLOWED, "a process is dead when all of its threads have ended");

	orphaned(id, &a);
	bind_to(id, &a, 0);
	forget_answers();
	is(enter(id, &c, T0), SHMLIMIT_DENIED, "a dead process's place that was handed on in time is the living one's");

	/* The pid went to another process: it started at another time. */
	shmlimit_reset(l, id, NULL, 0);
	enter(id, &a, T0);
	bind_to(id, &a, 0);
	own = *cell_of(OWNER);
	entry_of(own)->number ^= (uint64_t)1 << 24;
	*cell_of(OWNER) ^= (uint64_t)1 << 24;
	forget_answers();
	is(enter(id, &c, T0), SHMLIMIT_ALLOWED, "a process that got a dead one's pid does not hold its place");
	entry_of(own)->number = own;

	/* What is no number, or an entry that was not given yet, frees nothing. */
	shmlimit_reset(l, id, NULL, 0);
	enter(id, &a, T0);
	for (unsigned i = 0; i < 4; i++) {
		static const uint64_t owners[] = { 0, REGISTRY_FIRST | (uint64_t)LAYOUT_HOLDERS << 48 | 1, T0,
			                           REGISTRY_FIRST | (uint64_t)(LAYOUT_HOLDERS - 1) << 48 | 1 };

		*cell_of(OWNER) = owners[i];
		is(enter(id, &c, T0), SHMLIMIT_DENIED, "a place whose owner is damaged is held (%u)", i);
		is(left(id, T0 + 2 * PERIOD), 1, "it ends with its period (%u)", i);
	}
	is(leave(id, &a, T0), 0, "it is left by who has it");

	/* In the same step. */
	for (int with_result = 0; with_result < 2 && !UNDER_AN_EMULATOR; with_result++) {
		pid = bound_by_child(id, with_result);
		is(enter(id, &c, T0 + 2 * PERIOD), SHMLIMIT_DENIED,
		   "a place that was bound at the entry is held while its process lives");
		end(pid);
		forget_answers();
		is(enter(id, &c, T0), SHMLIMIT_ALLOWED, "it goes to the next entry when that is dead");
		leave(id, &c, T0);
	}
	is(enter_as(id, &a, binding(), T0), SHMLIMIT_ALLOWED, "a known key's place is bound at the entry");
	is(a.bind_error, 0, "nothing was wrong with that");
	is(enter(id, &c, T0 + 2 * PERIOD), SHMLIMIT_DENIED, "it does not end");
	is(leave(id, &a, T0 + 2 * PERIOD), 0, "it is left");
	is(enter(id, &a, T0), SHMLIMIT_ALLOWED, "the next entry is not bound where it does not ask for it");
	is(enter(id, &c, T0 + 2 * PERIOD), SHMLIMIT_ALLOWED, "it ends");

	/* A larger table. */
	orphaned(id, &a);
	is(shmlimit_grow(at_time(l, T0), 32), 0, "the table grows");
	forget_answers();
	is(enter(id, &c, T0), SHMLIMIT_ALLOWED, "a dead process's place that moved goes to the next entry");
	is(bind_to(id, &c, 0), 0, "it is bound");
	is(shmlimit_grow(at_time(l, T0), 64), 0, "the table grows again");
	is(enter(id, &b, T0 + 2 * PERIOD), SHMLIMIT_DENIED, "a place that moved is bound, and does not end");
	is(leave(id, &c, T0 + 2 * PERIOD), 0, "it is left as any other");

	/* Of two places the right one. */
	two = rule("two", 2, PERIOD);
	shmlimit_reset(l, two, NULL, 0);
	shmlimit_reset(l, id, NULL, 0);
	enter(two, &b, T0);
	pid = child_that(sleep_on);
	enter(two, &a, T0);
	bind_to(two, &a, pid);
	end(pid);
	forget_answers();
	is(enter(two, &c, T0), SHMLIMIT_ALLOWED, "of two places the dead process's is entered");
	is(enter(two, &a, T0), SHMLIMIT_DENIED, "no more than the dead process's place is entered");
	is(leave(two, &b, T0), 0, "the other one is held");
	is(bind_to(id, &c, 1 << 22), -ECHILD, "there is no process of that number");
	is(shmlimit_verify(unit_name, NULL, 0), 0, "the segment is sound");
}

/* ---- The table of holders ---- */

static int registers(pid_t pid, uint64_t *number)
{
	return pid == 0 ? registry_self(l, number) : registry_process(l, (uint32_t)pid, number);
}

/* In a process that finds all entries taken. */
static void enter_unregistered(int id)
{
	pid_t pid;
	int status;

	shmlimit_reset(l, id, NULL, 0);
	pid = fork();
	if (pid == 0) {
		struct shmlimit_place place, other;

		_exit(enter_as(id, &place, binding(), T0) != SHMLIMIT_ALLOWED || place.bind_error != -EXFULL ||
		      place.value == 0 || enter_as(id, &other, binding(), T0) != SHMLIMIT_DENIED ||
		      other.bind_error != 0 || leave(id, &place, T0) != 0);
	}
	waitpid(pid, &status, 0);
	is(status, 0, "where the process cannot be registered its place is held unbound, and the entry says why");
}

static volatile pid_t thread_id;
static pthread_barrier_t told, over;

static void *has_an_id(void *unused)
{
	thread_id = (pid_t)syscall(SYS_gettid);
	pthread_barrier_wait(&told);
	pthread_barrier_wait(&over);
	return unused;
}

static enum registry_answer asked(uint64_t number)
{
	forget_answers();
	return registry_ask(l, number, registry_now_ns());
}

static void forked(uint64_t own)
{
	uint64_t other = 0, now_ns;
	int ends[2];
	pid_t pid;

	if (pipe(ends) != 0)
		bail("pipe");
	pid = fork();
	if (pid == 0) {
		other = 0;
		(void)registry_self(l, &other);
		if (write(ends[1], &other, sizeof(other)) != sizeof(other))
			_exit(1);
		sleep_on();
	}
	if (read(ends[0], &other, sizeof(other)) != sizeof(other))
		bail("read");
	ok(registry_is_number(other) && other != own, "a forked child is another holder");
	now_ns = registry_now_ns();
	forget_answers();
	is(registry_ask(l, other, now_ns), HOLDER_ALIVE, "the child is alive");
	end(pid);
	is(registry_ask(l, other, now_ns + REGISTRY_FRESH_NS / 2), HOLDER_ALIVE,
	   "a holder that was alive just now is not asked about");
	is(registry_ask(l, other, now_ns + 2 * REGISTRY_FRESH_NS), HOLDER_DEAD, "a dead holder is dead a while later");
	close(ends[0]);
	close(ends[1]);
}

static void registry(void)
{
	struct shmlimit_options options = { .struct_size = sizeof(options), .slots = 16 };
	uint64_t own, again, other, taken[LAYOUT_HOLDERS], wrong = 0;
	struct shmlimit_place place;
	struct shmlimit *second;
	pthread_t thread;
	int id;
	pid_t pid;

	shmlimit_close(l);
	l = unit_create("hold", &options);
	id = rule("registry", 1, PERIOD);
	is(registers(0, &own), 0, "a process registers");
	is(registers(0, &again), 0, "it does so again");
	is(again, own, "it has one number");
	is(registers(getpid(), &again), 0, "it is registered by its pid");
	is(again, own, "that is the same number");
	is(entry_of(own)->space == own, 1, "a process that registers itself keeps its namespace's lock");
	if (shmlimit_open(unit_name, 0, NULL, &second) != 0)
		bail("open");
	is(registry_self(second, &again), 0, "it registers by another handle");
	is(again, own, "the number is one of the process, not of the handle");
	shmlimit_close(second);
	is(asked(own), HOLDER_ALIVE, "it is alive");

	pthread_barrier_init(&told, NULL, 2);
	pthread_barrier_init(&over, NULL, 2);
	if (pthread_create(&thread, NULL, has_an_id, NULL) != 0)
		bail("thread");
	pthread_barrier_wait(&told);
	is(registers(thread_id, &again), 0, "a thread's id is that of a holder");
	is(again, own, "it means the thread's process");
	pthread_barrier_wait(&over);
	pthread_join(thread, NULL);

	if (UNDER_AN_EMULATOR)
		ok(1, "a forked child is another holder # SKIP not in an emulator");
	else
		forked(own);

	/* A number of the future, and one of the past. */
	is(asked(own + 1), HOLDER_UNKNOWN, "of a number that was not given nothing is known");
	entry_of(own)->number++;
	is(asked(own), HOLDER_DEAD, "a number whose entry was given to another process is a dead one's");
	entry_of(own)->number--;

	/* Another boot, another pid namespace. */
	entry_of(own)->process ^= (uint64_t)1 << 32;
	is(asked(own), HOLDER_DEAD, "a process of another boot is dead");
	entry_of(own)->process ^= (uint64_t)1 << 32 ^ 1;
	entry_of(own)->space = own;
	is(asked(own), HOLDER_DEAD, "a holder of a pid namespace that no process is of is dead");
	entry_of(own)->space = 0;
	is(asked(own), HOLDER_UNKNOWN, "one that keeps no lock is not known");
	enter(id, &place, T0);
	*cell_of(OWNER) = own;
	is(enter(id, &place, T0), SHMLIMIT_DENIED, "the place of a holder that is not known is held");
	forget_answers();
	is(enter(id, &place, T0 + PERIOD + HOLD_TICK_NS), SHMLIMIT_ALLOWED,
	   "the place of a holder that is not known ends with its period");
	entry_of(own)->process ^= 1;
	entry_of(own)->space = own;

	/* All entries are given. */
	pid = child_that(sleep_on);
	for (unsigned i = 0; i < LAYOUT_HOLDERS; i++) {
		struct layout_holder *h = entry_of(REGISTRY_FIRST | (uint64_t)i << 48);

		taken[i] = h->number;
		if (i != registry_entry(own)) {
			registers(pid, &again);
			*entry_of(REGISTRY_FIRST | (uint64_t)i << 48) = *entry_of(again);
			entry_of(REGISTRY_FIRST | (uint64_t)i << 48)->number =
				(again & (((uint64_t)1 << 48) - 1)) | REGISTRY_FIRST | (uint64_t)i << 48;
		}
	}
	pid_t late = child_that(sleep_on);
	is(registers(late, &other), -EXFULL, "a process is not registered where all entries are living processes'");
	enter(id, &place, T0);
	is(bind_to(id, &place, late), -EXFULL, "a place is not bound where all entries are living processes'");
	is(l->header->unregistered, 1, "that is counted");
	if (!UNDER_AN_EMULATOR) {
		enter_unregistered(id);
		is(l->header->unregistered, 2,
		   "an entry that is to bind its place, and cannot, is counted, one that is denied is not");
	}
	end(pid);
	forget_answers();
	is(registers(late, &other), 0, "a process gets the entry of one that is dead");
	is(asked(other), HOLDER_ALIVE, "it is alive");
	again = taken[registry_entry(other)];
	wrong += registry_is_number(again) && asked(again) != HOLDER_DEAD;
	is(wrong, 0, "the process that had the entry before is dead");
	end(late);
}

/* In a pid namespace of its own, as a container. */
static void live_elsewhere(int id, int to)
{
	struct shmlimit_place place;
	uint64_t number = 0;

	(void)mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL);
	(void)mount("proc", "/proc", "proc", 0, NULL);
	if (enter(id, &place, T0) != SHMLIMIT_ALLOWED || bind_to(id, &place, 0) != 0 || registry_self(l, &number) != 0)
		number = 0;
	if (write(to, &number, sizeof(number)) == sizeof(number))
		sleep_on();
}

static void namespaces(void)
{
	struct shmlimit_options options = { .struct_size = sizeof(options), .slots = 16 };
	struct shmlimit_place place;
	uint64_t number = 0, own;
	pid_t pid, init = 0;
	int id, ends[2];

	shmlimit_close(l);
	l = unit_create("hold", &options);
	id = rule("namespaces", 1, PERIOD);
	if (registry_self(l, &own) != 0 || pipe(ends) != 0)
		bail("no pipe");
	pid = fork();
	if (pid == 0) {
		if (unshare(CLONE_NEWPID | CLONE_NEWNS) != 0)
			_exit(0);
		init = fork();
		if (init == 0)
			live_elsewhere(id, ends[1]);
		if (write(ends[1], &(uint64_t){ (uint64_t)init }, sizeof(number)) == sizeof(number))
			waitpid(init, NULL, 0);
		_exit(0);
	}
	close(ends[1]);
	for (int i = 0; i < 2; i++) {
		uint64_t word = 0;

		if (read(ends[0], &word, sizeof(word)) != sizeof(word))
			break;
		if (word < REGISTRY_FIRST)
			init = (pid_t)word;
		else
			number = word;
	}
	if (number == 0 || init == 0 || UNDER_AN_EMULATOR) {
		ok(1, "a container's holder is not known while it lives # SKIP no pid namespace is permitted");
	} else {
		is(asked(number), HOLDER_UNKNOWN, "a container's holder is not known while it lives");
		is(enter(id, &place, T0), SHMLIMIT_DENIED, "the place of a container that lives is held");
		kill(init, SIGKILL);
		waitpid(pid, NULL, 0);
		is(asked(number), HOLDER_DEAD, "a container's holder is dead when the container has ended");
		is(enter(id, &place, T0), SHMLIMIT_ALLOWED, "the place of a container that has ended is free");
	}
	if (number == 0 || init == 0 || UNDER_AN_EMULATOR) {
		if (init > 0)
			kill(init, SIGKILL);
		end(pid);
	}
	close(ends[0]);
}

/* A slot that goes to another key while places are held in it: on_full evict. */
static void evictions(void)
{
	struct shmlimit_options options = { .struct_size = sizeof(options), .slots = 16 };
	struct shmlimit_place first, hold;
	uint64_t refused = 0, stale = 0;
	int id, window;

	shmlimit_close(l);
	l = unit_create("hold", &options);
	id = rule("evictions", 1, PERIOD);
	enter(id, &first, T0);
	for (uint64_t i = 0; i < 200; i++) {
		hold = none();
		refused += shmlimit_enter(at_time(l, T0 + i), id, &i, sizeof(i), &hold, NULL) != SHMLIMIT_ALLOWED;
		refused += shmlimit_enter(at_time(l, T0 + i), id, &i, sizeof(i), &first, NULL) != SHMLIMIT_DENIED;
		if (i % 2 == 0)
			stale += shmlimit_leave(at_time(l, T0 + i), id, &i, sizeof(i), &hold) != 0;
	}
	is(refused, 0, "a key that takes another's slot has all of its places, and no more");
	is(stale, 0, "each can be left");
	ok(unit_counters(l, id).evictions > 0, "places were forgotten");
	window = shmlimit_rule_set(at_time(l, T0), "window",
	                           &(struct shmlimit_rule){ .struct_size = sizeof(struct shmlimit_rule),
	                                                    .algorithm = SHMLIMIT_WINDOW,
	                                                    .capacity = WINDOW_MAX,
	                                                    .period_ns = PERIOD });
	refused = 0;
	for (uint64_t i = 0; i < 200; i++) {
		uint64_t key = 1000 + i / 2;
		int *which = i % 2 == 0 ? &window : &id;

		hold = none();
		if (which == &window) {
			refused += shmlimit_take(at_time(l, T0 + i), window, &key, sizeof(key), WINDOW_MAX, NULL) !=
			           SHMLIMIT_ALLOWED;
			refused += shmlimit_take(at_time(l, T0 + i), window, &key, sizeof(key), 1, NULL) !=
			           SHMLIMIT_DENIED;
		} else {
			refused += shmlimit_enter(at_time(l, T0 + i), id, &key, sizeof(key), &hold, NULL) !=
			           SHMLIMIT_ALLOWED;
		}
		if (i % 2 == 1 &&
		    shmlimit_enter(at_time(l, T0 + i), id, &key, sizeof(key), &first, NULL) == SHMLIMIT_ALLOWED)
			refused++;
	}
	is(refused, 0, "windows and places use each other's slots, and are whole each time");
	is(shmlimit_verify(unit_name, NULL, 0), 0, "the segment is sound");
}

/* Any word and any cells: no answer but the two, no more than the capacity, and it goes on. */
static void damage(struct rng *rng)
{
	struct shmlimit_options options = { .struct_size = sizeof(options), .slots = 16 };
	struct shmlimit_problem problem;
	unsigned wrong = 0, found = 0;
	int id;

	shmlimit_close(l);
	l = unit_create("hold", &options);
	id = rule("damage", 3, PERIOD);
	for (int i = 0; i < 2000; i++) {
		struct shmlimit_place hold;
		struct generation tables;

		shmlimit_reset(l, id, NULL, 0);
		enter(id, &hold, T0);
		generation_read(l, &tables);
		for (uint64_t slot = 0; slot < tables.now.lines * SLOTS_PER_LINE; slot++) {
			if (tables.now.slots[slot].tag == 0)
				continue;
			tables.now.slots[slot].word = rng_draw(rng);
			for (int cell = 0; cell < 8; cell++)
				unit_cells(l, &tables.now.slots[slot])[cell] = rng_draw(rng);
		}
		if (shmlimit_verify(unit_name, &problem, 1) == 1)
			found += strstr(problem.text, "more places than there are cells") != NULL;
		if (shmlimit_repair(unit_name, NULL, 0) < 0)
			bail("repair");
		wrong += shmlimit_verify(unit_name, NULL, 0) != 0;
		hold.index = (uint32_t)rng_draw(rng);
		(void)leave(id, &hold, T0);
		(void)shmlimit_renew(at_time(l, T0), id, "k", 1, &hold);
		for (int n = 0; n < 5; n++) {
			int answer = enter(id, &hold, T0);

			wrong += answer != SHMLIMIT_ALLOWED && answer != SHMLIMIT_DENIED;
			wrong += n > 2 && answer != SHMLIMIT_DENIED;
			answer = ahead_of(id, &hold, T0);
			wrong += answer != -ETIME && (answer < 0 || answer > 2);
		}
	}
	is(wrong, 0, "whatever bits a slot has, no more than the capacity enter");
	ok(found > 0, "a word that reaches beyond its cells is found and repaired");
}

/* ---- A set of intervals ---- */

struct interval {
	uint64_t end_ns;            /* of its tick */
	struct shmlimit_place hold; /* value 0: of a take */
	int in;
	int bound;  /* to this process */
	int orphan; /* bound to a process that is dead */
};

struct plain {
	struct interval list[HOLDERS];
	int n;
	uint64_t capacity, period_ns;
};

static int is_in(const struct interval *x, uint64_t now_ns)
{
	return x->in && (x->end_ns > now_ns || x->bound);
}

static uint64_t left_of(const struct plain *p, const struct interval *x, uint64_t now_ns)
{
	if (x->end_ns > now_ns)
		return x->end_ns - now_ns;
	return p->period_ns < SECOND ? p->period_ns : SECOND;
}

static uint64_t held(const struct plain *p, uint64_t now_ns, uint64_t *longest_ns)
{
	uint64_t n = 0;

	*longest_ns = 0;
	for (int i = 0; i < p->n; i++) {
		const struct interval *x = &p->list[i];

		if (!is_in(x, now_ns))
			continue;
		n++;
		if (left_of(p, x, now_ns) > *longest_ns)
			*longest_ns = left_of(p, x, now_ns);
	}
	return n;
}

static uint64_t end_of(const struct plain *p, uint64_t now_ns)
{
	return (now_ns + p->period_ns + HOLD_TICK_NS - 1) / HOLD_TICK_NS * HOLD_TICK_NS;
}

static int expected(const struct plain *p, const struct interval *x, uint64_t now_ns)
{
	(void)p;
	return x->hold.value == 0 || is_in(x, now_ns) ? 0 : -ETIME;
}

/* An entry that would be denied: no place of a dead process is held from now on. Returns how many there were. */
static uint64_t bury_orphans(struct plain *p, uint64_t now_ns)
{
	uint64_t n = 0;

	for (int i = 0; i < p->n; i++)
		if (p->list[i].in && p->list[i].orphan && p->list[i].end_ns > now_ns) {
			p->list[i].in = 0;
			n++;
		}
	return n;
}

/* A process that is dead. shmlimit_bind() would refuse it. */
static uint64_t dead_holder(void)
{
	pid_t pid = child_that(sleep_on);
	uint64_t holder;

	if (registry_process(l, (uint32_t)pid, &holder) != 0)
		bail("no child");
	end(pid);
	return holder;
}

/* As if it had died since. */
static int bind_to_dead(int id, uint64_t key, struct shmlimit_place *place, uint64_t holder, uint64_t now_ns)
{
	struct hold_request asked = { .place = { place->index, place->value }, .holder = holder };
	struct request q = request_make(OP_BIND, (uint32_t)id, key_bytes(&key, sizeof(key)), 0, when_given(now_ns));

	q.hold = &asked;
	if (place->value == 0)
		return 0;
	(void)decide_call(l, &q, NULL);
	return asked.done ? 0 : -ETIME;
}

/* An entry or a take by a bound of its own. */
static int enter_by(int id, uint64_t key, uint64_t bound, struct shmlimit_place *place, struct shmlimit_result *result,
                    uint64_t now_ns)
{
	struct shmlimit_limit limit = places_at_once(bound);
	struct shmlimit_request q = {
		.rule = id, .key = &key, .key_len = sizeof(key), .cost = 1, .limit = &limit, .place = place
	};

	return shmlimit_decide(at_time(l, now_ns), SHMLIMIT_TAKE, &q, result);
}

static int peek_by(int id, uint64_t key, uint64_t bound, uint64_t now_ns)
{
	struct shmlimit_limit limit = places_at_once(bound);
	struct shmlimit_request q = { .rule = id, .key = &key, .key_len = sizeof(key), .cost = 1, .limit = &limit };

	return shmlimit_decide(at_time(l, now_ns), SHMLIMIT_PEEK, &q, &r);
}

/* A peek with a place: those that end before it are ahead. Of a take it is not known where it is. */
static unsigned look_ahead(int id, const struct plain *p, struct interval *x, uint64_t key, uint64_t now_ns,
                           uint64_t did[7])
{
	struct shmlimit_request q = { .rule = id, .key = &key, .key_len = sizeof(key), .cost = 1, .place = &x->hold };
	int want = x->hold.value != 0 && is_in(x, now_ns) ? SHMLIMIT_ALLOWED : -ETIME;
	uint64_t ahead = 0, perhaps = 0;

	for (int i = 0; i < p->n; i++) {
		const struct interval *y = &p->list[i];

		if (y == x || !is_in(y, now_ns) || y->orphan || y->end_ns > x->end_ns)
			continue;
		if (y->end_ns == x->end_ns && y->hold.value == 0)
			perhaps++;
		else if (y->end_ns < x->end_ns || y->hold.index < x->hold.index)
			ahead++;
	}
	if (shmlimit_decide(at_time(l, now_ns), SHMLIMIT_PEEK, &q, &r) != want)
		return 1;
	did[6] += want == SHMLIMIT_ALLOWED && ahead != 0;
	if (want != SHMLIMIT_ALLOWED)
		return 0;
	if (r.limit != p->capacity || r.reset_after_ns != left_of(p, x, now_ns))
		return 1;
	if (ahead + 1 >= p->capacity)
		return r.remaining != 0;
	return r.remaining > p->capacity - 1 - ahead || r.remaining + ahead + perhaps + 1 < p->capacity;
}

static unsigned step(struct rng *rng, int id, struct plain *p, uint64_t key, uint64_t now_ns, uint64_t did[7])
{
	static uint64_t dead;
	/* Half of them have a bound of their own, which may be above the capacity. */
	uint64_t bound = rng_below(rng, 2) * (1 + rng_below(rng, 7));
	uint64_t most = bound != 0 && bound < p->capacity ? bound : p->capacity;
	struct interval *x = p->n == 0 ? NULL : &p->list[rng_below(rng, (uint64_t)p->n)];
	uint64_t longest_ns, n = held(p, now_ns, &longest_ns), what = rng_below(rng, key % 4 == 0 ? 10 : 8);
	struct plain without;
	int answer, want;

	/* What a dead process's place is whose time is over depends on who asked since. */
	if (x != NULL && x->orphan && x->end_ns <= now_ns)
		x = NULL;
	/* One history in four has places that are bound: to ask about them takes system calls. */
	if (dead == 0)
		dead = dead_holder();
	if (x != NULL && what >= 8) {
		want = expected(p, x, now_ns);
		answer = what == 8 ? shmlimit_bind(at_time(l, now_ns), id, &key, sizeof(key), &x->hold, 0)
		                   : bind_to_dead(id, key, &x->hold, dead, now_ns);
		if (answer == 0) {
			x->orphan = what == 9 && x->hold.value != 0;
			x->bound = what == 8 && x->hold.value != 0;
		}
		return answer != want;
	}
	if (what < 4 && p->n < HOLDERS) {
		struct interval new = { .hold = none() };
		int plain = rng_below(rng, 2) == 0; /* without a result */

		if (key % 4 == 0 && rng_below(rng, 2) == 0)
			new.hold = binding();

		if (n >= most) {
			did[4] += bury_orphans(p, now_ns);
			n = held(p, now_ns, &longest_ns);
		}
		want = n < most ? SHMLIMIT_ALLOWED : SHMLIMIT_DENIED;
		did[5] += n > most;
		if (bound != 0)
			answer = enter_by(id, key, bound, what == 0 ? NULL : &new.hold, what != 0 && plain ? NULL : &r,
			                  now_ns);
		else if (what == 0)
			answer = shmlimit_take(at_time(l, now_ns), id, &key, sizeof(key), 1, &r);
		else
			answer =
				shmlimit_enter(at_time(l, now_ns), id, &key, sizeof(key), &new.hold, plain ? NULL : &r);
		did[answer == SHMLIMIT_DENIED]++;
		if (want == SHMLIMIT_ALLOWED) {
			new.end_ns = end_of(p, now_ns);
			new.in = 1;
			new.bound = what != 0 && new.hold.flags != 0;
			p->list[p->n++] = new;
			longest_ns = longest_ns > new.end_ns - now_ns ? longest_ns : new.end_ns - now_ns;
		}
		n += want == SHMLIMIT_ALLOWED;
		return answer != want || ((what == 0 || !plain) && (r.remaining != (n < most ? most - n : 0) ||
		                                                    r.reset_after_ns != longest_ns || r.limit != most));
	}
	if (x != NULL && what == 4) {
		struct shmlimit_place before = x->hold;

		want = expected(p, x, now_ns);
		answer = shmlimit_renew(at_time(l, now_ns), id, &key, sizeof(key), &x->hold);
		did[2 + (answer != 0)]++;
		if (answer == 0 && before.value != 0)
			x->end_ns = end_of(p, now_ns);
		return answer != want || (x->hold.value != before.value) != (answer == 0 && before.value != 0);
	}
	if (x != NULL && what < 7) {
		want = expected(p, x, now_ns);
		answer = shmlimit_leave(at_time(l, now_ns), id, &key, sizeof(key), &x->hold);
		did[2 + (answer != 0)]++;
		if (x->hold.value != 0 && answer == 0)
			x->in = 0;
		return answer != want;
	}
	if (x != NULL && rng_below(rng, 2) == 0)
		return look_ahead(id, p, x, key, now_ns, did);
	/* A peek counts no places of dead processes. */
	without = *p;
	(void)bury_orphans(&without, now_ns);
	n = held(&without, now_ns, &longest_ns);
	answer = bound != 0 ? peek_by(id, key, bound, now_ns)
	                    : shmlimit_peek(at_time(l, now_ns), id, &key, sizeof(key), 1, &r);
	return answer != (n < most ? SHMLIMIT_ALLOWED : SHMLIMIT_DENIED) || r.remaining != (n < most ? most - n : 0) ||
	       r.reset_after_ns != longest_ns;
}

static void histories(struct rng *rng)
{
	struct shmlimit_options options = { .struct_size = sizeof(options),
		                            .slots = 4096,
		                            .on_full = SHMLIMIT_FULL_DENY };
	static struct plain p;
	uint64_t did[7] = { 0 }, now_ns = T0;
	unsigned wrong = 0;
	int id = -1;

	shmlimit_close(l);
	l = unit_create("hold", &options);
	for (uint64_t i = 0; i < scaled(HISTORIES) && wrong == 0; i++) {
		/* Time does not go back: of 4096 claims of a slot two are alike, and what was held in one would be held again. */
		now_ns += 2 * SECOND + rng_below(rng, SECOND);
		if (i % 1000 == 0) {
			p.capacity = 1 + rng_below(rng, 5);
			p.period_ns = 1 + rng_below(rng, SECOND);
			id = rule("history", p.capacity, p.period_ns);
			shmlimit_reset(l, id, NULL, 0);
		}
		p.n = 0;
		for (int ask = 0; ask < ASKS; ask++) {
			now_ns += rng_below(rng, 2) * rng_below(rng, p.period_ns / 2 + 2);
			wrong += step(rng, id, &p, i, now_ns, did);
		}
	}
	is(wrong, 0, "random histories are those of a set of intervals");
	for (int i = 0; i < 7; i++)
		ok(did[i] > scaled(HISTORIES) / (i < 4 ? 10 : 100),
		   "random histories have much that is allowed, denied, left, late, taken from dead processes, beyond a bound, and in a line (%d)",
		   i);
}

/* An entry says when the last place ends, also where another clock was ahead; but not by an end that cannot be. */
static void last_to_end(void)
{
	struct shmlimit_rule rule = {
		.struct_size = sizeof(rule), .algorithm = SHMLIMIT_HOLD, .capacity = 4, .period_ns = 10 * SECOND
	};
	const uint64_t at = 5000 * SECOND;
	struct shmlimit_options options = { .struct_size = sizeof(options), .slots = 64 };
	struct shmlimit *own = unit_create("last_to_end", &options);
	struct shmlimit_place place = { .struct_size = sizeof(place) };
	struct shmlimit_result said;
	int id = unit_id(shmlimit_rule_set(at_time(own, at), "r", &rule));

	shmlimit_enter(at_time(own, at + SECOND / 2), id, "a", 1, &place, NULL);
	shmlimit_enter(at_time(own, at), id, "a", 1, &place, &said);
	ok(said.reset_after_ns >= 10 * SECOND + SECOND / 2 && said.reset_after_ns < 10 * SECOND + SECOND / 2 + 65536,
	   "an entry says when a place of a clock ahead ends");
	shmlimit_enter(at_time(own, at + 30 * SECOND), id, "b", 1, &place, NULL);
	shmlimit_enter(at_time(own, at), id, "b", 1, &place, &said);
	ok(said.reset_after_ns >= 10 * SECOND && said.reset_after_ns < 10 * SECOND + 65536,
	   "an entry says a period where a place has an end that cannot be");
	shmlimit_close(own);
	shmlimit_destroy(unit_name);
}

int main(void)
{
	struct shmlimit_options options = { .struct_size = sizeof(options), .slots = 1024 };
	struct rng rng = { rng_seed() };

	l = unit_create("hold", &options);
	holding();
	taking();
	bounds();
	lines();
	bounds_together();
	bounds_as_text();
	errors();
	changes();
	retries(&rng);
	shortened();
	ended_before_the_step();
	years_beside_a_renewed_place();
	left_twice();
	is(shmlimit_verify(unit_name, NULL, 0), 0, "the segment is sound");
	moves();
	holders();
	bound();
	registry();
	namespaces();
	evictions();
	damage(&rng);
	histories(&rng);
	shmlimit_close(l);
	last_to_end();
	return tap_done();
}
