/*
 * delay: requests that wait for their tokens instead of being denied.
 *
 * No test waits for long, or depends on speed: what is awaited in vain is an hour away.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <time.h>

#include "gate.h"

#define HOUR (3600 * SECOND)
#define PENDING SHMLIMIT_GATE_PENDING

static struct shmlimit *l;
static struct shmlimit_gate *gate;
static struct shmlimit_gate_pending *pending;
static struct shmlimit_gate_held held;
static struct shmlimit_gate_key keys[SHMLIMIT_REQUESTS_MAX];
static const char *brought; /* the limit that a request brings for the first one, or NULL */

/* Begin a request of the first n limits. */
static int begin(const char *key, size_t n)
{
	for (size_t i = 0; i < n; i++)
		keys[i] = (struct shmlimit_gate_key){ .limit = (uint32_t)i,
			                              .bytes = key,
			                              .length = (uint32_t)strlen(key) };
	if (brought != NULL) {
		keys[0].rate = brought;
		keys[0].rate_length = (uint32_t)strlen(brought);
	}
	new_out();
	held.struct_size = sizeof(held);
	pending = NULL;
	return shmlimit_gate_begin(gate, keys, n, &answer, &held, &pending);
}

static void cancel(size_t n)
{
	shmlimit_gate_cancel(gate, pending, &held);
	(void)shmlimit_gate_leave(gate, keys, n, &held);
}

/* Is it about an hour? Not more; a busy machine makes it less. */
static int an_hour(uint64_t ns)
{
	return ns <= HOUR && ns > HOUR - 600 * SECOND;
}

static uint64_t remaining(const char *rule, const char *key)
{
	struct shmlimit_result r;

	if (shmlimit_peek(l, shmlimit_rule_find(l, rule), key, strlen(key), 1, &r) < 0)
		bail("peek %s", rule);
	return r.remaining;
}

/* Each algorithm that can wait: one token now, one in an hour, and none after that. */
static void waits(const char *rate)
{
	char spec[200];
	int first, second, third;
	uint64_t wait_ns;

	snprintf(spec, sizeof(spec), "create=yes rule=r %s delay=1h rule=s rate=10/h", rate);
	gate = gate_new(spec);
	first = begin("user:42", 2);
	is(first, SHMLIMIT_ALLOWED, "%s: a request whose token is there goes on at once", rate);
	second = begin("user:42", 2);
	wait_ns = answer.retry_after_ns;
	ok(second == PENDING && an_hour(wait_ns), "%s: one without a token waits until there is one", rate);
	is(remaining("s", "user:42"), 8, "%s: what waits has taken its tokens of other limits", rate);
	new_out();
	is(shmlimit_gate_poll(gate, pending, &answer, &held), PENDING, "%s: it goes on waiting", rate);
	ok(answer.retry_after_ns <= wait_ns, "%s: for no longer than before", rate);

	struct shmlimit_gate_pending *waiting = pending;
	third = begin("user:42", 2);
	is(third, SHMLIMIT_DENIED, "%s: one that would wait for longer is denied", rate);
	ok(answer.outcome == SHMLIMIT_GATE_REJECTED && answer.status == 429 && answer.denied_by == 0,
	   "%s: by the limit with the delay", rate);
	ok(an_hour(answer.retry_after_ns), "%s: a denied request is told when it could begin to wait", rate);
	is(remaining("s", "user:42"), 8, "%s: a denied request takes nothing of other limits", rate);

	pending = waiting;
	cancel(2);
	is(remaining("s", "user:42"), 9, "%s: a client that goes gives back what it took", rate);
	ok(begin("user:42", 2) == PENDING && an_hour(answer.retry_after_ns),
	   "%s: another waits in the place of a client that went", rate);
	cancel(2);
	shmlimit_gate_close(gate);
	(void)shmlimit_rule_remove(l, "r");
	(void)shmlimit_rule_remove(l, "s");
}

