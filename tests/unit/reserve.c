/*
 * reserve, charge, refund: debt, who waits for it and how long (I1 with debt),
 * and several limits at once.
 *
 * SEED=n repeats a run; TEST_SCALE=n makes it n times as long.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "../rng.h"
#include "unit.h"

#define T0 (1000 * SECOND)

typedef unsigned __int128 u128;

static struct shmlimit *l;
static struct shmlimit_result r;

static int rule(const char *name, uint64_t capacity, uint64_t count, uint64_t max_wait_ns, uint32_t flags)
{
	return unit_rule_at(l, name,
	                    (struct shmlimit_rule){ .capacity = capacity,
	                                            .refill = count,
	                                            .period_ns = SECOND,
	                                            .max_wait_ns = max_wait_ns,
	                                            .flags = flags },
	                    T0);
}

static int reserve(int id, uint64_t cost, uint64_t max_wait_ns, uint64_t at)
{
	return shmlimit_reserve(at_time(l, at), id, "k", 1, cost, max_wait_ns, &r);
}

static void caller_pays(void)
{
	int id = rule("caller", 5, 5, 2 * SECOND, 0);

	is(reserve(id, 5, UINT64_MAX, T0), SHMLIMIT_ALLOWED, "a reservation of what is left is granted");
	is(r.wait_ns, 0, "a reservation of what is left has no wait");
	is(reserve(id, 1, UINT64_MAX, T0), SHMLIMIT_ALLOWED, "a token that is not there can be reserved");
	is(r.wait_ns, SECOND / 5, "a reservation waits until its token is there");
	is(reserve(id, 4, UINT64_MAX, T0), SHMLIMIT_ALLOWED, "four more tokens can be reserved");
	is(r.wait_ns, SECOND, "a second reservation waits behind the first");
	is(r.reset_after_ns, 2 * SECOND, "the reset time counts what was reserved");
	is(reserve(id, 1, SECOND, T0), SHMLIMIT_DENIED, "a caller that will not wait so long is denied");
	is(r.retry_after_ns, SECOND / 5, "a caller that will not wait so long learns when the wait is short enough");
	is(reserve(id, 1, SECOND, T0 + SECOND / 5 - 1), SHMLIMIT_DENIED,
	   "a wait is not short enough a nanosecond too early");
	is(reserve(id, 1, SECOND, T0 + SECOND / 5), SHMLIMIT_ALLOWED,
	   "a reservation is granted when its wait is short enough");
	is(r.wait_ns, SECOND, "a wait may be just as long as its caller allows");
	is(reserve(id, 5, UINT64_MAX, T0 + SECOND / 5), SHMLIMIT_ALLOWED, "debt goes as far as the rule says");
	is(r.wait_ns, 2 * SECOND, "the longest debt is a wait of 2 s");
	is(reserve(id, 1, UINT64_MAX, T0 + SECOND / 5), SHMLIMIT_DENIED, "nothing is reserved beyond the longest debt");
	is(r.retry_after_ns, SECOND / 5, "a reservation beyond the longest debt fits when a token has come back");
	is(shmlimit_take(at_time(l, T0 + SECOND / 5), id, "k", 1, 1, &r), SHMLIMIT_DENIED,
	   "in debt nothing can be taken");
	is(r.retry_after_ns, 2 * SECOND + SECOND / 5,
	   "a take in debt fits when the debt is paid and a token has come back");
	is(shmlimit_take(at_time(l, T0 + 2 * SECOND + 2 * (SECOND / 5)), id, "k", 1, 1, NULL), SHMLIMIT_ALLOWED,
	   "a token can be taken when the debt is paid");
}

static void larger_than_capacity(void)
{
	int id = rule("large", 5, 5, 2 * SECOND, 0);

	is(reserve(id, 12, UINT64_MAX, T0), SHMLIMIT_ALLOWED, "a reservation may be larger than the capacity");
	is(r.wait_ns, 7 * SECOND / 5, "a reservation above the capacity waits for what is lacking");
	is(reserve(id, 16, UINT64_MAX, T0), SHMLIMIT_DENIED, "a reservation above capacity and longest debt is denied");
	ok(r.retry_after_ns == UINT64_MAX, "a reservation above capacity and longest debt never fits");
	is(reserve(id, UINT64_MAX, UINT64_MAX, T0), SHMLIMIT_DENIED, "the largest reservation is denied");
	ok(r.retry_after_ns == UINT64_MAX, "the largest reservation never fits");
	id = rule("none", 5, 5, 0, 0);
	is(reserve(id, 5, UINT64_MAX, T0), SHMLIMIT_ALLOWED,
	   "a rule without debt grants a reservation of what is left");
	is(reserve(id, 1, UINT64_MAX, T0), SHMLIMIT_DENIED,
	   "a rule without debt denies a reservation of more than is left");
	is(r.retry_after_ns, SECOND / 5, "without debt, a reservation fits when its token is there");
	is(reserve(id, 0, 0, T0), SHMLIMIT_ALLOWED, "a cost of 0 is always allowed");
}

static void next_pays(void)
{
	int id = rule("next", 1, 5, SECOND, SHMLIMIT_RULE_NEXT_PAYS);

	is(reserve(id, 5, UINT64_MAX, T0), SHMLIMIT_ALLOWED, "Guava: five permits of one a fifth of a second");
	is(r.wait_ns, 0, "Guava: the first permits have no wait");
	is(reserve(id, 1, UINT64_MAX, T0), SHMLIMIT_ALLOWED, "Guava: the next caller gets a permit");
	is(r.wait_ns, 4 * SECOND / 5, "Guava: the next caller waits for the four permits that were lacking");
	is(reserve(id, 1, UINT64_MAX, T0), SHMLIMIT_ALLOWED, "Guava: the caller after the next gets a permit");
	is(r.wait_ns, SECOND, "Guava: the caller after the next waits for the next one's permit too");
	is(reserve(id, 1, UINT64_MAX, T0), SHMLIMIT_DENIED, "Guava: a caller whose wait would be too long is denied");
	is(r.retry_after_ns, SECOND / 5, "Guava: a caller that is denied learns when the wait is short enough");
}

static void charge_and_refund(void)
{
	int id = rule("charge", 10, 10, SECOND, 0);

	is(shmlimit_charge(at_time(l, T0), id, "k", 1, 4, &r), SHMLIMIT_ALLOWED, "a charge takes what is there");
	is(r.remaining, 6, "a charge of what is there is like a take");
	is(shmlimit_charge(at_time(l, T0), id, "k", 1, 8, &r), SHMLIMIT_ALLOWED, "a charge takes what is not there");
	is(r.remaining, 0, "a charge above what is left leaves nothing");
	is(r.reset_after_ns, 12 * SECOND / 10, "a charge above what is left leaves a debt");
	is(r.retry_after_ns, 0, "a charge that takes all of it has nothing to say");
	shmlimit_charge(at_time(l, T0), id, "k", 1, 8, &r);
	is(r.retry_after_ns, 0, "a charge down to the longest debt has nothing to say");
	shmlimit_refund(at_time(l, T0), id, "k", 1, 8, &r);
	shmlimit_charge(at_time(l, T0), id, "k", 1, UINT64_MAX, &r);
	is(r.reset_after_ns, 2 * SECOND, "a charge goes down to the longest debt and no further");
	is(r.retry_after_ns, UINT64_MAX, "a charge that takes a part of it says so");
	shmlimit_charge(at_time(l, T0), id, "k", 1, 1, &r);
	is(r.retry_after_ns, UINT64_MAX, "a charge that takes nothing of it says so");
	is(r.reset_after_ns, 2 * SECOND, "at the longest debt a charge takes not a single token");
	shmlimit_refund(at_time(l, T0), id, "k", 1, 4, &r);
	is(r.reset_after_ns, 16 * SECOND / 10, "a refund pays the debt");
	is(r.remaining, 0, "a refund pays the debt before it gives tokens");
	shmlimit_refund(at_time(l, T0 + SECOND / 20), id, "k", 1, 8, &r);
	is(r.remaining, 2, "a refund above the debt gives tokens");
	is(r.reset_after_ns, 15 * SECOND / 20, "a refund leaves the fraction of a token that had come back");
	shmlimit_refund(at_time(l, T0 + SECOND / 20), id, "k", 1, UINT64_MAX, &r);
	is(r.remaining, 10, "a refund gives tokens up to the capacity");
	is(unit_counters(l, id).allowed, 0, "charges and refunds are not counted as decisions");
}

/* A reservation given back leaves no trace. */
static void undo(void)
{
	int id = rule("undo", 3, 7, 10 * SECOND, 0), same = 0;
	struct shmlimit_result before = { 0 }, after = { 0 };
	uint64_t state = 12345, t = T0;

	for (int i = 0; i < 20000; i++) {
		uint64_t cost;

		state = state * 6364136223846793005u + 1442695040888963407u;
		t += state >> 40;
		cost = 1 + (state >> 33) % 9;
		if (state >> 62 == 0)
			reserve(id, cost, 5 * SECOND, t);
		shmlimit_peek(at_time(l, t), id, "k", 1, 1, &before);
		if (reserve(id, cost, UINT64_MAX, t) == SHMLIMIT_ALLOWED)
			shmlimit_refund(at_time(l, t), id, "k", 1, cost, NULL);
		shmlimit_peek(at_time(l, t), id, "k", 1, 1, &after);
		same += memcmp(&before, &after, sizeof(before)) == 0;
	}
	is(same, 20000, "a reservation that is given back leaves the funnel as it was");
}

