/*
 * fixed_fields: header fields say what a rule is now. What a gate keeps of them is made again as soon as another process
 * changes, switches off, removes or replaces the rule, and threads never see half of two texts.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <pthread.h>
#include <sys/wait.h>

#include "gate.h"

/* Let another process set the rule, as an operator would. Its answers are those of the next request. */
static void set_elsewhere(const char *name, const struct shmlimit_rule *rule)
{
	int status = 0;
	pid_t child = fork();

	if (child == 0) {
		struct shmlimit *l;

		if (shmlimit_open(unit_name, 0, NULL, &l) != 0)
			_exit(1);
		_exit((rule != NULL ? shmlimit_rule_set(l, name, rule) : shmlimit_rule_remove(l, name)) < 0);
	}
	if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
		bail("another process cannot set %s", name);
}

/* The fields of three answers, of which all but the first are of what is kept, are `policy`, and agree with them. */
static void fields_are(struct shmlimit_gate *gate, const char *policy, const char *title)
{
	const char *end = strchr(policy, ';');
	size_t length = end != NULL ? (size_t)(end - policy) : 0;
	char limit[SHMLIMIT_FIELD_MAX];

	for (int i = 0; i < 3; i++) {
		(void)ASK(gate, "alice", 0);
		is_str(gate_field("RateLimit-Policy"), policy, "%s: answer %d", title, i);
		snprintf(limit, sizeof(limit), "%.*s;r=%llu", (int)length, policy,
		         (unsigned long long)answer.remaining);
		if (length == 0)
			is(answer.field_count, 0, "there is no other field");
		else
			is(strncmp(gate_field("RateLimit"), limit, strlen(limit)), 0, "the other field: %s, and not %s",
			   gate_field("RateLimit"), limit);
	}
}

static struct shmlimit_rule rate(uint64_t capacity, uint64_t seconds)
{
	return (struct shmlimit_rule){ .struct_size = sizeof(struct shmlimit_rule),
		                       .capacity = capacity,
		                       .refill = capacity,
		                       .period_ns = seconds * SECOND };
}

static void changes(void)
{
	struct shmlimit *l = unit_create("gate_fields", NULL);
	struct shmlimit_gate *gate;
	struct shmlimit_rule rule = rate(100, 3600);

	unit_rule(l, "first", 1, 1, SECOND);
	unit_rule(l, "site", 100, 100, 3600 * SECOND);
	gate = gate_new("rule=site");
	fields_are(gate, "\"site\";q=100;w=3600", "as the rule was set");
	rule.period_ns = 60 * SECOND;
	set_elsewhere("site", &rule);
	fields_are(gate, "\"site\";q=100;w=60", "another period and the same quota");
	rule = rate(12345678, 60);
	set_elsewhere("site", &rule);
	fields_are(gate, "\"site\";q=12345678;w=60", "another quota in the same period");
	rule.refill = 2;
	set_elsewhere("site", &rule);
	fields_are(gate, "\"site\";q=12345678;w=370370340", "another refill");
	rule = rate(7, 7);
	set_elsewhere("site", &rule);
	rule.mode = SHMLIMIT_DRY_RUN;
	set_elsewhere("site", &rule);
	fields_are(gate, "", "a rule in a dry run has none");
	rule.mode = SHMLIMIT_ENFORCE;
	set_elsewhere("site", &rule);
	fields_are(gate, "\"site\";q=7;w=7", "after the dry run");
	rule.mode = SHMLIMIT_OFF;
	set_elsewhere("site", &rule);
	fields_are(gate, "", "a rule that is off has none");
	rule.mode = SHMLIMIT_BLOCK;
	set_elsewhere("site", &rule);
	fields_are(gate, "", "a rule that blocks has none");
	rule.mode = SHMLIMIT_ENFORCE;
	set_elsewhere("site", &rule);
	fields_are(gate, "\"site\";q=7;w=7", "a rule that is on again");

	/* The name goes to another rule, and comes back. */
	set_elsewhere("site", NULL);
	is(ASK(gate, "alice", 0), SHMLIMIT_DENIED, "a rule that was removed fails");
	is(answer.field_count, 0, "it has no fields");
	rule = rate(5, 60);
	rule.algorithm = SHMLIMIT_GCRA;
	set_elsewhere("other", &rule);
	is(ASK(gate, "alice", 0), SHMLIMIT_DENIED, "another rule is not taken for it");
	set_elsewhere("other", NULL);
	set_elsewhere("site", &rule);
	fields_are(gate, "\"site\";q=5;w=60", "a rule that was set again, with another algorithm");
	set_elsewhere("site", NULL);
	set_elsewhere("other", &rule);
	rule = rate(6, 60);
	set_elsewhere("site", &rule);
	fields_are(gate, "\"site\";q=6;w=60", "a rule that was set again under another id");
	set_elsewhere("first", NULL);

	shmlimit_gate_close(gate);
	shmlimit_close(l);
	shmlimit_destroy(unit_name);
}

