/*
 * throttle: redis-cell's call and its reply (seeds, row 2), and any number of triples.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "unit.h"

static struct shmlimit *l;

static int throttle(struct shmlimit *limiter, uint64_t capacity, uint64_t count, uint64_t period, uint64_t quantity,
                    int64_t reply[5])
{
	return shmlimit_throttle(limiter, "laoqian:reply", 13, capacity, count, period, quantity, reply);
}

static void reply_is(const int64_t reply[5], int64_t a, int64_t b, int64_t c, int64_t d, int64_t e, const char *law)
{
	if (!ok(reply[0] == a && reply[1] == b && reply[2] == c && reply[3] == d && reply[4] == e, "%s", law))
		diag("got %lld %lld %lld %lld %lld", (long long)reply[0], (long long)reply[1], (long long)reply[2],
		     (long long)reply[3], (long long)reply[4]);
}

int main(void)
{
	struct shmlimit_options options = { .struct_size = sizeof(options), .rules = 3, .rules_max = 3 };
	char name[SHMLIMIT_RULE_NAME_MAX + 1];
	struct shmlimit_info info = { .struct_size = sizeof(info) };
	struct shmlimit *other;
	int64_t reply[5];

	l = unit_create("throttle", &options);
	is(throttle(l, 15, 30, 60, 1, reply), SHMLIMIT_ALLOWED, "laoqian:reply 15 30 60 is allowed");
	reply_is(reply, 0, 15, 14, -1, 2, "laoqian:reply 15 30 60 is answered as in the article: 0 15 14 -1 2");
	throttle(l, 15, 30, 60, 14, reply);
	reply_is(reply, 0, 15, 0, -1, 30, "fourteen more empty the funnel, which is full in 30 s");
	is(throttle(l, 15, 30, 60, 1, reply), SHMLIMIT_DENIED,
	   "laoqian:reply 15 30 60 is denied when it was allowed 15 times");
	reply_is(reply, 1, 15, 0, 2, 30, "a denial's reply has the seconds to wait, rounded up");
	is(throttle(l, 15, 30, 60, 16, reply), SHMLIMIT_DENIED, "more than the capacity is denied");
	is(reply[3], -1, "more than the capacity has no time to wait for");
	is(throttle(l, 15, 30, 60, 0, reply), SHMLIMIT_ALLOWED, "a quantity of 0 asks only");
	reply_is(reply, 0, 15, 0, -1, 30, "a quantity of 0 changes nothing");

	is(throttle(l, 5, 5, 86400, 1, reply), SHMLIMIT_DENIED, "another triple finds the key empty, too");
	ok(reply[3] > 0 && reply[3] <= 30, "a longer one waits until the first is full again, at most");
	throttle(l, 5, 5, 1, 0, reply);
	ok(reply[4] <= 1, "a shorter one is full in its own time: unlike in redis-cell it owes no more than that");
	is(shmlimit_throttle(l, "other", 5, 5, 5, 1, 1, reply), SHMLIMIT_ALLOWED, "another key has its own");
	reply_is(reply, 0, 5, 4, -1, 1, "by its own triple");
	for (uint64_t i = 0; i < 5000; i++)
		if (shmlimit_throttle(l, &i, sizeof(i), 1 + i, 1 + i % 7, 60 + i, 1, reply) != 0 ||
		    reply[1] != (int64_t)i + 1 || reply[2] != (int64_t)i)
			bail("triple %d", (int)i);
	is(shmlimit_info(l, &info), 0, "there are 5000 triples more");
	is(info.rules_used, 1, "all of them have one rule");
	is(shmlimit_rule_name(l, 0, name), 0, "the rule has a name");
	is_str(name, "~throttle", "it is listed by that");

	is(shmlimit_open(unit_name, 0, NULL, &other), 0, "a segment with triples can be opened again");
	is(throttle(other, 15, 30, 60, 1, reply), SHMLIMIT_DENIED, "another handle finds the key's time");
	is(throttle(other, 1, 1, 86400, 1, NULL), SHMLIMIT_DENIED, "throttle needs no place for its reply");
	is(shmlimit_rule_remove(other, "~throttle"), 0, "the rule can be removed");
	is(throttle(l, 15, 30, 60, 15, reply), SHMLIMIT_ALLOWED, "it is made again, and the key begins again");
	is(shmlimit_rule_remove(l, "~throttle"), 0, "the rule can be removed again");
	for (int i = 0; i < 3; i++)
		unit_rule(l, (char[]){ 'r', (char)('0' + i), '\0' }, 1, 1, SECOND);
	is(throttle(l, 15, 30, 60, 1, reply), -EXFULL, "a segment without room for its rule has no throttle");
	is(throttle(other, 15, 30, 60, 1, reply), -EXFULL, "another rule with its id is not taken for it");
	shmlimit_rule_remove(l, "r2");
	is(throttle(l, 15, 30, 60, 15, reply), SHMLIMIT_ALLOWED, "there is room again");
	shmlimit_close(other);

	is(throttle(l, 0, 1, 1, 1, reply), -EDOM, "a capacity of 0");
	is(throttle(l, 1, 0, 1, 1, reply), -EDOM, "a count of 0");
	is(throttle(l, 1, 1, 0, 1, reply), -EDOM, "a period of 0");
	is(throttle(l, 1, 1, UINT64_MAX, 1, reply), -ERANGE, "a period beyond all clocks");
	is(shmlimit_throttle(l, "large", 5, 1000000000, 1000000000, 86400, 400000000, reply), SHMLIMIT_ALLOWED,
	   "400 MB of 1 GB a day are allowed");
	reply_is(reply, 0, 1000000000, 600000000, -1, 34560, "600 MB are left, full again in two fifths of a day");
	is(shmlimit_throttle(l, "", 0, 1, 1, 1, 1, reply), -EMSGSIZE, "an empty key");
	is(shmlimit_throttle(l, NULL, 1, 1, 1, 1, 1, reply), -EINVAL, "no key");
	is(throttle(NULL, 1, 1, 1, 1, reply), -EINVAL, "no limiter");
	is(shmlimit_open(unit_name, SHMLIMIT_OPEN_READ_ONLY, NULL, &other), 0, "a handle that may not write");
	is(throttle(other, 15, 30, 60, 1, reply), -EROFS, "does not throttle");
	shmlimit_close(other);
	is(shmlimit_verify(unit_name, NULL, 0), 0, "the segment is sound");
	shmlimit_close(l);
	return tap_done();
}
