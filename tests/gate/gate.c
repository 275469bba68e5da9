/*
 * gate: what becomes of a request whose limits are enforced, in a dry run, or cannot be asked; its fields; and what is
 * reported and counted.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <sys/stat.h>

#include "gate.h"

enum { SMALL, LARGE, DRY_SMALL, DRY_LARGE, ABSENT, DRY_ABSENT };

#define LIMITS " rule=small rule=large rule=small dry_run rule=large dry_run rule=absent rule=absent dry_run"

static uint64_t left(struct shmlimit *l, int rule)
{
	struct shmlimit_result r;

	shmlimit_peek(l, rule, "k", 1, 1, &r);
	return r.remaining;
}

static void outcomes(struct shmlimit *l, int small, int large)
{
	struct shmlimit_gate *g = gate_new("rule=small rule=large rule=small dry_run rule=large dry_run");

	is(gate_said, 0, "a gate whose segment and rules are there reports nothing");
	is(shmlimit_gate_limits(g), 4, "a gate knows its limits");
	is(ASK(g, "k", LARGE, SMALL), SHMLIMIT_ALLOWED, "two limits allow a request");
	ok(answer.outcome == SHMLIMIT_GATE_PASSED && answer.status == 0 && answer.error == 0 && answer.remaining == 1 &&
	           answer.retry_after_ns == 0,
	   "it passed, and the fewest tokens that are left are known");
	is(answer.field_count, 4, "both limits have fields");
	is_str(answer.fields[2].value, "\"small\";q=2;w=7200", "a policy is written as shmlimit_fields() does");
	is_str(answer.fields[3].value, "\"small\";r=1;t=3600", "what is left is written as shmlimit_fields() does");
	ok(answer.fields[3].name_length == 9 && answer.fields[3].value_length == 18, "lengths are known");
	ASK(g, "k", LARGE, SMALL);
	is(ASK(g, "k", LARGE, SMALL), SHMLIMIT_DENIED, "the second limit denies when it is empty");
	ok(answer.outcome == SHMLIMIT_GATE_REJECTED && answer.status == 429 && answer.denied_by == 1 &&
	           answer.remaining == 0 && answer.retry_after_ns > 3590 * SECOND,
	   "the answer says which limit denied, and when to retry");
	ok(answer.field_count == 3 && strcmp(answer.fields[2].name, "Retry-After") == 0,
	   "a denial has the fields of the limit that denies only");
	is(left(l, large), 98, "the first limit has given back what it took");
	is(ASK(g, "k", DRY_SMALL, LARGE), SHMLIMIT_ALLOWED, "in a dry run the empty limit denies no request");
	ok(answer.outcome == SHMLIMIT_GATE_REJECTED_DRY_RUN && answer.field_count == 2 && answer.remaining == 0,
	   "the outcome says so, and the fields do not");
	is(left(l, large), 97, "the limit that is enforced takes");
	is(ASK(g, "k", SMALL, DRY_LARGE), SHMLIMIT_DENIED, "where an enforced limit denies");
	is(left(l, large), 97, "limits in a dry run are not asked");
	is(ASK(g, "k", DRY_LARGE), SHMLIMIT_ALLOWED, "a limit in a dry run alone allows");
	ok(answer.outcome == SHMLIMIT_GATE_PASSED && answer.field_count == 0 && answer.remaining == 96,
	   "a limit in a dry run takes tokens and adds no fields");
	shmlimit_reset(l, small, NULL, 0);
	is(gate_said, 0, "of all this nothing is reported");
	shmlimit_gate_close(g);
	shmlimit_gate_close(NULL);
}

/* A ban: a count at its bound, at which requests only look. */
static void bans(struct shmlimit *l, int large)
{
	struct shmlimit_rule rule = { .struct_size = sizeof(rule), .algorithm = SHMLIMIT_COUNTER, .capacity = 1 };
	struct shmlimit_gate *g =
		gate_new("x_fields rule=large rule=ban peek status=403 rule=ban peek dry_run rule=large peek cost=90");
	struct shmlimit_counters counters = { .struct_size = sizeof(counters) };
	uint64_t before = left(l, large);
	int ban;

	is(gate_said, 0, "a rule that is only peeked at may be missing: nothing is reported");
	is(ASK(g, "k", 0, 1), SHMLIMIT_ALLOWED, "a missing rule that is peeked at denies nothing");
	ok(answer.outcome == SHMLIMIT_GATE_PASSED && answer.error == 0 && answer.remaining == before - 1,
	   "such a request passed its other limits");
	ban = shmlimit_rule_set(l, "ban", &rule);
	is(shmlimit_count(l, ban, "k", 1,
	                  &(struct shmlimit_count_request){ .struct_size = sizeof(struct shmlimit_count_request),
	                                                    .flags = SHMLIMIT_COUNT_RESTART,
	                                                    .n = 1,
	                                                    .bound = INT64_MAX,
	                                                    .ttl_ns = 3600 * SECOND },
	                  NULL),
	   SHMLIMIT_ALLOWED, "a key is banned");
	is(ASK(g, "k", 0, 1), SHMLIMIT_DENIED, "a rule that is created later is in force from the next request");
	ok(answer.outcome == SHMLIMIT_GATE_REJECTED && answer.denied_by == 1 && answer.status == 403 &&
	           answer.remaining == 0 && answer.retry_after_ns > 3590 * SECOND && answer.field_count == 6,
	   "the answer is that of a limit that denies");
	is_str(gate_field("X-RateLimit-Remaining"), "0", "X-RateLimit-Remaining of a ban is 0");
	is_str(gate_field("RateLimit-Policy"), "\"ban\";q=1",
	       "a ban has no window, as its rule's period is not its time");
	is(left(l, large), before - 1, "a limit before it has taken nothing: peeks are first");
	shmlimit_counters(l, ban, &counters);
	ok(counters.allowed == 1 && counters.denied == 0, "a peek counts nothing");
	is(ASK(g, "k", 0, 2), SHMLIMIT_ALLOWED, "a peek in a dry run denies nothing");
	ok(answer.outcome == SHMLIMIT_GATE_REJECTED_DRY_RUN && answer.remaining == before - 2,
	   "its outcome says that it would have");
	is(ASK(g, "other", 0, 1), SHMLIMIT_ALLOWED, "a key that is not banned passes");
	ok(answer.outcome == SHMLIMIT_GATE_PASSED && answer.remaining == 99 && answer.field_count == 5,
	   "a peek that allows has no fields, and its remaining is not told");
	is(ASK(g, "other", 1), SHMLIMIT_ALLOWED, "a peek alone may allow");
	ok(answer.outcome == SHMLIMIT_GATE_PASSED && answer.remaining == UINT64_MAX && answer.field_count == 0,
	   "after a peek nothing is known to be left");
	is(ASK(g, "other", 3), SHMLIMIT_ALLOWED, "any limit can be peeked at");
	is(shmlimit_take(l, large, "other", 5, 10, NULL), SHMLIMIT_ALLOWED,
	   "when a take of the peek's cost would be denied");
	is(ASK(g, "other", 3), SHMLIMIT_DENIED, "the peek denies");
	rule.mode = SHMLIMIT_DRY_RUN;
	shmlimit_rule_set(l, "ban", &rule);
	is(ASK(g, "k", 1), SHMLIMIT_ALLOWED, "a rule in a dry run denies nothing");
	is(answer.outcome, SHMLIMIT_GATE_REJECTED_DRY_RUN, "its outcome says that it would have");
	shmlimit_rule_remove(l, "ban");
	is(ASK(g, "k", 1), SHMLIMIT_ALLOWED, "a rule that is removed bans no client");
	is(gate_said, 0, "that is not reported");
	rule = (struct shmlimit_rule){ .struct_size = sizeof(rule),
		                       .algorithm = SHMLIMIT_LEASE,
		                       .capacity = 2,
		                       .refill = 1,
		                       .period_ns = 3600 * SECOND };
	shmlimit_rule_set(l, "ban", &rule);
	is(ASK(g, "k", 1), SHMLIMIT_DENIED, "a LEASE rule cannot be peeked at: the failure policy answers");
	ok(answer.outcome == SHMLIMIT_GATE_FAILED && answer.error == -EOPNOTSUPP && answer.status == 503,
	   "the error says why");
	shmlimit_gate_attach(g);
	ok(gate_said == 1 && strstr(gate_lines[0], ": rule ban: it is a lease, which cannot be peeked at: ") != NULL,
	   "a lease that is peeked at is reported");
	shmlimit_gate_close(g);
	shmlimit_rule_remove(l, "ban");
}

