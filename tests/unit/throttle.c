/*
 * throttle: redis-cell's call and its reply (seeds, row 2), rules without names.
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
	struct shmlimit_options options = { .struct_size = sizeof(options), .rules = 3 };
	char name[SHMLIMIT_RULE_NAME_MAX + 1];
	struct shmlimit *other;
	int64_t reply[5];

	l = unit_create("throttle", &options);
	is(throttle(l, 15, 30, 60, 1, reply), SHMLIMIT_ALLOWED, "laoqian:reply 15 30 60 is allowed");
	reply_is(reply, 0, 15, 14, -1, 2, "and answered as in the article: 0 15 14 -1 2");
	throttle(l, 15, 30, 60, 14, reply);
	reply_is(reply, 0, 15, 0, -1, 30, "fourteen more empty the funnel, which is full in 30 s");
	is(throttle(l, 15, 30, 60, 1, reply), SHMLIMIT_DENIED, "then it is denied");
	reply_is(reply, 1, 15, 0, 2, 30, "with seconds to wait, rounded up");
	is(throttle(l, 15, 30, 60, 16, reply), SHMLIMIT_DENIED, "more than the capacity is denied");
	is(reply[3], -1, "with no time to wait for");
	is(throttle(l, 15, 30, 60, 0, reply), SHMLIMIT_ALLOWED, "a quantity of 0 asks only");
	reply_is(reply, 0, 15, 0, -1, 30, "and changes nothing");

	throttle(l, 5, 5, 1, 1, reply);
	reply_is(reply, 0, 5, 4, -1, 1, "another triple is another rule: the key has another funnel");
	is(throttle(l, 15, 30, 60, 1, reply), SHMLIMIT_DENIED, "the first is what it was");
	is(shmlimit_rule_name(l, 0, name), 0, "a rule without a name is listed");
	is_str(name, "~15:30:60", "by its numbers");
	is(shmlimit_rule_find(l, name), 0, "and found by them");
	is(shmlimit_rule_set(l, name, &(struct shmlimit_rule){ .struct_size = sizeof(struct shmlimit_rule),
		.capacity = 1, .count = 1, .period_ns = 1 }), -EILSEQ, "but not set");
	is(throttle(l, 1, 1, 1, 1, reply), SHMLIMIT_ALLOWED, "a segment for three rules has room for three triples");
	is(throttle(l, 2, 1, 1, 1, reply), -EXFULL, "and no more");
	is(throttle(l, 1, 1, 1, 1, reply), SHMLIMIT_DENIED, "those that are known go on");
	is(shmlimit_rule_remove(l, "~1:1:1"), 0, "one can be removed");
	is(throttle(l, 2, 1, 1, 1, reply), SHMLIMIT_ALLOWED, "to make room for another");
	is(throttle(l, 1, 1, 1, 1, reply), -EXFULL, "and is not mistaken for it");
	is(throttle(l, 2, 2, 1, 1, reply), -EXFULL, "nor is another count");
	is(throttle(l, 2, 1, 2, 1, reply), -EXFULL, "or period");
	shmlimit_rule_remove(l, "~2:1:1");
	is(throttle(l, 1, 1, 1, 1, reply), SHMLIMIT_ALLOWED, "asked for again it is defined again");
	is(throttle(l, 1, 1, 1, 1, reply), SHMLIMIT_DENIED, "and remembered");

	is(shmlimit_open(unit_name, 0, &other), 0, "another process");
	is(throttle(other, 15, 30, 60, 1, reply), SHMLIMIT_DENIED, "finds the same rule and the same funnel");
	is(throttle(other, 1, 1, 1, 1, NULL), SHMLIMIT_DENIED, "and needs no reply");
	shmlimit_close(other);

	is(throttle(l, 0, 1, 1, 1, reply), -EDOM, "a capacity of 0");
	is(throttle(l, 1, 0, 1, 1, reply), -EDOM, "a count of 0");
	is(throttle(l, 1, 1, 0, 1, reply), -EDOM, "a period of 0");
	is(throttle(l, 1, 1, UINT64_MAX, 1, reply), -ERANGE, "a period beyond all clocks");
	shmlimit_rule_remove(l, "~1:1:1");
	is(throttle(l, 1000000000, 1000000000, 86400, 400000000, reply), SHMLIMIT_ALLOWED,
	   "400 MB of 1 GB a day are allowed");
	reply_is(reply, 0, 1000000000, 600000000, -1, 34560, "600 MB are left, full again in two fifths of a day");
	shmlimit_rule_remove(l, "~1000000000:1000000000:86400");
	is(shmlimit_throttle(l, "", 0, 1, 1, 1, 1, reply), -EMSGSIZE, "an empty key");
	is(shmlimit_throttle(l, NULL, 1, 1, 1, 1, 1, reply), -EINVAL, "no key");
	is(shmlimit_rule_find(l, "~1:1:1"), -ESRCH, "make no rule either");
	is(throttle(NULL, 1, 1, 1, 1, reply), -EINVAL, "no limiter");
	is(shmlimit_open(unit_name, SHMLIMIT_READ_ONLY, &other), 0, "a handle that may not write");
	is(throttle(other, 15, 30, 60, 1, reply), -EROFS, "does not throttle");
	shmlimit_close(other);
	is(shmlimit_verify(unit_name, NULL, 0), 0, "the segment is sound");
	shmlimit_close(l);
	return tap_done();
}