static void others_deny(void)
{
	gate = gate_new("create=yes rule=slow rate=\"1/h burst 1\" delay=1h rule=once rate=\"1/h burst 1\" "
	                "rule=places rate=\"1 at once for 2 hours\"");
	is(begin("user:43", 1), SHMLIMIT_ALLOWED, "a limit is used up");
	is(begin("user:43", 2), PENDING, "the next request waits");
	cancel(2);
	keys[0].limit = 1;
	keys[1].limit = 2;
	new_out();
	is(shmlimit_gate_enter(gate, keys, 2, &answer, &held), SHMLIMIT_ALLOWED,
	   "another limit is used up, and a place");

	struct shmlimit_gate_held place = held;
	is(begin("user:43", 3), SHMLIMIT_DENIED, "a limit without a delay denies at once");
	is(begin("user:43", 1), PENDING, "a request that it denied has reserved nothing");
	ok(an_hour(answer.retry_after_ns), "a request that was denied by another limit makes the next wait no longer");
	cancel(1);
	(void)shmlimit_gate_leave(
		gate, (struct shmlimit_gate_key[]){ keys[1], { .limit = 2, .bytes = "user:43", .length = 7 } }, 2,
		&place);
	shmlimit_gate_close(gate);
}

/* A place is held while the request waits, and left when it is given up. */
static void holds_places(void)
{
	gate = gate_new(
		"create=yes rule=slow2 rate=\"1/h burst 1\" delay=1h rule=places2 rate=\"2 at once for 2 hours\"");
	(void)begin("user:44", 1);
	is(begin("user:44", 2), PENDING, "a request with a place waits");
	is(remaining("places2", "user:44"), 1, "it holds its place");
	cancel(2);
	is(remaining("places2", "user:44"), 2, "the place is left when the request is given up");
	shmlimit_gate_close(gate);
}

/* Requests that are served in order, as fast as the limit allows: eleven take ten refills. */
static void in_order(void)
{
	struct timespec from, to;
	uint64_t ns;
	int allowed = 0;

	gate = gate_new("create=yes rule=fast rate=\"200/s burst 1\" delay=10s");
	clock_gettime(CLOCK_MONOTONIC, &from);
	for (int i = 0; i < 11; i++)
		allowed += ASK(gate, "user:45", 0) == SHMLIMIT_ALLOWED;
	clock_gettime(CLOCK_MONOTONIC, &to);
	ns = (uint64_t)(to.tv_sec - from.tv_sec) * SECOND + (uint64_t)to.tv_nsec - (uint64_t)from.tv_nsec;
	is(allowed, 11, "shmlimit_gate_ask() waits, and then all pass");
	ok(ns >= 10 * SECOND / 200, "no earlier than the limit allows: %llu us", (unsigned long long)ns / 1000);
	ok((answer.outcome == SHMLIMIT_GATE_PASSED || answer.outcome == SHMLIMIT_GATE_DELAYED) &&
	           answer.retry_after_ns == 0 && answer.field_count == 2,
	   "the answer of a request that waited is that of any other, except its outcome");

	while (begin("user:45", 1) != PENDING)
		;
	do {
		nanosleep(&(struct timespec){ .tv_nsec = (long)answer.retry_after_ns }, NULL);
		new_out();
	} while (shmlimit_gate_poll(gate, pending, &answer, &held) == PENDING);
	ok(answer.outcome == SHMLIMIT_GATE_DELAYED && answer.field_count == 2,
	   "a request that was polled has its fields, too");
	shmlimit_gate_close(gate);
}

/* What limit_req does with these words, by doc/migrate.md; how many requests of one moment go on, and how many wait. */
static const struct {
	const char *limit_req, *ours;
	int at_once, wait;
} limit_reqs[] = {
	{ "rate=1r/m", "rate=\"1/m burst 1\"", 1, 0 },
	{ "rate=1r/m burst=4", "rate=\"1/m burst 1\" delay=4m", 1, 4 },
	{ "rate=1r/m burst=4 nodelay", "rate=\"1/m burst 5\" nodelay", 5, 0 },
	{ "rate=1r/m burst=4 delay=2", "rate=\"1/m burst 3\" delay=2m", 3, 2 },
};