static void arguments(void)
{
	struct shmlimit_gate *g, *none;
	struct shmlimit_gate_key keys[2] = { { .limit = 0, .bytes = "a", .length = 1, .cost = 90 },
		                             { .limit = 1, .bytes = "b", .length = 0 } };

	is(shmlimit_gate_open("segment=w rule=r x_fields", &none), -EINVAL,
	   "a word of gates belongs before the first rule=");
	is(shmlimit_gate_open(NULL, &none), -EINVAL, "a gate needs a spec");
	is(shmlimit_gate_attach(NULL), -EINVAL, "no gate attaches to nothing");
	g = gate_new("x_fields cost=2 status=403 rule=large fields=denied rule=large");
	memset(&answer, 0, sizeof(answer));
	is(shmlimit_gate_ask(g, keys, 1, &answer), -EINVAL, "an answer has a size");
	answer.struct_size = sizeof(answer);
	is(shmlimit_gate_ask(NULL, keys, 1, &answer), -EINVAL, "a gate is needed");
	is(shmlimit_gate_ask(g, NULL, 1, &answer), -EINVAL, "keys are needed");
	is(shmlimit_gate_ask(g, keys, SHMLIMIT_REQUESTS_MAX + 1, &answer), -EINVAL, "17 limits are too many");
	answer.buffer = gate_buffer;
	answer.buffer_size = SHMLIMIT_GATE_BUFFER_EACH + 127;
	is(shmlimit_gate_ask(g, keys, 1, &answer), -ENOBUFS, "a buffer must have room before anything is asked");
	answer.buffer_size++;
	is(shmlimit_gate_ask(g, keys, 1, &answer), SHMLIMIT_ALLOWED, "with the room that is documented it has");
	ok(answer.field_count == 0 && answer.remaining == 10,
	   "a request may have its own cost; an allowed one no fields");
	keys[0].cost = 0;
	answer.buffer = NULL;
	is(shmlimit_gate_ask(g, keys, 1, &answer), SHMLIMIT_ALLOWED, "without a buffer it is asked too");
	ok(answer.field_count == 0 && answer.remaining == 8, "without a cost the spec's is taken");
	keys[0].cost = 9;
	answer.buffer = gate_buffer + 1;
	answer.buffer_size = SHMLIMIT_GATE_BUFFER_EACH + 128;
	gate_buffer[answer.buffer_size + 1] = 'x';
	is(shmlimit_gate_ask(g, keys, 1, &answer), SHMLIMIT_DENIED, "a buffer may begin at any address");
	ok(answer.field_count == 6 && gate_buffer[answer.buffer_size + 1] == 'x',
	   "all fields fit into the documented size");
	answer.buffer = gate_buffer;
	answer.buffer_size = sizeof(gate_buffer);
	is(shmlimit_gate_ask(g, keys, 2, &answer), SHMLIMIT_DENIED, "a key of no bytes is no limit, the other denies");
	ok(answer.status == 403 && answer.denied_by == 0 && answer.field_count == 6, "with its status, and all fields");
	is_str(gate_field("X-RateLimit-Limit"), "100", "X-RateLimit-Limit is the capacity");
	is_str(gate_field("X-RateLimit-Remaining"), "8", "X-RateLimit-Remaining is what is left");
	ok(strtoul(gate_field("X-RateLimit-Reset"), NULL, 10) > 1700000000, "X-RateLimit-Reset is a Unix time");
	is(shmlimit_gate_ask(g, &keys[1], 1, &answer), SHMLIMIT_ALLOWED, "a request without keys is not limited");
	is(answer.outcome, SHMLIMIT_GATE_UNLIMITED, "its outcome says so");
	is(shmlimit_gate_ask(g, NULL, 0, &answer), SHMLIMIT_ALLOWED, "a request without limits is unlimited");
	keys[0].limit = 2;
	is(shmlimit_gate_ask(g, keys, 1, &answer), -EINVAL, "a limit that the spec lacks is an error of the caller");
	keys[0] = (struct shmlimit_gate_key){ .limit = 0, .length = 1 };
	is(shmlimit_gate_ask(g, keys, 1, &answer), -EINVAL, "a key without bytes is an error of the caller");
	shmlimit_gate_close(g);
}

