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

	throttle(l, 5, 5, 1, 1, reply);
	reply_is(reply, 0, 5, 4, -1, 1, "another triple is another rule: the key has another funnel");
	is(throttle(l, 15, 30, 60, 1, reply), SHMLIMIT_DENIED, "a triple's funnel is its own");
	is(shmlimit_rule_name(l, 0, name), 0, "a rule without a name is listed");
	is_str(name, "~15:30:60", "a rule without a name is listed by its numbers");
	is(shmlimit_rule_find(l, name), 0, "a rule without a name is found by the numbers that it is listed with");
	is(shmlimit_rule_set(
		   l, name,
		   &(struct shmlimit_rule){
			   .struct_size = sizeof(struct shmlimit_rule), .capacity = 1, .refill = 1, .period_ns = 1 }),
	   -EILSEQ, "a rule without a name cannot be set by its numbers");
	is(throttle(l, 1, 1, 1, 1, reply), SHMLIMIT_ALLOWED, "a segment for three rules has room for three triples");
	is(throttle(l, 2, 1, 1, 1, reply), -EXFULL, "a segment for three rules has no room for a fourth triple");
	is(throttle(l, 1, 1, 1, 1, reply), SHMLIMIT_DENIED, "a known triple goes on in a full segment");
	is(shmlimit_rule_remove(l, "~1:1:1"), 0, "a rule without a name can be removed");
	is(throttle(l, 2, 1, 1, 1, reply), SHMLIMIT_ALLOWED, "a rule that is removed makes room for another triple");
	is(throttle(l, 1, 1, 1, 1, reply), -EXFULL, "a triple that is not known is not taken for a known one");
	is(throttle(l, 2, 2, 1, 1, reply), -EXFULL, "a triple with another count is not taken for a known one");
	is(throttle(l, 2, 1, 2, 1, reply), -EXFULL, "a triple with another period is not taken for a known one");
	shmlimit_rule_remove(l, "~2:1:1");
	is(throttle(l, 1, 1, 1, 1, reply), SHMLIMIT_ALLOWED, "a triple whose rule was removed is defined again");
	is(throttle(l, 1, 1, 1, 1, reply), SHMLIMIT_DENIED, "a triple that is defined again is remembered");

	is(shmlimit_open(unit_name, 0, NULL, &other), 0, "a segment with triples can be opened again");
	is(throttle(other, 15, 30, 60, 1, reply), SHMLIMIT_DENIED, "another handle finds a triple's rule and funnel");
	is(throttle(other, 1, 1, 1, 1, NULL), SHMLIMIT_DENIED, "throttle needs no place for its reply");
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
	is(shmlimit_open(unit_name, SHMLIMIT_OPEN_READ_ONLY, NULL, &other), 0, "a handle that may not write");
	is(throttle(other, 15, 30, 60, 1, reply), -EROFS, "does not throttle");
	shmlimit_close(other);
	is(shmlimit_verify(unit_name, NULL, 0), 0, "the segment is sound");
	shmlimit_close(l);
	return tap_done();
}
