/*
 * shmlimit_decide(): each verb answers as the call of that name, for each algorithm; what is wrong with a request is an
 * error that changes nothing.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "unit.h"

#include "../rng.h"

#define T0 ((uint64_t)1000 * 86400 * SECOND)
#define KEYS 8

static struct shmlimit *l;
static struct rng rng;

static int call_at(uint32_t verb, const struct shmlimit_request *q, struct shmlimit_result *r, uint64_t now_ns)
{
	switch (verb) {
	case SHMLIMIT_TAKE:
		return shmlimit_take(at_time(l, now_ns), q->rule, q->key, q->key_len, q->cost, r);
	case SHMLIMIT_PEEK:
		return shmlimit_peek(at_time(l, now_ns), q->rule, q->key, q->key_len, q->cost, r);
	case SHMLIMIT_RESERVE:
		return shmlimit_reserve(at_time(l, now_ns), q->rule, q->key, q->key_len, q->cost, UINT64_MAX, r);
	case SHMLIMIT_CHARGE:
		return shmlimit_charge(at_time(l, now_ns), q->rule, q->key, q->key_len, q->cost, r);
	default:
		return shmlimit_refund(at_time(l, now_ns), q->rule, q->key, q->key_len, q->cost, r);
	}
}

/* Two rules of the same terms, one asked by calls and one by verbs. */
static void same(const int *by_call, const int *by_verb, int n)
{
	static const uint32_t verbs[] = { SHMLIMIT_TAKE,    SHMLIMIT_TAKE,   SHMLIMIT_PEEK,
		                          SHMLIMIT_RESERVE, SHMLIMIT_CHARGE, SHMLIMIT_REFUND };
	uint64_t now_ns = T0, total = scaled(60000), differ = 0, answers[2] = { 0 };

	for (uint64_t i = 0; i < total; i++) {
		uint32_t verb = verbs[rng_below(&rng, 6)];
		unsigned key = (unsigned)rng_below(&rng, KEYS), which = (unsigned)rng_below(&rng, (uint64_t)n);
		struct shmlimit_result called = { 0 }, decided = { 0 };
		struct shmlimit_request q = {
			.rule = by_call[which], .key = &key, .key_len = sizeof(key), .cost = rng_below(&rng, 4)
		};
		int has_result = rng_below(&rng, 4) != 0,
		    answer = call_at(verb, &q, has_result ? &called : NULL, now_ns);

		q.rule = by_verb[which];
		if (shmlimit_decide(at_time(l, now_ns), verb, &q, has_result ? &decided : NULL) != answer ||
		    memcmp(&called, &decided, sizeof(called)) != 0)
			differ++;
		if (answer >= 0)
			answers[answer]++;
		now_ns += rng_below(&rng, SECOND / 60);
	}
	is(differ, 0, "each verb answers as the call of its name: %lu calls of %d algorithms", (unsigned long)total, n);
	ok(answers[SHMLIMIT_ALLOWED] > total / 10 && answers[SHMLIMIT_DENIED] > total / 10,
	   "of them many were allowed, and many denied");
}

/* By the limiter's clock, of a key whose tokens do not come back in the meantime. */
static void by_the_clock(void)
{
	int rule = unit_rule_of(
		at_clock(l), "hours",
		(struct shmlimit_rule){
			.capacity = 5, .refill = 1, .period_ns = 3600 * SECOND, .max_wait_ns = 5000 * SECOND });
	struct shmlimit_request q = { .rule = rule, .key = "k", .key_len = 1, .cost = 2 };
	struct shmlimit_result r;

	is(shmlimit_decide(l, SHMLIMIT_TAKE, &q, &r), SHMLIMIT_ALLOWED, "a take");
	is(r.remaining, 3, "of two tokens");
	is(shmlimit_decide(l, SHMLIMIT_PEEK, &q, &r), SHMLIMIT_ALLOWED, "a peek");
	is(r.remaining, 3, "takes none");
	is(shmlimit_decide(l, SHMLIMIT_CHARGE, &q, &r), SHMLIMIT_ALLOWED, "a charge");
	is(r.remaining, 1, "of two more");
	is(shmlimit_decide(l, SHMLIMIT_REFUND, &q, &r), SHMLIMIT_ALLOWED, "a refund");
	is(r.remaining, 3, "gives them back");
	is(shmlimit_decide(l, SHMLIMIT_ACQUIRE, &q, &r), SHMLIMIT_ALLOWED, "an acquisition");
	is(r.wait_ns, 0, "need not wait for what is there");
	is(shmlimit_decide(l, SHMLIMIT_RESERVE, &q, &r), SHMLIMIT_ALLOWED, "a reservation");
	ok(r.wait_ns > 3500 * SECOND && r.wait_ns <= 3600 * SECOND, "waits as long as the rule allows");
	is(shmlimit_decide(l, SHMLIMIT_RESERVE, &q, &r), SHMLIMIT_DENIED, "it waits no longer");
	is(shmlimit_decide(l, SHMLIMIT_ACQUIRE, &q, &r), SHMLIMIT_DENIED, "an acquisition waits no longer either");
	q.cost = 0;
	is(shmlimit_decide(l, SHMLIMIT_TAKE, &q, NULL), SHMLIMIT_ALLOWED, "a take of nothing is a peek");
}