/* A rule that was removed and set again has an id of its own, and there the same version and quota. */
static void another_id(void)
{
	struct shmlimit *l = unit_create("gate_fields", NULL);
	struct shmlimit_rule rule = rate(100, 60);
	struct shmlimit_gate *gate;
	uint64_t before, now;
	int id;

	unit_rule(l, "site", 100, 100, 3600 * SECOND);
	id = shmlimit_rule_find(l, "site");
	shmlimit_rule_version(l, id, &before);
	gate = gate_new("rule=site");
	fields_are(gate, "\"site\";q=100;w=3600", "a rule");
	set_elsewhere("site", NULL);
	set_elsewhere("site", &rule);
	if (shmlimit_rule_find(l, "site") == id || shmlimit_rule_version(l, shmlimit_rule_find(l, "site"), &now) != 0 ||
	    now != before)
		bail("the rule is not the first one of another id");
	fields_are(gate, "\"site\";q=100;w=60", "a rule of the same name under another id");
	shmlimit_gate_close(gate);
	shmlimit_close(l);
	shmlimit_destroy(unit_name);
}

/* Another segment under the name, whose rule has the same quota, id and version. */
static void replaced(void)
{
	struct shmlimit *l = unit_create("gate_fields", NULL);
	struct shmlimit_gate *gate;

	unit_rule(l, "site", 100, 100, 3600 * SECOND);
	gate = gate_new("rule=site");
	fields_are(gate, "\"site\";q=100;w=3600", "a segment");
	shmlimit_close(l);
	shmlimit_destroy(unit_name);
	l = unit_create("gate_fields", NULL);
	unit_rule(l, "site", 100, 100, 60 * SECOND);
	(void)shmlimit_gate_attach(gate);
	fields_are(gate, "\"site\";q=100;w=60", "a segment that was made again");
	shmlimit_gate_close(gate);
	shmlimit_close(l);
	shmlimit_destroy(unit_name);
}

/* Limits that share a rule, and requests that bring limits. */
static void several(void)
{
	struct shmlimit *l = unit_create("gate_fields", NULL);
	struct shmlimit_gate *gate = gate_new("create=yes rule=api algorithm=gcra rate=50/h rule=site rate=9/m");
	struct shmlimit_gate_key keys[2] = { { .length = 4 }, { .limit = 1, .bytes = "bob", .length = 3 } };
	char user[8];
	static const char *const brought[] = { NULL, "20/m", NULL, "30/m", "50/m", NULL };
	static const char *const policies[] = { "\"api\";q=50;w=3600", "\"api\";q=20;w=60", "\"api\";q=50;w=3600",
		                                "\"api\";q=30;w=60",   "\"api\";q=50;w=60", "\"api\";q=50;w=3600" };

	for (size_t i = 0; i < sizeof(brought) / sizeof(brought[0]); i++) {
		snprintf(user, sizeof(user), "bob%zu", i);
		keys[0].bytes = user;
		keys[0].rate = brought[i];
		keys[0].rate_length = brought[i] != NULL ? (uint32_t)strlen(brought[i]) : 0;
		new_out();
		is(shmlimit_gate_ask(gate, keys, 2, &answer), SHMLIMIT_ALLOWED, "request %zu passes", i);
		is(answer.field_count, 4, "each limit has its fields");
		is_str(answer.fields[0].value, policies[i], "that of the request's limit, or of the rule's own");
		is_str(answer.fields[2].value, "\"site\";q=9;w=60", "the other limit has its own");
	}
	for (uint32_t i = 0; i < answer.field_count; i++)
		is(answer.fields[i].value_length, (long)strlen(answer.fields[i].value),
		   "a field's length is that of its text");
	shmlimit_gate_close(gate);
	shmlimit_close(l);
	shmlimit_destroy(unit_name);
}

/* A denial has its own t and Retry-After; a limit of places has neither. */
static void denials(void)
{
	struct shmlimit *l = unit_create("gate_fields", NULL);
	struct shmlimit_gate *gate = gate_new("create=yes rule=day rate=1/day rule=place rate=\"1 at once\"");
	struct shmlimit_rule hold = { .struct_size = sizeof(hold),
		                      .algorithm = SHMLIMIT_HOLD,
		                      .capacity = 1,
		                      .refill = 1,
		                      .period_ns = 3600 * SECOND };

	is(ASK(gate, "carol", 0), SHMLIMIT_ALLOWED, "the first request of a day passes");
	is_str(gate_field("RateLimit"), "\"day\";r=0;t=86400", "its field");
	is_str(gate_field("Retry-After"), "", "it needs not wait");
	for (int i = 0; i < 3; i++) {
		unsigned long t = 0;

		is(ASK(gate, "carol", 0), SHMLIMIT_DENIED, "the others are denied");
		is_str(gate_field("RateLimit-Policy"), "\"day\";q=1;w=86400", "the limit is in the field");
		is(sscanf(gate_field("RateLimit"), "\"day\";r=0;t=%lu", &t), 1, "the time is in the other field");
		is(t > 80000 && t <= 86400 && t == strtoul(gate_field("Retry-After"), NULL, 10), 1,
		   "it is that of Retry-After: %lu, %s", t, gate_field("Retry-After"));
	}
	set_elsewhere("place", &hold);
	for (int i = 0; i < 3; i++) {
		is(ASK(gate, "carol", 1), i == 0 ? SHMLIMIT_ALLOWED : SHMLIMIT_DENIED, "one place is taken");
		is_str(gate_field("RateLimit-Policy"), "\"place\";q=1;qu=\"concurrent-requests\"",
		       "it says what it counts");
		is_str(gate_field("RateLimit"), "\"place\";r=0", "it has no time");
		is_str(gate_field("Retry-After"), "", "nobody knows when to come back");
	}
	shmlimit_gate_close(gate);
	shmlimit_close(l);
	shmlimit_destroy(unit_name);
}