/* All fields at their longest fit into the buffer that is documented. */
static void longest(struct shmlimit *l)
{
	char spec[SHMLIMIT_REQUESTS_MAX * 80 + 32] = "x_fields", name[SHMLIMIT_RULE_NAME_MAX + 1];
	int limits[SHMLIMIT_REQUESTS_MAX + 1];
	struct shmlimit_gate *g;
	size_t at = strlen(spec);

	memset(name, 'n', sizeof(name));
	name[SHMLIMIT_RULE_NAME_MAX] = '\0';
	unit_rule(l, name, SHMLIMIT_CAPACITY_MAX, 100 * SECOND, SECOND);
	for (int i = 0; i < SHMLIMIT_REQUESTS_MAX; i++) {
		at += (size_t)snprintf(spec + at, sizeof(spec) - at, " rule=%s", name);
		limits[i] = i;
	}
	limits[SHMLIMIT_REQUESTS_MAX] = -1;
	g = gate_new(spec);
	is(gate_ask(g, "k", limits), SHMLIMIT_ALLOWED, "16 limits are asked at once");
	is(answer.field_count, 2 * SHMLIMIT_REQUESTS_MAX + 3, "all have their fields");
	ok(answer.fields[34].value + answer.fields[34].value_length < gate_buffer + sizeof(gate_buffer),
	   "inside the buffer");
	shmlimit_gate_close(g);
	shmlimit_rule_remove(l, name);
}