static void as_limit_req(void)
{
	for (size_t i = 0; i < sizeof(limit_reqs) / sizeof(limit_reqs[0]); i++) {
		struct shmlimit_gate_pending *waiting[8];
		char spec[100];
		int now = 0, later = 0, answered;

		snprintf(spec, sizeof(spec), "create=yes rule=lr%zu %s", i, limit_reqs[i].ours);
		gate = gate_new(spec);
		while ((answered = begin("203.0.113.9", 1)) != SHMLIMIT_DENIED && now + later < 8) {
			now += answered == SHMLIMIT_ALLOWED;
			if (answered != PENDING)
				continue;
			waiting[later++] = pending;
		}
		is(now, limit_reqs[i].at_once, "as limit_req with %s: this many go on at once",
		   limit_reqs[i].limit_req);
		is(later, limit_reqs[i].wait, "as limit_req with %s: this many wait", limit_reqs[i].limit_req);
		while (later > 0)
			shmlimit_gate_cancel(gate, waiting[--later], &held);
		shmlimit_gate_close(gate);
	}
}

/* A request that waited pays its estimate when it goes on, and one that is given up pays nothing. */
static void estimates(void)
{
	uint64_t used = 3;

	gate = gate_new("create=yes rule=bill rate=\"100/s burst 5\" delay=10s estimate=5");
	is(begin("user:47", 1), SHMLIMIT_ALLOWED, "a request pays its estimate");
	is(begin("user:47", 1), PENDING, "the next waits");
	is(held.bill_count, 0, "a request has no bill while it waits");
	do {
		nanosleep(&(struct timespec){ .tv_nsec = (long)answer.retry_after_ns }, NULL);
		new_out();
	} while (shmlimit_gate_poll(gate, pending, &answer, &held) == PENDING);
	ok(held.bill_count == 1 && held.bills[0].paid == 5, "it has its bill when it goes on");
	ok(answer.outcome == SHMLIMIT_GATE_DELAYED && answer.status == 0 && answer.denied_by == 0,
	   "the outcome of a request that waited says so");
	is(shmlimit_gate_settle(gate, keys, 1, &used, &held), 0, "the bill of a request that waited is settled");
	is(held.bills[0].paid, 3, "as any other");
	shmlimit_gate_close(gate);
}

/* No request waits for what would not be denied. */
static void dry_runs(void)
{
	struct shmlimit_rule rule = { .struct_size = sizeof(rule) };
	int id;

	gate = gate_new("create=yes rule=dry rate=\"1/h burst 1\" delay=1h dry_run");
	(void)begin("user:46", 1);
	is(begin("user:46", 1), SHMLIMIT_ALLOWED, "in a limit's dry run a request that would wait goes on");
	is(answer.outcome, SHMLIMIT_GATE_DELAYED_DRY_RUN, "the outcome of a request that would wait says so");
	is(begin("user:46", 1), SHMLIMIT_ALLOWED, "as one that would be denied");
	is(answer.outcome, SHMLIMIT_GATE_REJECTED_DRY_RUN, "the outcome of a request that would be denied says so");
	shmlimit_gate_close(gate);

	gate = gate_new("create=yes rule=dry2 rate=\"1/h burst 1\" delay=1h estimate=1 dry_run");
	(void)begin("user:46", 1);
	is(begin("user:46", 1), SHMLIMIT_ALLOWED, "in a dry run a request with an estimate that would wait goes on");
	ok(answer.outcome == SHMLIMIT_GATE_DELAYED_DRY_RUN && held.bill_count == 1 && held.bills[0].paid == 1,
	   "its estimate is in the bill all the same");
	shmlimit_gate_close(gate);

	gate = gate_new("create=yes rule=shadow rate=\"1/h burst 1\" delay=1h");
	id = shmlimit_rule_find(l, "shadow");
	if (shmlimit_rule_get(l, id, &rule) != 0)
		bail("rule_get");
	is((long long)rule.max_wait_ns, HOUR, "create=yes gives the rule the debt of the delay");
	rule.mode = SHMLIMIT_DRY_RUN;
	unit_id(shmlimit_rule_set(l, "shadow", &rule));
	(void)begin("user:46", 1);
	is(begin("user:46", 1), SHMLIMIT_ALLOWED, "in a rule's dry run a request that would wait goes on");
	is(answer.outcome, SHMLIMIT_GATE_DELAYED_DRY_RUN, "the outcome of a rule's dry run says so, too");
	shmlimit_gate_close(gate);
}

