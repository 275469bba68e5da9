/*
 * order: of the limits of a request, the one that denied last is asked first, so that a flood of denied requests takes
 * nothing from the others. Answers and fields are in the caller's order.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "gate.h"

enum { SITE, USER, PATH };

static struct shmlimit *l;
static int site;

static uint64_t allowed(void)
{
	return unit_counters(l, site).allowed;
}

static void fields_are_in_order(const char *title)
{
	ok(answer.field_count == 6 && strncmp(answer.fields[0].value, "\"site\"", 6) == 0 &&
	           strncmp(answer.fields[2].value, "\"user\"", 6) == 0 &&
	           strncmp(answer.fields[4].value, "\"path\"", 6) == 0,
	   "%s", title);
}

int main(void)
{
	struct shmlimit_gate *gate;
	uint64_t before, denied = 0;

	l = unit_create("gate.order", NULL);
	site = unit_rule(l, "site", 1000, 1, 3600 * SECOND);
	unit_rule(l, "user", 2, 1, 3600 * SECOND);
	unit_rule(l, "path", 3, 1, 3600 * SECOND);
	gate = gate_new("rule=site rule=user status=403 rule=path");
	for (int i = 0; i < 2; i++)
		is(ASK(gate, "user:42", SITE, USER), SHMLIMIT_ALLOWED, "a request is allowed by both limits");
	is(ASK(gate, "user:42", SITE, USER), SHMLIMIT_DENIED, "the second limit denies the next one");
	before = allowed();
	for (int i = 0; i < 100; i++)
		denied += ASK(gate, "user:42", SITE, USER) == SHMLIMIT_DENIED && answer.denied_by == 1 &&
		          answer.status == 403;
	is(denied, 100, "it denies a hundred more, with its place and its status");
	is(allowed(), before, "the first limit is not asked for them");
	is(ASK(gate, "user:43", SITE, USER, PATH), SHMLIMIT_ALLOWED, "another key is allowed by three limits");
	fields_are_in_order("the fields are in the order of the keys");
	is(answer.remaining, 1, "the fewest tokens that are left are known");
	for (int i = 0; i < 3; i++)
		ASK(gate, "user:44", PATH);
	before = allowed();
	is(ASK(gate, "user:44", SITE, USER, PATH), SHMLIMIT_DENIED, "the third limit denies");
	is(answer.denied_by, 2, "the answer has the place of the third limit");
	is(allowed(), before + 1, "the first one was asked before");
	is(ASK(gate, "user:44", PATH, SITE), SHMLIMIT_DENIED, "where that limit is the first of a request it denies");
	is(answer.denied_by, 0, "the answer has its place there");
	is(ASK(gate, "user:44", SITE, USER, PATH), SHMLIMIT_DENIED, "the third limit denies again");
	is(allowed(), before + 1, "the first one is not asked again");
	is(ASK(gate, "user:43", SITE, USER, PATH), SHMLIMIT_ALLOWED, "what has its tokens is allowed");
	fields_are_in_order("the fields are in the order of the keys, whichever limit denied");
	shmlimit_gate_close(gate);
	shmlimit_close(l);
	return tap_done();
}