static void leases(struct shmlimit *l)
{
	struct shmlimit_rule rule = { .struct_size = sizeof(rule),
		                      .algorithm = SHMLIMIT_LEASE,
		                      .capacity = 2,
		                      .refill = 1,
		                      .period_ns = 3600 * SECOND };
	struct shmlimit_gate *g;

	shmlimit_rule_remove(l, "absent");
	unit_id(shmlimit_rule_set(l, "absent", &rule));
	g = gate_new(LIMITS);
	is(gate_said, 1, "a LEASE rule is reported where there is no backend= to lease from");
	ok(strstr(gate_lines[0],
	          ": rule absent: it is a lease, and needs the backend's URL (backend=): requests that need it are "
	          "refused") != NULL,
	   "with what is missing");
	is(ASK(g, "k", LARGE, ABSENT), SHMLIMIT_DENIED, "a request that needs it is refused");
	ok(answer.outcome == SHMLIMIT_GATE_FAILED && answer.error == -EDESTADDRREQ && answer.status == 503,
	   "with status 503");
	is(ASK(g, "k", LARGE, SMALL), SHMLIMIT_ALLOWED, "a request that does not need it is answered");
	shmlimit_gate_close(g);
	unsetenv("SHMLIMIT_BACKEND");
	setenv("SHMLIMIT_BACKEND", "redis://host:port", 1);
	is(shmlimit_gate_open("segment=web backend=- local" LIMITS, &g), -EINVAL,
	   "a gate is not opened whose backend's URL, in the environment, is wrong");
	g = gate_new("backend=unix:///nowhere/redis.sock agent=no local" LIMITS);
	is(ASK(g, "k", LARGE, ABSENT), SHMLIMIT_DENIED, "a request is refused while the backend does not answer");
	ok(answer.outcome == SHMLIMIT_GATE_FAILED && answer.error == -EHOSTDOWN && answer.status == 503 &&
	           answer.retry_after_ns == 0 && answer.field_count == 0,
	   "the answer is a failure of the server, and not of the client");
	shmlimit_gate_close(g);
	g = gate_new("fail=open backend=unix:///nowhere/redis.sock agent=no local" LIMITS);
	is(ASK(g, "k", LARGE, ABSENT), SHMLIMIT_ALLOWED, "with fail=open the gate allows requests during that time");
	shmlimit_gate_close(g);
}

static struct shmlimit_info info_of(struct shmlimit *l)
{
	struct shmlimit_info info = { .struct_size = sizeof(info) };

	shmlimit_info(l, &info);
	return info;
}