/* Four limits, each with a delay or without: the answer has the fields of all, in the order of the keys. */
static void fields_in_order(void)
{
	for (unsigned delays = 0; delays < 16; delays++) {
		unsigned in_place = 0;
		char spec[400];
		int at = snprintf(spec, sizeof(spec), "create=yes");

		for (unsigned i = 0; i < 4; i++)
			at += snprintf(spec + at, sizeof(spec) - (size_t)at, " rule=f%u-%u rate=%u/h%s", i,
			               delays & 1u << i, 10 + (i + delays) % 4,
			               (delays & 1u << i) != 0 ? " delay=1h" : "");
		gate = gate_new(spec);
		is(begin("user:48", 4), SHMLIMIT_ALLOWED, "delays at %x: the request passes", delays);
		for (uint32_t i = 0; i < answer.field_count && i < 8; i++) {
			char name[20];

			snprintf(name, sizeof(name), "\"f%u-%u\"", i / 2, delays & 1u << (i / 2));
			in_place += strcmp(answer.fields[i].name, i % 2 != 0 ? "RateLimit" : "RateLimit-Policy") == 0 &&
			            strncmp(answer.fields[i].value, name, strlen(name)) == 0;
		}
		ok(answer.field_count == 8 && in_place == 8, "delays at %x: all fields are there, in order", delays);
		is(answer.remaining, 9, "delays at %x: the fewest tokens that are left are said", delays);
		shmlimit_gate_close(gate);
		for (unsigned i = 0; i < 4; i++) {
			snprintf(spec, sizeof(spec), "f%u-%u", i, delays & 1u << i);
			(void)shmlimit_rule_remove(l, spec);
		}
	}
}

/* The limit that would have denied, or made the request wait, is named by its place among the keys. */
static void names_the_limit(void)
{
	gate = gate_new("create=yes rule=wide rate=100/h rule=narrow rate=\"1/h burst 1\" dry_run");
	(void)begin("user:49", 2);
	is(begin("user:49", 2), SHMLIMIT_ALLOWED, "a dry run denies nothing");
	ok(answer.outcome == SHMLIMIT_GATE_REJECTED_DRY_RUN && answer.denied_by == 1,
	   "the second limit would have denied the request");
	shmlimit_gate_close(gate);
	gate = gate_new("create=yes rule=wide rate=100/h rule=narrow2 rate=\"1/h burst 1\" delay=1h dry_run");
	(void)begin("user:49", 2);
	is(begin("user:49", 2), SHMLIMIT_ALLOWED, "a dry run makes nobody wait");
	ok(answer.outcome == SHMLIMIT_GATE_DELAYED_DRY_RUN && answer.denied_by == 1,
	   "the second limit would have made the request wait");
	shmlimit_gate_close(gate);
}

int main(void)
{
	static const struct shmlimit_options options = { .struct_size = sizeof(options), .slots = 64 };

	l = unit_create("gate.delay", &options);
	waits("rate=\"1/h burst 1\"");
	waits("rate=\"1/h burst 1\" algorithm=gcra");
	brought = "1/h burst 1";
	waits("algorithm=gcra");
	waits("rate=\"1/s burst 9\" algorithm=gcra");
	brought = NULL;
	waits("rate=1/h algorithm=window");
	others_deny();
	holds_places();
	in_order();
	as_limit_req();
	estimates();
	dry_runs();
	fields_in_order();
	names_the_limit();
	return tap_done();
}
