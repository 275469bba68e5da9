/*
 * denials: a limit counts what it denies, so that heavy offenders can be banned, and spreads the times at which its clients
 * come back.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "gate.h"

static struct shmlimit *l;

static int64_t counted(const char *rule, const void *key, size_t len)
{
	struct shmlimit_count count = { .struct_size = sizeof(count) };
	struct shmlimit_count_request read = { .struct_size = sizeof(read), .bound = INT64_MAX };

	if (shmlimit_count(l, shmlimit_rule_find(l, rule), key, len, &read, &count) < 0)
		return -1;
	return count.count;
}

static void counts(void)
{
	struct shmlimit_gate *gate = gate_new("create=yes denials=abuse rule=page rate=\"3/h\" rule=site rate=\"5/h\"");
	struct shmlimit_rule rule = { .struct_size = sizeof(rule) };

	for (int i = 0; i < 3; i++)
		(void)ASK(gate, "user:42", 0);
	is(shmlimit_rule_find(l, "abuse"), -ESRCH, "while nothing is denied there is no count");
	for (int i = 0; i < 7; i++)
		(void)ASK(gate, "user:42", 0);
	is(counted("abuse", "user:42", 7), 7, "each denial is counted");
	is(counted("abuse", "user:43", 7), 0, "a denial is counted under the key that was denied");
	(void)ASK(gate, "user:42", 1, 0);
	is(counted("abuse", "user:42", 7), 8, "a request that one of its limits denies is counted once");
	shmlimit_rule_get(l, shmlimit_rule_find(l, "abuse"), &rule);
	ok(rule.algorithm == SHMLIMIT_COUNTER && rule.period_ns == 60 * SECOND,
	   "the rule that is made counts a minute");
	is(gate_said, 0, "nothing is reported");
	shmlimit_gate_close(gate);
	(void)shmlimit_rule_remove(l, "abuse");
}

static void each_kind(void)
{
	static const unsigned char net[] = { 4, 24, 203, 0, 113, 0 };
	struct shmlimit_gate *gate =
		gate_new("create=yes rule=net prefix=24,64 rate=\"1/h\" denials=abuse rule=slow "
	                 "rate=\"1/h burst 1\" delay=30s denials=abuse rule=net peek denials=abuse "
	                 "rule=dry rate=\"1/h\" dry_run denials=abuse");

	for (int i = 0; i < 2; i++)
		(void)ASK(gate, "203.0.113.9", 0);
	is(counted("abuse", net, sizeof(net)), 1, "an address is counted under its net's key");
	for (int i = 0; i < 2; i++)
		(void)ASK(gate, "user:44", 1);
	is(counted("abuse", "user:44", 7), 1, "a limit with a delay counts what it denies");
	(void)ASK(gate, "203.0.113.9", 2);
	is(counted("abuse", "203.0.113.9", 11), 0, "a limit that is peeked at, and allows, counts nothing");
	for (int i = 0; i < 2; i++)
		(void)ASK(gate, "user:45", 3);
	is(answer.outcome, SHMLIMIT_GATE_REJECTED_DRY_RUN, "a dry run would deny");
	is(counted("abuse", "user:45", 7), 0, "a dry run counts nothing");
	shmlimit_gate_close(gate);
	(void)shmlimit_rule_remove(l, "abuse");
}

static void cannot_count(void)
{
	struct shmlimit_gate *gate = gate_new("rule=page denials=abuse rule=site denials=page");

	for (int i = 0; i < 9; i++)
		(void)ASK(gate, "user:46", 0);
	is(answer.status, 429, "where the counter is missing, requests are denied as before");
	is(gate_said, 1, "that it is missing is reported once");
	ok(strstr(gate_lines[0], "rule abuse: it does not count denials: ") != NULL, "the report names the counter");
	for (int i = 0; i < 9; i++)
		(void)ASK(gate, "user:46", 1);
	is(gate_said, 2, "that a rule is no counter is reported once");
	ok(strstr(gate_lines[1], "rule page: it does not count denials: it is not a counter") != NULL,
	   "the report says why");
	shmlimit_gate_close(gate);
}

static void spreads(void)
{
	struct shmlimit_gate *gate =
		gate_new("create=yes rule=spread rate=\"1/10h\" jitter=10% rule=plain rate=\"1/10h\" "
	                 "rule=never rate=0 jitter=50%");
	uint64_t least = UINT64_MAX, most = 0, first_ns = 10 * 3600 * SECOND;

	for (int i = 0; i < 201; i++) {
		if (ASK(gate, "all", 0) == SHMLIMIT_ALLOWED)
			continue;
		least = answer.retry_after_ns < least ? answer.retry_after_ns : least;
		most = answer.retry_after_ns > most ? answer.retry_after_ns : most;
	}
	/* A busy machine takes a while for this: less than 100 s. */
	ok(least > first_ns - 100 * SECOND && most <= first_ns + first_ns / 10,
	   "a time to retry after is longer by 0 to 10 %% (%ju to %ju ns)", (uintmax_t)least, (uintmax_t)most);
	ok(least < first_ns + first_ns / 50 && most > first_ns + first_ns / 100 * 8,
	   "200 clients of one key are spread over most of that time");
	snprintf(gate_lines[0], sizeof(gate_lines[0]), "%ju",
	         (uintmax_t)((answer.retry_after_ns + SECOND - 1) / SECOND));
	ok(strcmp(answer.fields[answer.field_count - 1].name, "Retry-After") == 0 &&
	           strcmp(answer.fields[answer.field_count - 1].value, gate_lines[0]) == 0,
	   "Retry-After says the longer time");
	(void)ASK(gate, "all", 1);
	(void)ASK(gate, "all", 1);
	ok(answer.retry_after_ns <= first_ns, "without jitter= the time is exact");
	(void)ASK(gate, "all", 2);
	is(answer.retry_after_ns, UINT64_MAX, "what never fits is never to be retried, with jitter= too");
	shmlimit_gate_close(gate);
}

int main(void)
{
	l = unit_create("denials", NULL);
	counts();
	each_kind();
	cannot_count();
	spreads();
	return tap_done();
}