static void failures(struct shmlimit *l)
{
	struct shmlimit_gate *g = gate_new(LIMITS);
	uint64_t refused = info_of(l).undecided_refused;
	char path[SHMLIMIT_PATH_MAX];

	is(gate_said, 1, "a rule that is missing is reported once");
	ok(strstr(gate_lines[0], ": rule absent: no such rule: requests that need it are refused") != NULL,
	   "with its name");
	is(ASK(g, "k", LARGE, ABSENT), SHMLIMIT_DENIED, "a request that needs it is refused, failing closed");
	ok(answer.outcome == SHMLIMIT_GATE_FAILED && answer.error == -ESRCH && answer.status == 503 &&
	           answer.field_count == 0,
	   "with status 503 and no fields");
	is(ASK(g, "k", LARGE, SMALL), SHMLIMIT_ALLOWED, "a request that does not need it is answered");
	is(ASK(g, "k", LARGE, DRY_ABSENT), SHMLIMIT_ALLOWED, "a request that needs it in a dry run passes");
	ok(answer.outcome == SHMLIMIT_GATE_FAILED && answer.error == -ESRCH && answer.status == 0 &&
	           answer.field_count == 2,
	   "its outcome says what failed");
	shmlimit_gate_attach(g);
	ok(info_of(l).undecided_refused == refused + 1 && info_of(l).undecided_passed == 1,
	   "the segment counts what was refused and what passed");
	is(gate_said, 1, "the missing rule is not reported again");
	unit_rule(l, "absent", 1, 1, 3600 * SECOND);
	is(ASK(g, "k", ABSENT), SHMLIMIT_ALLOWED, "a rule that is set again is found at once");
	shmlimit_gate_attach(g);
	ok(gate_said == 2 && gate_bad == 1 &&
	           strstr(gate_lines[1], "rule absent: in order again; requests that were refused: 2") != NULL,
	   "the end of an outage is reported, with the requests that it cost");
	shmlimit_rule_remove(l, "absent");
	shmlimit_gate_attach(g);
	is(gate_said, 2, "the same text is not reported twice in a minute");
	shmlimit_gate_close(g);
	leases(l);

	(void)shmlimit_path(unit_name, path);
	if (geteuid() == 0 && chown(path, 65534, 65534) == 0) {
		g = gate_new("fail=open rule=small");
		is(ASK(g, "k", 0), SHMLIMIT_ALLOWED, "a segment of another user is not opened");
		is(answer.error, -EPERM, "since that user is not trusted");
		ok(gate_said == 1 &&
		           strstr(gate_lines[0],
		                  ": it belongs to neither root nor this user, or has another hard link: requests "
		                  "that need it pass") != NULL,
		   "a segment of another user is reported");
		shmlimit_gate_close(g);
		g = gate_new("owner=nobody rule=small");
		ASK(g, "k", 0);
		is(answer.error, 0, "a segment of the user that owner= names is opened");
		shmlimit_gate_close(g);
	} else {
		tap_skip("a segment of another user is not opened", "needs root");
	}
	shmlimit_destroy(unit_name);
	g = gate_new("fail=open rule=small rule=small dry_run rule=small peek");
	is(ASK(g, "k", 0), SHMLIMIT_ALLOWED, "without a segment requests pass, failing open");
	ok(answer.outcome == SHMLIMIT_GATE_FAILED && answer.error == -ENOENT && answer.status == 0,
	   "a request that passes without a segment has the outcome failed");
	is(ASK(g, "k", 1), SHMLIMIT_ALLOWED, "in a dry run too");
	is(answer.error, -ENOENT, "with the error");
	is(ASK(g, "k", 2), SHMLIMIT_ALLOWED, "a peek passes too, failing open");
	is(answer.error, -ENOENT, "with the error of the segment that is missing");
	is(gate_said, 1, "that the segment is missing is reported once");
	is(gate_bad, 1, "as something bad");
	l = unit_create("gate", NULL);
	unit_rule(l, "small", 2, 1, 3600 * SECOND);
	is(shmlimit_gate_attach(g), 0, "a segment that is created later is opened");
	ok(gate_said == 2 && strstr(gate_lines[1], "in order again; requests that passed without a limit: 3") != NULL,
	   "the end of an outage is reported, with the requests that passed");
	ok(info_of(l).undecided_passed == 3 && info_of(l).undecided_refused == 0,
	   "the new segment counts the requests that passed");
	is(ASK(g, "k", 0), SHMLIMIT_ALLOWED, "its limit is asked");
	is(answer.outcome, SHMLIMIT_GATE_PASSED, "the limit of a new segment decides");
	shmlimit_gate_close(g);
	shmlimit_close(l);
}

