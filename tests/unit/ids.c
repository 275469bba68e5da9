/*
 * ids: a number that is no rule's id, such as the error of a look-up, is no rule to any call. All rules have a word
 * of their own.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <limits.h>

#include "unit.h"
#include "shmlimit_lease.h"

static struct shmlimit *l;

static const struct shmlimit_limit limit = {
	.struct_size = sizeof(limit), .capacity = 5, .refill = 5, .period_ns = SECOND
};
static const struct shmlimit_count_request one = { .struct_size = sizeof(one), .n = 1, .bound = 9 };
static struct shmlimit_place place = { .struct_size = sizeof(place), .value = 1 };

#define KEY "k", 1
#define CALL(name, ...) \
	static int name(int id) \
	{ \
		return shmlimit_##name(l, id, __VA_ARGS__); \
	}

CALL(take, KEY, 1, NULL)
CALL(peek, KEY, 1, NULL)
CALL(reserve, KEY, 1, SECOND, NULL)
CALL(acquire, KEY, 1, SECOND, NULL)
CALL(charge, KEY, 1, NULL)
CALL(refund, KEY, 1, NULL)
#define VERB(name, verb) \
	static int decide_##name(int id) \
	{ \
		return by_limit(l, verb, id, KEY, 1, &limit, NULL); \
	}

VERB(take, SHMLIMIT_TAKE)
VERB(peek, SHMLIMIT_PEEK)
VERB(reserve, SHMLIMIT_RESERVE)
VERB(acquire, SHMLIMIT_ACQUIRE)
VERB(charge, SHMLIMIT_CHARGE)
VERB(refund, SHMLIMIT_REFUND)
CALL(count, KEY, &one, NULL)
CALL(enter, KEY, &place, NULL)
CALL(renew, KEY, &place)
CALL(leave, KEY, &place)
CALL(paused, KEY, NULL)
CALL(reset, KEY)
CALL(reset_fingerprint, 3)
CALL(lease_deposit, KEY, 1, 1, 0, SECOND, NULL)
CALL(lease_deny, KEY, 1, SECOND, NULL)
CALL(lease_abandon, KEY)

static const struct shmlimit_lease_request wanted = {
	.struct_size = sizeof(wanted), .cost = 1, .lease_ns = SECOND, .claim_ns = SECOND
};
static struct shmlimit_lease lease = { .struct_size = sizeof(lease) };

CALL(lease_take, KEY, &wanted, &lease, NULL)
CALL(bind, KEY, &place, (uint32_t)getpid())

/* WHY NOT CALL(): unistd.h has a pause(). */
static int pause_key(int id)
{
	return shmlimit_pause(l, id, KEY, SECOND);
}

static int reset_rule(int id)
{
	return shmlimit_reset(l, id, NULL, 0);
}

static int rule_algorithm(int id)
{
	return shmlimit_rule_algorithm(l, id);
}

static int rule_get(int id)
{
	struct shmlimit_rule rule = { .struct_size = sizeof(rule) };

	return shmlimit_rule_get(l, id, &rule);
}

static int rule_version(int id)
{
	uint64_t version;

	return shmlimit_rule_version(l, id, &version);
}

static int rule_name(int id)
{
	char name[SHMLIMIT_RULE_NAME_MAX + 1];

	return shmlimit_rule_name(l, id, name);
}

static int rule_range(int id)
{
	struct shmlimit_range range = { .struct_size = sizeof(range) };

	return shmlimit_rule_range(l, id, &range);
}

static int counters(int id)
{
	struct shmlimit_counters c = { .struct_size = sizeof(c) };

	return shmlimit_counters(l, id, &c);
}

static struct shmlimit_request request_of(int id)
{
	return (struct shmlimit_request){ .rule = id, .key = "k", .key_len = 1, .cost = 1 };
}

static int take_all(int id)
{
	const struct shmlimit_request request = request_of(id);

	return shmlimit_take_all(l, &request, 1, NULL, NULL);
}

/* Its own error, or that of its request. */
static int take_many(int id)
{
	const struct shmlimit_request request = request_of(id);
	int answer, error = shmlimit_take_many(l, &request, 1, &answer, NULL);

	return error != 0 ? error : answer;
}

