/*
 * saved_2: a file in version 2 of save's format can be loaded. It says when a GCRA key is full, not when its bucket was
 * empty, as version 3 does. It was saved at once after these calls, of which each token is back after 10 days:
 *
 *	rule plans, without a limit    a: 1 of 8, b: 8 of 8
 *	rule own, of 8 itself          a: 1 of 8, b: 8 of 8, c: 10 of 8 charged, d: 8 of 8 of a call's, back after 30 days each
 *	rule fast, 100001 a second, whose tokens take 16 ticks in version 2 and not in version 3
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "saved.h"

#define DAY (86400 * SECOND)
#define T0 (10000 * DAY)

#include "saved_2.h"

static struct shmlimit_result r;

static uint64_t days(uint64_t ns)
{
	return (ns + DAY - 1) / DAY;
}

static void plans(struct shmlimit *l, int id)
{
	struct shmlimit_limit plan = { .struct_size = sizeof(plan), .capacity = 8, .refill = 1, .period_ns = 10 * DAY };

	is(by_limit(at_time(l, T0), SHMLIMIT_PEEK, id, "a", 1, 1, &plan, &r), SHMLIMIT_DENIED,
	   "without a limit of its own nobody knows what is left of a key that was not full");
	ok(days(r.retry_after_ns) == 10, "it is full when it would have been");
	is(by_limit(at_time(l, T0 + 10 * DAY), SHMLIMIT_PEEK, id, "a", 1, 8, &plan, &r), SHMLIMIT_ALLOWED,
	   "at that time the key has all");
	is(by_limit(at_time(l, T0), SHMLIMIT_PEEK, id, "b", 1, 1, &plan, &r), SHMLIMIT_DENIED,
	   "a key that is used up is empty");
	ok(days(r.retry_after_ns) == 10 && days(r.reset_after_ns) == 80, "it refills as it would have");
	plan.period_ns = DAY;
	is(by_limit(at_time(l, T0), SHMLIMIT_PEEK, id, "b", 1, 1, &plan, &r), SHMLIMIT_DENIED,
	   "by a higher limit, too");
	ok(days(r.retry_after_ns) == 1 && days(r.reset_after_ns) == 8, "for no longer than its time to full");
}

static void own(struct shmlimit *l, int id)
{
	is(shmlimit_peek(at_time(l, T0), id, "a", 1, 7, &r), SHMLIMIT_ALLOWED,
	   "by the rule's limit a key has what it had");
	is(shmlimit_peek(at_time(l, T0), id, "a", 1, 8, &r), SHMLIMIT_DENIED,
	   "by the rule's limit a key has no more than it had");
	is(shmlimit_peek(at_time(l, T0), id, "b", 1, 1, &r), SHMLIMIT_DENIED, "what was used up is");
	ok(days(r.retry_after_ns) == 10 && days(r.reset_after_ns) == 80,
	   "what was used up comes back when it would have");
	is(shmlimit_peek(at_time(l, T0), id, "c", 1, 1, &r), SHMLIMIT_DENIED, "a key keeps its debt");
	ok(days(r.retry_after_ns) == 30 && days(r.reset_after_ns) == 100, "as long as it was");
	is(shmlimit_peek(at_time(l, T0), id, "d", 1, 1, &r), SHMLIMIT_DENIED,
	   "of more than the limit leaves it is empty");
	ok(days(r.retry_after_ns) == 10 && days(r.reset_after_ns) == 80,
	   "a key that spent more than the limit owes one time to full of it");
}

int main(void)
{
	struct rebase given = { 0, T0, 0 };
	struct shmlimit_rule rule = { .struct_size = sizeof(rule) };
	struct shmlimit *l, *again;
	char name[96];
	int fd = saved_file(SAVED_2, sizeof(SAVED_2) / sizeof(SAVED_2[0]), STATE_VERSION_2),
	    copy = memfd_create("copy", MFD_CLOEXEC);

	shmlimit_close(unit_create("saved_2", NULL));
	unit_gone();
	is(shmlimit_load(unit_name, fd, SHMLIMIT_LOAD_CHECK_ONLY, NULL), 0, "a file of version 2 can be checked");
	lseek(fd, 0, SEEK_SET);
	if (!ok(load(unit_name, fd, 0, &given, &l) == 0, "a file of version 2 can be loaded"))
		return tap_done();
	is(shmlimit_verify(unit_name, NULL, 0), 0, "nothing is wrong in what was loaded");
	plans(l, shmlimit_rule_find(l, "plans"));
	own(l, shmlimit_rule_find(l, "own"));
	is(shmlimit_rule_get(l, shmlimit_rule_find(l, "fast"), &rule), 0,
	   "a rule whose tokens have other ticks is there");
	is(rule.refill, 100001, "it is what it was");
	is(save(l, copy, when_given(T0)), 0, "it can be saved");
	lseek(copy, 0, SEEK_SET);
	snprintf(name, sizeof(name), "%s.copy", unit_name);
	given.then_ns = T0;
	is(load(name, copy, 0, &given, &again), 0, "it can be loaded from version 3");
	own(again, shmlimit_rule_find(again, "own"));
	shmlimit_close(again);
	shmlimit_destroy(name);
	shmlimit_close(l);
	close(copy);
	close(fd);
	return tap_done();
}