/* Names whose text is not kept, since it is too long, have the same fields. */
static void lengths(void)
{
	struct shmlimit *l = unit_create("gate_fields", NULL);
	char name[SHMLIMIT_RULE_NAME_MAX + 1], spec[SHMLIMIT_RULE_NAME_MAX + 40], policy[SHMLIMIT_FIELD_MAX];

	for (size_t length = 1; length <= SHMLIMIT_RULE_NAME_MAX; length++)
		for (int period = 0; period < 2; period++) {
			struct shmlimit_rule rule = rate(period ? 8000000 : 9, period ? 86400 : 1);
			struct shmlimit_gate *gate;

			memset(name, 'n', length);
			name[length] = '\0';
			snprintf(spec, sizeof(spec), "rule=%s", name);
			snprintf(policy, sizeof(policy), "\"%s\";q=%llu;w=%d", name, (unsigned long long)rule.capacity,
			         period ? 86400 : 1);
			set_elsewhere(name, &rule);
			gate = gate_new(spec);
			fields_are(gate, policy, "a name of any length");
			shmlimit_gate_close(gate);
			set_elsewhere(name, NULL);
		}
	shmlimit_close(l);
	shmlimit_destroy(unit_name);
}

/* ---- Threads ---- */

#define THREADS 4
#define CHANGES 400

static struct shmlimit_gate *shared;
static const char *const shapes[] = { "\"site\";q=100;w=3600", "\"site\";q=8000000;w=86400", "\"site\";q=3;w=1" };
static int stop;

static void *asks(void *unused)
{
	uintptr_t faults = 0;
	char buffer[SHMLIMIT_GATE_BUFFER];
	struct shmlimit_gate_key key = { .bytes = "dave", .length = 4 };
	struct shmlimit_gate_answer own = { .struct_size = sizeof(own),
		                            .buffer = buffer,
		                            .buffer_size = sizeof(buffer) };

	(void)unused;
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		int known = 0;

		(void)shmlimit_gate_ask(shared, &key, 1, &own);
		for (size_t i = 0; i < 3; i++)
			known |= own.field_count >= 2 && strcmp(own.fields[0].value, shapes[i]) == 0;
		/* The quota that a thread has just read may be that of the rule before, in another time. */
		faults += own.field_count < 2 || strncmp(own.fields[1].value, "\"site\";r=", 9) != 0 ||
		          (!known && (strncmp(own.fields[0].value, "\"site\";q=", 9) != 0 ||
		                      strstr(own.fields[0].value, ";w=") == NULL));
	}
	return (void *)faults;
}

static void threads(void)
{
	static const uint64_t capacity[] = { 100, 8000000, 3 }, seconds[] = { 3600, 86400, 1 };
	struct shmlimit *l = unit_create("gate_fields", NULL);
	pthread_t thread[THREADS];
	uintptr_t faults = 0;
	int stale = 0;

	unit_rule(l, "site", 100, 100, 3600 * SECOND);
	shared = gate_new("rule=site");
	for (int i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, asks, NULL);
	for (int i = 0; i < CHANGES; i++) {
		struct shmlimit_rule rule = rate(capacity[i % 3], seconds[i % 3]);

		unit_id(shmlimit_rule_set(l, "site", &rule));
		(void)ASK(shared, "erin", 0);
		stale += strcmp(gate_field("RateLimit-Policy"), shapes[i % 3]) != 0;
	}
	is(stale, 0, "each answer after a change has the new limit, while %d threads ask, too", THREADS);
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < THREADS; i++) {
		void *found;

		pthread_join(thread[i], &found);
		faults += (uintptr_t)found;
	}
	is(faults, 0, "no thread sees half of a field");
	shmlimit_gate_close(shared);
	shmlimit_close(l);
	shmlimit_destroy(unit_name);
}

int main(void)
{
	changes();
	another_id();
	replaced();
	several();
	denials();
	lengths();
	threads();
	return tap_done();
}
