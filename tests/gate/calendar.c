/*
 * calendar: a gate with limits that count by a calendar, beside limits of other kinds.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "gate.h"

#include "limiter.h"

int main(void)
{
	struct shmlimit_options options = { .struct_size = sizeof(options) };
	struct shmlimit *l = unit_create("gate_calendar", &options);
	struct shmlimit_gate *gate;
	struct shmlimit_rule rule = { .struct_size = sizeof(rule) };
	struct shmlimit_result r;

	gate = gate_new("create=yes fields=always x_fields rule=quota rate=\"3/month in UTC\" rule=rush rate=\"1/d\" "
	                "rule=bill rate=\"100/month in UTC\" estimate=10");
	is(ASK(gate, "user:42", 0), 0, "a request within the quota passes");
	is_str(gate_field("RateLimit-Policy"), "\"quota\";q=3;w=2592000", "its policy is the quota");
	is(ASK(gate, "user:42", 0, 1), 0, "one with another limit passes");
	is(ASK(gate, "user:42", 0, 1), 1, "one that the other limit denies is refused");
	shmlimit_peek(l, shmlimit_rule_find(l, "quota"), "user:42", 7, 0, &r);
	is(r.remaining, 1, "a refused request takes nothing of the quota");
	is(ASK(gate, "user:42", 0), 0, "the last of the quota passes");
	is(ASK(gate, "user:42", 0), 1, "one more is refused");
	ok(atol(gate_field("Retry-After")) >= 1 && atol(gate_field("Retry-After")) <= 31 * 86400,
	   "a retry fits when the month ends: %s", gate_field("Retry-After"));
	is(shmlimit_rule_get(l, shmlimit_rule_find(l, "quota"), &rule), 0, "the rule is there");
	is_str(rule.zone, "UTC", "the rule has its zone");
	is(ASK(gate, "user:42", 2), 0, "a limit with an estimate counts by the calendar, too");
	is(gate_said, 0, "nothing is reported: %s", gate_lines[0]);
	shmlimit_gate_close(gate);
	shmlimit_close(l);
	return tap_done();
}