/* A debt may be longer than the year that a key may be idle. */
static void years(void)
{
	uint64_t day = 86400 * SECOND;
	struct shmlimit_rule spec = {
		.struct_size = sizeof(spec), .capacity = 1, .refill = 1, .period_ns = day, .max_wait_ns = 730 * day
	};
	int id = shmlimit_rule_set(at_time(l, T0), "years", &spec);

	is(reserve(id, 400, UINT64_MAX, T0), SHMLIMIT_ALLOWED,
	   "400 days can be reserved at once where 730 are allowed");
	is(r.wait_ns, 399 * day, "the wait is 399 days, as one token was there");
	is(r.reset_after_ns, 400 * day, "the funnel is full a day later");
	is(reserve(id, 332, UINT64_MAX, T0), SHMLIMIT_DENIED, "731 days cannot be reserved");
	is(r.retry_after_ns, day, "a reservation of 731 days fits after a day");
	is(reserve(id, 732, UINT64_MAX, T0), SHMLIMIT_DENIED, "731 days beyond the capacity cannot be reserved");
	ok(r.retry_after_ns == UINT64_MAX, "731 days beyond the capacity never fit");
	shmlimit_refund(at_time(l, T0), id, "k", 1, 400, &r);
	is(r.reset_after_ns, 0, "what 400 days were reserved for can be given back");
	shmlimit_charge(at_time(l, T0), id, "k", 1, 400, &r);
	is(r.reset_after_ns, 400 * day, "400 days can be charged at once");
}

