/*
 * take_many: a batch is its requests, one after the other, at one time.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <stdlib.h>

#include "unit.h"

#define T0 (1000 * SECOND)
#define MOST 100
#define ROUNDS 3000

static struct shmlimit *l;
static struct shmlimit_request requests[MOST];
static struct shmlimit_result one[MOST], many[MOST];
static int answers[MOST], want[MOST];
static unsigned seed;

static unsigned below(unsigned n)
{
	seed = seed * 1103515245u + 12345;
	return (seed >> 16) % n;
}

/* Few keys, so that one stands in a batch several times; some requests are wrong. */
static void deal(size_t n, const int rules[3], const char *keys)
{
	for (size_t i = 0; i < n; i++) {
		requests[i] = (struct shmlimit_request){
			.rule = rules[below(3)], .key = keys + below(20), .key_len = 1 + below(3), .cost = below(4)
		};
		switch (below(40)) {
		case 0:
			requests[i].rule = 63;
			break;
		case 1:
			requests[i].key_len = below(2) ? 0 : SHMLIMIT_KEY_MAX + 1;
			break;
		case 2:
			requests[i].key = NULL;
			break;
		case 3:
			requests[i].cost = 1000;
			break;
		}
	}
}

static void batches(int own_results)
{
	/* Two rules of each kind: one is asked by takes, the other by batches. */
	static const char keys[24] = "abcabdabeabfabgabhabiab";
	int ours[3] = { unit_rule(l, "a", 5, 3, SECOND), unit_rule(l, "b", 1, 1, SECOND),
		        unit_rule(l, "c", 100, 7, SECOND) };
	int theirs[3] = { unit_rule(l, "A", 5, 3, SECOND), unit_rule(l, "B", 1, 1, SECOND),
		          unit_rule(l, "C", 100, 7, SECOND) };
	uint64_t now = T0, differ = 0, allowed = 0, denied = 0, errors = 0;

	for (int round = 0; round < ROUNDS; round++) {
		size_t n = below(MOST + 1);

		now += below(2000000000);
		deal(n, ours, keys);
		for (size_t i = 0; i < n; i++) {
			const struct shmlimit_request *q = &requests[i];

			memset(&one[i], 0, sizeof(one[i]));
			memset(&many[i], 0, sizeof(many[i]));
			want[i] = shmlimit_take(at_time(l, now), q->rule, q->key, q->key_len, q->cost, &one[i]);
			allowed += want[i] == SHMLIMIT_ALLOWED;
			denied += want[i] == SHMLIMIT_DENIED;
			errors += want[i] < 0;
			for (int rule = 0; rule < 3; rule++)
				if (q->rule == ours[rule]) {
					requests[i].rule = theirs[rule];
					break;
				}
		}
		differ += shmlimit_take_many(at_time(l, now), requests, n, answers, own_results ? many : NULL) != 0;
		differ += memcmp(answers, want, n * sizeof(*want)) != 0;
		differ += own_results && memcmp(many, one, n * sizeof(*one)) != 0;
	}
	is(differ, 0, "random batches answer what takes one after the other do%s", own_results ? ", results too" : "");
	ok(allowed > ROUNDS && denied > ROUNDS && errors > ROUNDS,
	   "random batches have allowed, denied and wrong requests");
	for (int rule = 0; rule < 3; rule++) {
		struct shmlimit_counters a = unit_counters(l, ours[rule]), b = unit_counters(l, theirs[rule]);

		ok(a.allowed == b.allowed && a.denied == b.denied,
		   "random batches count what takes one after the other do");
	}
}

static void arguments(void)
{
	int rule = unit_rule(l, "arguments", 10, 1, SECOND);
	struct shmlimit_request two[2] = { { .rule = rule, .key = "k", .key_len = 1, .cost = 3 },
		                           { .rule = rule, .key = "k", .key_len = 1, .cost = 3 } };
	struct shmlimit *reader;

	is(shmlimit_take_many(l, two, 0, answers, NULL), 0, "no requests are no error");
	is(shmlimit_take_many(NULL, two, 2, answers, NULL), -EINVAL, "no limiter is one");
	is(shmlimit_take_many(l, NULL, 2, answers, NULL), -EINVAL, "no list is one");
	is(shmlimit_take_many(l, two, 2, NULL, NULL), -EINVAL, "no place for answers is one");
	two[1].share = 1;
	is(shmlimit_take_many(l, two, 2, answers, NULL), -EINVAL, "a share without places is refused");
	shmlimit_peek(l, rule, "k", 1, 1, one);
	is(one[0].remaining, 10, "a call that is refused takes nothing");
	two[1].share = 0;
	is(shmlimit_take_many(at_clock(l), two, 2, answers, many), 0, "it has a clock of its own");
	is(many[0].remaining, 7, "the first takes");
	is(many[1].remaining, 4, "the second finds what the first left");
	is(shmlimit_open(unit_name, SHMLIMIT_OPEN_READ_ONLY, NULL, &reader), 0, "read-only");
	two[0].cost = 0;
	is(shmlimit_take_many(reader, two, 2, answers, NULL), 0, "a batch can be asked");
	is(answers[0], SHMLIMIT_ALLOWED, "a cost of 0 is a peek");
	is(answers[1], -EROFS, "what would write is refused");
	shmlimit_close(reader);
}

/* All or none of a list. */
static void all(void)
{
	int rule = unit_rule(l, "all", 10, 1, SECOND);
	struct shmlimit_request two[2] = { { .rule = rule, .key = "k", .key_len = 1, .cost = 3 },
		                           { .rule = rule, .key = "k", .key_len = 1, .cost = 0 } };
	size_t failed = 7;

	is(shmlimit_take_all(NULL, two, 2, NULL, NULL), -EINVAL, "all of no limiter is an error");
	is(shmlimit_take_all(l, NULL, 2, NULL, NULL), -EINVAL, "all of no list");
	is(shmlimit_take_all(l, two, 0, NULL, NULL), -EINVAL, "all of an empty one");
	is(shmlimit_take_all(l, two, SHMLIMIT_REQUESTS_MAX + 1, NULL, NULL), -EINVAL,
	   "all of a longer one than there may be");
	two[1].share = 1;
	is(shmlimit_take_all(l, two, 2, &failed, many), -EINVAL, "a share without places is refused");
	is(failed, 7, "of no request in particular");
	two[1].share = 0;
	is(shmlimit_take_all(l, two, 2, &failed, many), SHMLIMIT_ALLOWED, "a cost of 0 is a peek");
	is(many[1].remaining, 7, "at what those before have left");
	two[1].cost = 8;
	is(shmlimit_take_all(l, two, 2, NULL, many), SHMLIMIT_DENIED, "nobody need be told which was denied");
	shmlimit_peek(l, rule, "k", 1, 1, one);
	is(one[0].remaining, 7, "none was taken then");
}

int main(void)
{
	struct shmlimit_options options = { .struct_size = sizeof(options), .slots = 4096 };
	const char *given = getenv("SEED");

	seed = given != NULL ? (unsigned)strtoul(given, NULL, 0) : (unsigned)getpid();
	diag("SEED=%u", seed);
	l = unit_create("take_many", &options);
	batches(1);
	batches(0);
	arguments();
	all();
	shmlimit_close(l);
	return tap_done();
}