/* How often this process has the segment mapped. */
static unsigned mappings(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[500];
	unsigned n = 0;

	if (maps == NULL)
		bail("/proc/self/maps");
	while (fgets(line, sizeof(line), maps) != NULL)
		n += strstr(line, unit_name) != NULL;
	fclose(maps);
	return n;
}

/* A gate that is closed has let go of its segment. */
static void closes(void)
{
	struct shmlimit *l = unit_create("gate.closes", NULL);
	unsigned before = mappings();

	unit_rule(l, "site", 9, 9, SECOND);
	for (int i = 0; i < 8; i++) {
		struct shmlimit_gate *gate = gate_new("rule=site");

		is(ASK(gate, "user:42", 0), SHMLIMIT_ALLOWED, "gate %d decides", i);
		ok(mappings() > before, "gate %d has the segment mapped", i);
		shmlimit_gate_close(gate);
	}
	is(mappings(), before, "closed gates have mapped nothing");
	shmlimit_close(l);
}

/* Remove the rule, and set it again under another id, as an operator would between two looks of the gate. */
static void move_rule(struct shmlimit *l, const char *taken)
{
	struct shmlimit_rule rule = { .struct_size = sizeof(rule) };
	int before = shmlimit_rule_find(l, "site");

	if (shmlimit_rule_get(l, before, &rule) != 0 || shmlimit_rule_remove(l, "site") != 0)
		bail("the rule cannot be removed");
	unit_rule(l, taken, 1, 1, SECOND);
	if (unit_id(shmlimit_rule_set(l, "site", &rule)) == before)
		bail("the rule has its id again");
}

/* Each kind of call finds a rule that has another id since. */
static void moved(void)
{
	static const char *const kinds[] = { "rule=site", "rule=site delay=1h", "rule=site peek",
		                             "rule=site estimate=5" };
	struct shmlimit_rule rule = { .struct_size = sizeof(rule),
		                      .capacity = 9,
		                      .refill = 9,
		                      .period_ns = 3600 * SECOND,
		                      .max_wait_ns = 3600 * SECOND };
	struct shmlimit_gate_key key = { .bytes = "user:42", .length = 7 };
	struct shmlimit_gate_held held = { .struct_size = sizeof(held) };
	struct shmlimit *l = unit_create("gate.moved", NULL);
	struct shmlimit_gate *gate;
	struct shmlimit_result r;
	uint64_t used = 7;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		char taken[20];

		snprintf(taken, sizeof(taken), "taken%zu", i);
		unit_id(shmlimit_rule_set(l, "site", &rule));
		gate = gate_new(kinds[i]);
		is(ASK(gate, "user:42", 0), SHMLIMIT_ALLOWED, "%s: a request passes", kinds[i]);
		move_rule(l, taken);
		is(ASK(gate, "user:42", 0), SHMLIMIT_ALLOWED, "%s: one passes when the rule has another id", kinds[i]);
		is(answer.outcome, SHMLIMIT_GATE_PASSED, "%s: it was decided", kinds[i]);
		shmlimit_gate_close(gate);
	}
	gate = gate_new("rule=site estimate=5");
	shmlimit_reset(l, SHMLIMIT_ALL_RULES, NULL, 0);
	new_out();
	is(shmlimit_gate_enter(gate, &key, 1, &answer, &held), SHMLIMIT_ALLOWED, "a request pays its estimate");
	move_rule(l, "taken");
	is(shmlimit_gate_settle(gate, &key, 1, &used, &held), 0, "it is settled when the rule has another id");
	shmlimit_peek(l, shmlimit_rule_find(l, "site"), "user:42", 7, 0, &r);
	is(r.remaining, 7, "what it used beyond the estimate is charged to the rule");
	shmlimit_gate_close(gate);
	shmlimit_close(l);
}

int main(void)
{
	struct shmlimit *l = unit_create("gate", NULL);
	int small = unit_rule(l, "small", 2, 1, 3600 * SECOND), large = unit_rule(l, "large", 100, 1, 3600 * SECOND);

	outcomes(l, small, large);
	bans(l, large);
	shmlimit_reset(l, large, NULL, 0);
	arguments();
	longest(l);
	failures(l);
	shmlimit_close(l);
	moved();
	closes();
	return tap_done();
}