static uint64_t state;

static uint64_t up_to(uint64_t n)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint64_t)((u128)state * (n + 1) >> 64);
}

/* Is (cost - capacity) tokens' time longer than the longest debt? In real numbers, which know no ticks. */
static int can_never(const struct shmlimit_rule *spec, uint64_t cost, uint64_t limit_ns)
{
	u128 refill_ns = ((u128)spec->capacity * spec->period_ns + spec->refill - 1) / spec->refill;
	u128 longest_ns = limit_ns < spec->max_wait_ns ? limit_ns : spec->max_wait_ns;

	if ((spec->flags & SHMLIMIT_RULE_NEXT_PAYS) && spec->max_wait_ns != 0)
		longest_ns = spec->max_wait_ns + refill_ns;
	return cost > spec->capacity && (u128)(cost - spec->capacity) * spec->period_ns > longest_ns * spec->refill;
}

/* What a denied reservation reports: the least time that suffices, or that none does. */
static void when(void)
{
	uint64_t early = 0, late = 0, never = 0, wrong_never = 0, too_long = 0, denied = 0;

	state = rng_seed();
	for (uint64_t i = 0; i < scaled(400); i++) {
		struct shmlimit_rule spec = { .struct_size = sizeof(spec),
			                      .capacity = 1 + up_to(i % 4 ? 9 : 99999),
			                      .refill = 1 + up_to(i % 3 ? 12 : 99999),
			                      .period_ns = 1 + up_to(SECOND),
			                      .flags = i % 5 == 0 };
		uint64_t t = T0 + up_to(SECOND), token_ns = spec.period_ns / spec.refill + 1, limit_ns;
		int id;

		/* A whole number of tokens, and a nanosecond more or less: where ticks and nanoseconds differ. */
		spec.max_wait_ns = (uint64_t)((u128)up_to(3 * spec.capacity) * spec.period_ns / spec.refill) + up_to(2);
		id = shmlimit_rule_set(at_time(l, t), "when", &spec);
		if (id == -ERANGE)
			continue;
		shmlimit_reset(l, id, "k", 1);
		for (int j = 0; j < 50; j++) {
			uint64_t cost = 1 + up_to(5 * spec.capacity), retry_ns;

			if (up_to(2) == 0) /* about as many as can be borrowed */
				cost = spec.capacity + spec.max_wait_ns / token_ns + up_to(2);
			limit_ns = up_to(1) ? UINT64_MAX : spec.max_wait_ns - up_to(spec.max_wait_ns < 3 ? 0 : 2);
			t += up_to(3) ? up_to(token_ns) : up_to(2 * token_ns * spec.capacity);
			if (reserve(id, cost, limit_ns, t) == SHMLIMIT_ALLOWED) {
				too_long += r.wait_ns > limit_ns || r.wait_ns > spec.max_wait_ns;
				wrong_never += can_never(&spec, cost, limit_ns);
				continue;
			}
			denied++;
			retry_ns = r.retry_after_ns;
			never += retry_ns == UINT64_MAX;
			wrong_never += (retry_ns == UINT64_MAX) != can_never(&spec, cost, limit_ns);
			if (retry_ns == UINT64_MAX)
				continue;
			early += reserve(id, cost, limit_ns, t + retry_ns - 1) != SHMLIMIT_DENIED;
			t += retry_ns;
			late += reserve(id, cost, limit_ns, t) != SHMLIMIT_ALLOWED;
		}
	}
	ok(never > scaled(100) && denied - never > scaled(100), "reservations were denied for a time, and for ever");
	is(early, 0, "a reservation that is denied does not fit a nanosecond before its retry_after");
	is(late, 0, "a reservation that is denied fits after exactly its retry_after");
	is(wrong_never, 0,
	   "a reservation is denied for ever if the time of the tokens lacking is longer than its limit");
	is(too_long, 0, "a reservation waits no longer than its limit and the rule's");
}