static void refused(int rule)
{
	struct shmlimit_limit limit = { .struct_size = sizeof(limit), .capacity = 1, .refill = 1, .period_ns = SECOND };
	struct shmlimit_request q = { .rule = rule, .key = "fresh", .key_len = 5, .cost = 1 }, wrong;
	struct shmlimit_result r;

	for (uint32_t verb = 0; verb <= SHMLIMIT_TAKE_SOME; verb++) {
		is(shmlimit_decide(l, verb, NULL, &r), -EINVAL, "verb %u: no request", verb);
		is(shmlimit_decide(NULL, verb, &q, &r), -EINVAL, "verb %u: no limiter", verb);
		wrong = q;
		wrong.share = SHMLIMIT_SHARE_ONE;
		is(shmlimit_decide(l, verb, &wrong, &r), -EINVAL, "verb %u: a share of nothing", verb);
		wrong = q;
		wrong.key = NULL;
		is(shmlimit_decide(l, verb, &wrong, &r), -EINVAL, "verb %u: no key", verb);
		wrong = q;
		wrong.key_len = 0;
		is(shmlimit_decide(l, verb, &wrong, &r), -EMSGSIZE, "verb %u: an empty key", verb);
		wrong = q;
		wrong.limit = &limit;
		is(shmlimit_decide(l, verb, &wrong, &r), -EOPNOTSUPP, "verb %u: a limit under a rule that has its own",
		   verb);
	}
	is(shmlimit_decide(l, SHMLIMIT_TAKE_SOME + 1, &q, &r), -EINVAL, "a verb that is none");
	is(shmlimit_decide(l, UINT32_MAX, &q, &r), -EINVAL, "the largest number is no verb");
	is(shmlimit_decide(at_time(l, T0), SHMLIMIT_ACQUIRE, &q, &r), -EOPNOTSUPP, "a set time cannot be waited for");
	is(shmlimit_peek(l, rule, "fresh", 5, 5, &r), SHMLIMIT_ALLOWED, "none of them changed anything");
}

int main(void)
{
	static const struct shmlimit_rule gcra = {
		.algorithm = SHMLIMIT_GCRA, .capacity = 5, .refill = 1, .period_ns = SECOND, .max_wait_ns = SECOND
	};
	int by_call[LAST_ALGORITHM + 1], by_verb[LAST_ALGORITHM + 1];

	rng.state = rng_seed();
	l = unit_create("decide", NULL);
	unit_rules(l, by_call, SHMLIMIT_GCRA, T0);
	by_call[SHMLIMIT_GCRA] = unit_rule_at(l, "gcra", gcra, T0);
	for (int i = 0; i <= LAST_ALGORITHM; i++) {
		struct shmlimit_rule rule = { .struct_size = sizeof(rule) };
		char name[16];

		snprintf(name, sizeof(name), "verb%d", i);
		if (shmlimit_rule_get(l, by_call[i], &rule) != 0)
			bail("rule_get");
		by_verb[i] = unit_rule_at(l, name, rule, T0);
	}
	same(by_call, by_verb, LAST_ALGORITHM + 1);
	shmlimit_close(l);
	l = unit_create("decide", NULL);
	by_the_clock();
	refused(unit_rule(l, "calls", 5, 1, 3600 * SECOND));
	shmlimit_close(l);
	return tap_done();
}