static const struct {
	const char *name;
	int (*call)(int id);
	int takes_all; /* SHMLIMIT_ALL_RULES is something to it */
} calls[] = {
	{ "take", take, 0 },
	{ "peek", peek, 0 },
	{ "reserve", reserve, 0 },
	{ "acquire", acquire, 0 },
	{ "charge", charge, 0 },
	{ "refund", refund, 0 },
	{ "decide: take", decide_take, 0 },
	{ "decide: peek", decide_peek, 0 },
	{ "decide: reserve", decide_reserve, 0 },
	{ "decide: acquire", decide_acquire, 0 },
	{ "decide: charge", decide_charge, 0 },
	{ "decide: refund", decide_refund, 0 },
	{ "take_all", take_all, 0 },
	{ "take_many", take_many, 0 },
	{ "count", count, 0 },
	{ "enter", enter, 0 },
	{ "renew", renew, 0 },
	{ "bind", bind, 0 },
	{ "leave", leave, 0 },
	{ "lease_take", lease_take, 0 },
	{ "lease_deposit", lease_deposit, 0 },
	{ "lease_deny", lease_deny, 0 },
	{ "lease_abandon", lease_abandon, 0 },
	{ "pause", pause_key, 0 },
	{ "paused", paused, 0 },
	{ "reset of a key", reset, 1 },
	{ "reset of a rule", reset_rule, 1 },
	{ "reset_fingerprint", reset_fingerprint, 0 },
	{ "counters", counters, 1 },
	{ "rule_get", rule_get, 0 },
	{ "rule_algorithm", rule_algorithm, 0 },
	{ "rule_version", rule_version, 0 },
	{ "rule_name", rule_name, 0 },
	{ "rule_range", rule_range, 0 },
};

/* Of each key of both rules, what is left. */
static unsigned left(const char *rule)
{
	struct shmlimit_result r;

	if (shmlimit_peek(l, shmlimit_rule_find(l, rule), KEY, 1, &r) < 0)
		bail("peek");
	return (unsigned)r.remaining;
}

int main(void)
{
	static const int ids[] = { -1,
		                   -2,
		                   -3,
		                   -5,
		                   -11,
		                   -22,
		                   -95,
		                   -117,
		                   -4095,
		                   2,
		                   63,
		                   64,
		                   4095,
		                   4096,
		                   INT_MAX,
		                   INT_MIN + 1,
		                   SHMLIMIT_ALL_RULES };
	const struct shmlimit_rule rule = {
		.struct_size = sizeof(rule), .capacity = 5, .refill = 5, .period_ns = 86400 * SECOND
	};

	l = unit_create("ids", NULL);
	for (int i = 0; i < 2; i++) {
		int id = shmlimit_rule_set(l, i == 0 ? "login" : "page", &rule);

		if (shmlimit_take(l, id, KEY, 3, NULL) != SHMLIMIT_ALLOWED)
			bail("take");
	}
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		int wrong = 0, worst = 0;

		for (size_t k = 0; k < sizeof(ids) / sizeof(ids[0]); k++) {
			int answer;

			if (ids[k] == SHMLIMIT_ALL_RULES && calls[i].takes_all)
				continue;
			answer = calls[i].call(ids[k]);
			if (answer != -ESRCH) {
				wrong++;
				worst = answer;
			}
		}
		ok(wrong == 0, "%s: what is no rule's id is no rule (%d answers, such as %d)", calls[i].name, wrong,
		   worst);
	}
	ok(left("login") == 2 && left("page") == 2, "none of these calls has changed a key");
	is(shmlimit_reset(l, SHMLIMIT_ALL_RULES, KEY), -EINVAL, "a key of all rules is refused");
	ok(left("login") == 2 && left("page") == 2, "a call that is refused has changed no key");
	is(counters(SHMLIMIT_ALL_RULES), 0, "all rules have counters");
	is(shmlimit_reset(l, SHMLIMIT_ALL_RULES, NULL, 0), 2, "all rules are reset by a word of their own");
	ok(left("login") == 5 && left("page") == 5, "each key of each rule is full then");
	shmlimit_close(l);
	return tap_done();
}