static void together(void)
{
	int site = rule("site", 100, 1, 0, 0), user = rule("user", 2, 1, 0, 0), dry;
	struct shmlimit_rule watch = {
		.struct_size = sizeof(watch), .mode = SHMLIMIT_DRY_RUN, .capacity = 1, .refill = 1, .period_ns = SECOND
	};
	struct shmlimit_request all[] = {
		{ .rule = site, .key = "all", .key_len = 3, .cost = 1 },
		{ .rule = user, .key = "eve", .key_len = 3, .cost = 1 },
	};
	struct shmlimit_request three[3];
	struct shmlimit_result results[3];
	size_t failed = 99;

	is(shmlimit_take_all(at_time(l, T0), all, 2, &failed, results), SHMLIMIT_ALLOWED,
	   "two limits that both allow are taken");
	is(results[0].remaining, 99, "the first of two limits is taken from");
	is(results[1].remaining, 1, "the second of two limits is taken from");
	is(failed, 99, "where both limits allow, none is said to have failed");
	shmlimit_take_all(at_time(l, T0), all, 2, NULL, NULL);
	is(shmlimit_take_all(at_time(l, T0), all, 2, &failed, results), SHMLIMIT_DENIED,
	   "two limits are denied where the second one denies");
	is(failed, 1, "the limit that denied is reported");
	is(results[1].retry_after_ns, SECOND, "the limit that denied says when to ask again");
	shmlimit_peek(at_time(l, T0), site, "all", 3, 1, &r);
	is(r.remaining, 98, "where the second limit denied, the first one has its token back");
	dry = shmlimit_rule_set(at_time(l, T0), "watch", &watch);
	three[0] = (struct shmlimit_request){ .rule = dry, .key = "eve", .key_len = 3, .cost = 2 };
	three[1] = all[0];
	three[2] = all[1];
	is(shmlimit_take_all(at_time(l, T0), three, 3, &failed, results), SHMLIMIT_DENIED, "a dry run denies nothing");
	is(failed, 2, "the limit that denied after a dry run is reported");
	shmlimit_peek(at_time(l, T0), dry, "eve", 3, 0, &r);
	is(r.remaining, 1, "a dry run that took nothing gets nothing back");
	all[1].rule = 63;
	is(shmlimit_take_all(at_time(l, T0), all, 2, &failed, results), -ESRCH,
	   "an error of one limit is the answer of all");
	shmlimit_peek(at_time(l, T0), site, "all", 3, 1, &r);
	is(r.remaining, 98, "what was taken before an error is given back");
	is(shmlimit_take_all(at_time(l, T0), all, 0, NULL, NULL), -EINVAL, "a request of no limits is refused");
	is(shmlimit_take_all(at_time(l, T0), all, 17, NULL, NULL), -EINVAL, "a request of seventeen limits is refused");
	is(shmlimit_take_all(at_clock(l), all, 1, NULL, NULL), SHMLIMIT_ALLOWED,
	   "several limits can be taken by the limiter's clock");
}

static void waiting(void)
{
	struct shmlimit_rule spec = {
		.struct_size = sizeof(spec), .capacity = 1, .refill = 200, .period_ns = SECOND, .max_wait_ns = SECOND
	};
	int id = shmlimit_rule_set(at_clock(l), "acquire", &spec), allowed = 0;
	uint64_t start = shmlimit_now(l), waited = 0;

	for (int i = 0; i < 21; i++) {
		allowed += shmlimit_acquire(l, id, "k", 1, 1, SECOND, &r) == SHMLIMIT_ALLOWED;
		waited += r.wait_ns;
	}
	is(allowed, 21, "acquire waits for what it reserves");
	ok(shmlimit_now(l) - start >= 20 * (SECOND / 200), "twenty tokens at 200 a second take a tenth of a second");
	ok(waited > 0, "acquire's result says how long it waited");
	shmlimit_charge(l, id, "k", 1, 1000, NULL);
	is(shmlimit_acquire(l, id, "k", 1, 1, SECOND / 2, &r), SHMLIMIT_DENIED,
	   "acquire is denied where it would wait too long");
	is(r.wait_ns, 0, "acquire does not wait where it is denied");
	is(shmlimit_acquire(NULL, id, "k", 1, 1, 0, &r), -EINVAL, "acquire of no limiter is an error");
}

static void refused(void)
{
	struct shmlimit_rule spec = { .struct_size = sizeof(spec),
		                      .capacity = 1000000,
		                      .refill = 100000000000,
		                      .period_ns = SECOND,
		                      .max_wait_ns = 3 * 365 * 86400 * SECOND };

	is(shmlimit_rule_set(l, "far", &spec), -ERANGE, "a debt longer than the rule's clock can tell is refused");
	spec.max_wait_ns = UINT64_MAX;
	spec.capacity = 1;
	spec.refill = 1;
	is(shmlimit_rule_set(l, "far", &spec), -ERANGE, "a debt of centuries is refused");
	is(shmlimit_rule_find(l, "far"), -ESRCH, "a rule that was refused is not set");
}

int main(void)
{
	l = unit_create("reserve", NULL);
	caller_pays();
	larger_than_capacity();
	next_pays();
	charge_and_refund();
	undo();
	years();
	when();
	together();
	waiting();
	refused();
	is(shmlimit_verify(unit_name, NULL, 0), 0, "the segment is sound after all this");
	return tap_done();
}
