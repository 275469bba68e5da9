/*
 * create: with create=yes the first request makes the segment and the rules, once, however many processes begin at the
 * same time. What an operator has set stays until the spec has another rate.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <fcntl.h>
#include <grp.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "../process/process.h"
#include "gate.h"

#define WORKERS 8
#define ASKED 40
#define ROUNDS 20

static _Atomic uint64_t *allowed, *failed;

/* Each has a gate of its own, as workers that were not forked from one process have. */
static void ask_often(struct crew *crew, int index)
{
	struct shmlimit_gate *g =
		gate_new("create=yes mode=0640 slots=64 rule=day rate=\"100/day\" rule=window algorithm=window "
	                 "rate=1000/day");

	(void)crew;
	(void)index;
	for (int i = 0; i < ASKED; i++) {
		*allowed += ASK(g, "k", 0, 1) == SHMLIMIT_ALLOWED;
		*failed += answer.outcome == SHMLIMIT_GATE_FAILED;
	}
	shmlimit_gate_close(g);
}

static void races(void)
{
	uint64_t wrong = 0, not_exact = 0;

	for (int round = 0; round < ROUNDS; round++) {
		shmlimit_destroy(unit_name);
		*allowed = 0;
		wrong += (uint64_t)crew_run(WORKERS, ask_often, NULL);
		not_exact += *allowed != 100;
	}
	is(wrong, 0, "%d times %d workers began at once", ROUNDS, WORKERS);
	is(*failed, 0, "no request found the segment or a rule missing");
	is(not_exact, 0, "each time all of them together admitted exactly the limit");
}

static struct shmlimit *look(struct shmlimit_rule *rule, const char *name)
{
	struct shmlimit *l;

	if (shmlimit_open(unit_name, 0, NULL, &l) != 0)
		bail("shmlimit_open");
	memset(rule, 0, sizeof(*rule));
	rule->struct_size = sizeof(*rule);
	if (shmlimit_rule_get(l, shmlimit_rule_find(l, name), rule) != 0)
		bail("rule %s", name);
	return l;
}

static void created(void)
{
	struct shmlimit_info info = { .struct_size = sizeof(info) };
	struct shmlimit_rule rule;
	struct shmlimit *l = look(&rule, "window");

	ok(rule.algorithm == SHMLIMIT_WINDOW && rule.capacity == 1000 && rule.period_ns == 86400 * SECOND,
	   "a window is created");
	shmlimit_info(l, &info);
	ok(info.slots == 64 && (info.mode & 0777) == 0640 && info.rules_used == 2,
	   "the segment is as the spec says, with each rule once");
	shmlimit_close(l);
}

static void changed(void)
{
	struct shmlimit_rule rule;
	struct shmlimit_gate *old = gate_new("create=yes rule=day rate=100/day"), *fresh;
	struct shmlimit *l = look(&rule, "day");

	is(gate_said, 0, "a gate that creates what it needs has nothing to report");
	rule.mode = SHMLIMIT_DRY_RUN;
	rule.capacity = 7;
	rule.set_unix_ns = 0;
	unit_id(shmlimit_rule_set(l, "day", &rule));
	shmlimit_close(l);
	shmlimit_gate_attach(old);
	shmlimit_close(look(&rule, "day"));
	is(rule.capacity, 7, "a rule that an operator changes stays as it is while gates run");
	fresh = gate_new("create=yes rule=day rate=100/day");
	shmlimit_close(look(&rule, "day"));
	is(rule.capacity, 7, "a rule that an operator changes stays as it is when a gate with the same spec begins");
	shmlimit_gate_close(fresh);
	fresh = gate_new("create=yes rule=day rate=\"200/day burst 300\"");
	l = look(&rule, "day");
	ok(rule.capacity == 300 && rule.refill == 200, "a gate that begins with another rate gives it to the rule");
	is(rule.mode, SHMLIMIT_DRY_RUN, "a gate that begins leaves a rule's mode alone");
	shmlimit_gate_attach(old);
	shmlimit_close(l);
	l = look(&rule, "day");
	is(rule.capacity, 300, "an older gate does not change it back");
	shmlimit_rule_remove(l, "day");
	shmlimit_close(l);
	shmlimit_gate_attach(old);
	l = look(&rule, "day");
	is(rule.capacity, 100, "a rule that is missing is created again");
	shmlimit_close(l);
	shmlimit_destroy(unit_name);
	is(shmlimit_gate_attach(fresh), 0, "a segment that is missing is created again");
	is(ASK(fresh, "k", 0), SHMLIMIT_ALLOWED, "in which requests are decided");
	is(answer.outcome, SHMLIMIT_GATE_PASSED, "as ever");
	shmlimit_gate_close(old);
	shmlimit_gate_close(fresh);
}

/* A rule that is set again is a new version, whose keys are converted: a gate that agrees with a rule leaves it alone. */
static void alike(void)
{
	static const char *const rates[] = { "rate=5/day", "rate=\"5/day burst 9\"", "rate=5/day algorithm=window",
		                             "rate=\"5 at once\"" };

	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		struct shmlimit_rule before, after;
		char spec[200];

		shmlimit_destroy(unit_name);
		snprintf(spec, sizeof(spec), "create=yes slots=64 rule=r %s", rates[i]);
		shmlimit_gate_close(gate_new(spec));
		shmlimit_close(look(&before, "r"));
		shmlimit_gate_close(gate_new(spec));
		shmlimit_close(look(&after, "r"));
		is(after.set_unix_ns, before.set_unix_ns, "a second gate with %s leaves the rule alone", rates[i]);
	}
}

static int is_rate(const struct shmlimit_rule *a, const struct shmlimit_rule *b)
{
	return a->algorithm == b->algorithm && a->capacity == b->capacity && a->refill == b->refill &&
	       a->period_ns == b->period_ns;
}

/* Whatever a configuration changes a rate to, the rule in force is one of those that were written. */
static void never_mixed(void)
{
	static const char *const rates[] = { "rate=4/day",
		                             "rate=6/hour",
		                             "rate=\"4/day burst 9\"",
		                             "rate=4/day algorithm=window",
		                             "rate=6/hour algorithm=window",
		                             "rate=\"4 at once\"",
		                             "rate=\"6 at once for 1 hour\"" };
	enum { RATES = sizeof(rates) / sizeof(rates[0]) };
	struct shmlimit_rule rules[RATES], after;
	char spec[200];

	for (size_t from = 0; from < RATES; from++) {
		shmlimit_destroy(unit_name);
		snprintf(spec, sizeof(spec), "create=yes slots=64 rule=r %s", rates[from]);
		shmlimit_gate_close(gate_new(spec));
		shmlimit_close(look(&rules[from], "r"));
	}
	for (size_t from = 0; from < RATES; from++) {
		for (size_t to = 0; to < RATES; to++) {
			shmlimit_destroy(unit_name);
			snprintf(spec, sizeof(spec),
			         "create=yes slots=64 rule=room rate=9/s algorithm=window rule=r %s", rates[from]);
			shmlimit_gate_close(gate_new(spec));
			snprintf(spec, sizeof(spec), "create=yes rule=r %s", rates[to]);
			shmlimit_gate_close(gate_new(spec));
			shmlimit_close(look(&after, "r"));
			if (rules[from].algorithm == rules[to].algorithm)
				ok(is_rate(&after, &rules[to]), "%s becomes %s", rates[from], rates[to]);
			else
				ok(is_rate(&after, &rules[from]) || is_rate(&after, &rules[to]),
				   "%s is changed to %s as a whole, or not at all", rates[from], rates[to]);
		}
	}
}

/* A rule is protected if a configuration says so, or said so, or a hand did. */
static void protection(void)
{
	static const struct {
		const char *spec;
		uint32_t flags;
		const char *title;
	} steps[] = {
		{ "rule=r rate=5/day rule=p rate=5/day protected", 0, "a limit without the word protects no rule" },
		{ "rule=r rate=5/day protected", SHMLIMIT_RULE_PROTECTED, "the word protects a rule that was there" },
		{ "rule=r rate=6/day", SHMLIMIT_RULE_PROTECTED, "a rule stays protected without the word" },
	};
	struct shmlimit_rule rule;
	char spec[200];

	shmlimit_destroy(unit_name);
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		snprintf(spec, sizeof(spec), "create=yes slots=64 %s", steps[i].spec);
		shmlimit_gate_close(gate_new(spec));
		shmlimit_close(look(&rule, "r"));
		is(rule.flags, steps[i].flags, "%s", steps[i].title);
	}
	shmlimit_close(look(&rule, "p"));
	is(rule.flags, SHMLIMIT_RULE_PROTECTED, "the word protects a rule that is created");
	shmlimit_destroy(unit_name);
	shmlimit_gate_close(gate_new("create=yes slots=64 rule=r rate=\"2 at once\" protected cost=1 rule=r"));
	shmlimit_close(look(&rule, "r"));
	is(rule.flags, SHMLIMIT_RULE_PROTECTED, "places can be protected, by one limit of several");
	shmlimit_destroy(unit_name);
	shmlimit_gate_close(gate_new("create=yes slots=64 rule=r rate=5/day rule=r rate=5/day protected"));
	shmlimit_close(look(&rule, "r"));
	is(rule.flags, SHMLIMIT_RULE_PROTECTED, "the word of one limit protects the rule of another");
}

/* What cannot be created is reported, and the failure policy decides. */
/* How many of ten requests a new gate of this spec admits at once. */
static int admits(const char *spec)
{
	struct shmlimit_gate *g = gate_new(spec);
	int admitted = 0;

	for (int i = 0; i < 10; i++)
		admitted += ASK(g, "k", 0) == SHMLIMIT_ALLOWED;
	ok(gate_said == 0, "%s: nothing is reported", spec);
	shmlimit_gate_close(g);
	return admitted;
}

static void other_algorithm(void)
{
	shmlimit_destroy(unit_name);
	is(admits("create=yes slots=64 rule=a rate=\"5 at once for 1 day\""), 5, "five places are held");
	is(admits("create=yes rule=a rate=3/day"), 3, "a gate that begins with another algorithm gives it to the rule");
	is(admits("create=yes rule=a rate=4/day algorithm=window"), 4,
	   "a gate gives a window to a rule where there is room");
	is(admits("create=yes rule=a rate=2/day"), 2, "a gate gives a funnel to it again");
	is(admits("create=yes rule=a rate=2/day"), 0, "of which nothing is left for the next gate");
}

/*
 * A limit is added to a configuration, and the segment was made without room for it. With no `error` there is room. The
 * segment has two rules.
 */
static const struct {
	const char *added, *says;
	int error;
} additions[] = {
	{ "rule=other rate=1/day rule=new rate=5/day", "the segment has no room for another rule (rules-max 2)",
	  -EXFULL },
	{ "rule=other rate=1/day rule=new algorithm=window rate=5/day dry_run",
	  "the segment has no room for another rule (rules-max 2)", -EXFULL },
	{ "rule=new rate=\"65536 at once\"", NULL, 0 },
};

static void without_room(const char *policy, size_t i)
{
	const struct shmlimit_options two = { .struct_size = sizeof(two), .slots = 64, .rules = 2, .rules_max = 2 };
	int n = strncmp(additions[i].added, "rule=other", 10) == 0 ? 2 : 1, wrong = 0;
	struct shmlimit_info info = { .struct_size = sizeof(info) };
	struct shmlimit *l;
	struct shmlimit_gate *g;
	char spec[300];

	shmlimit_destroy(unit_name);
	l = unit_create("create", &two);
	snprintf(spec, sizeof(spec), "create=yes slots=64 %s rule=old rate=3/day %s", policy, additions[i].added);
	g = gate_new(spec);
	ok(gate_said == (additions[i].error != 0) &&
	           (gate_said == 0 || (strstr(gate_lines[0], "rule new: not in force: ") != NULL &&
	                               strstr(gate_lines[0], additions[i].says) != NULL)),
	   "%s: %s: what has no room is reported: %s", policy, additions[i].added, gate_lines[0]);
	for (int asked = 0; asked < 5; asked++) {
		wrong += ASK(g, "k", 0, n) != (asked < 3 ? SHMLIMIT_ALLOWED : SHMLIMIT_DENIED);
		wrong += answer.outcome != (asked >= 3                ? SHMLIMIT_GATE_REJECTED
		                            : additions[i].error != 0 ? SHMLIMIT_GATE_FAILED
		                                                      : SHMLIMIT_GATE_PASSED);
		wrong += asked < 3 && answer.error != additions[i].error;
	}
	is(wrong, 0, "the older limit is in force, and the outcome of what passes says what is not");
	is(ASK(g, "other", n), SHMLIMIT_ALLOWED, "a request that has only the new limit passes");
	shmlimit_gate_attach(g);
	shmlimit_info(l, &info);
	ok(info.undecided_passed == (additions[i].error != 0 ? 4u : 0) && info.undecided_refused == 0,
	   "the segment counts the requests that passed a limit which is not in force");
	is(gate_said, additions[i].error != 0, "another look reports nothing else");
	shmlimit_close(l);
	shmlimit_destroy(unit_name);
	shmlimit_gate_attach(g);
	if (additions[i].error != 0)
		ok(gate_said == 2 && gate_bad == 1 && strstr(gate_lines[1], "rule new: now in force") != NULL,
		   "that the limit is in force is reported when the segment was made again: %s", gate_lines[1]);
	is(ASK(g, "k", 0, n), SHMLIMIT_ALLOWED, "a request is decided in the segment that was made again");
	is(answer.outcome, SHMLIMIT_GATE_PASSED, "both limits decide there");
	shmlimit_gate_close(g);
}

/* group=NAME, of the group that this process has, or of another; "" if there is none. */
static const char *group_option(int own)
{
	static char text[2][100];
	struct group *group;

	setgrent();
	while ((group = getgrent()) != NULL && ((group->gr_gid == getegid()) != own || strlen(group->gr_name) > 40))
		;
	if (group != NULL)
		snprintf(text[own], sizeof(text[own]), "\"group=%s\"", group->gr_name);
	endgrent();
	return text[own];
}

/* Options are of a segment that is created: a gate that finds another one says so when it opens the segment. */
static void other_options(void)
{
	const char *own_group = group_option(1), *other_group = group_option(0);
	char group_says[100];
	const struct {
		const char *options, *says;
	} cases[] = {
		{ "slots=64 mode=0600", NULL },
		{ "slots=32", NULL },
		{ "slots=128", "it has 64 slots, and slots=128 does not change that (shmlimit grow)" },
		{ "mode=0660", "it has mode 0600, and mode=0660 does not change that" },
		{ own_group, NULL },
		{ other_group, group_says },
	};
	const struct shmlimit_options small = { .struct_size = sizeof(small), .slots = 64 };

	snprintf(group_says, sizeof(group_says), "it has the group %u, and group= does not change that",
	         (unsigned)getegid());
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int differs = cases[i].says != NULL && cases[i].options[0] != '\0';
		struct shmlimit_gate *g;
		char spec[200];

		shmlimit_destroy(unit_name);
		shmlimit_close(unit_create("create", &small));
		snprintf(spec, sizeof(spec), "create=yes %s rule=r rate=3/day", cases[i].options);
		g = gate_new(spec);
		ok(gate_said == differs && gate_bad == differs &&
		           (!differs || strstr(gate_lines[0], cases[i].says) != NULL),
		   "a gate with %s reports what a segment of 64 slots does not have: %s", cases[i].options,
		   differs ? gate_lines[0] : "nothing");
		is(ASK(g, "k", 0), SHMLIMIT_ALLOWED, "requests are decided in a segment with other options");
		shmlimit_gate_attach(g);
		is(gate_said, differs, "another look at a segment with other options reports nothing else");
		shmlimit_destroy(unit_name);
		shmlimit_gate_attach(g);
		/* Only root may give it any group. */
		is(gate_said, differs + (cases[i].options == other_group && geteuid() != 0),
		   "a gate reports no option of a segment that it creates itself");
		shmlimit_gate_close(g);
	}
}

static char compared[4][400];
static size_t offsets[4];

static void hear_difference(void *arg, size_t offset, const char *text)
{
	int *heard = arg;

	snprintf(compared[*heard % 4], sizeof(compared[0]), "%s", text);
	offsets[(*heard)++ % 4] = offset;
}

/*
 * The report on a spec, compared with a segment of 64 slots and 2 rules, one of which is `old`, with a capacity of 3.
 * `at` is the limit concerned.
 */
static void compares(void)
{
	static const struct {
		const char *words, *says, *at;
	} cases[] = {
		{ "create=yes slots=64 mode=0600 rule=old rate=3/day rule=new rate=5/day", NULL, NULL },
		{ "rule=old cost=3 rule=old peek cost=4 rule=absent peek", NULL, NULL },
		{ "create=yes slots=128 rule=old", "it has 64 slots, and slots=128 does not change that", NULL },
		{ "create=yes mode=0660 rule=old", "it has mode 0600, and mode=0660 does not change that", NULL },
		{ "rule=old rule=absent", "rule absent: no such rule: requests that need it are refused",
		  "rule=absent" },
		{ "fail=open rule=absent rule=absent", "requests that need it pass without a limit", "rule=absent" },
		{ "rule=old rule=old cost=4", "cost=4 is above its capacity of 3", "rule=old cost" },
		{ "create=yes rule=old rule=new rate=\"65536 at once\"", NULL, NULL },
		{ "create=yes rule=a rate=1/s rule=b rate=1/s",
		  "the segment has no room for another rule (rules-max 2)", "rule=b" },
	};
	const struct shmlimit_options two = { .struct_size = sizeof(two), .slots = 64, .rules = 2, .rules_max = 2 };
	struct shmlimit_info info = { .struct_size = sizeof(info) };
	struct shmlimit *l;
	char spec[300];
	int heard = 0;

	shmlimit_destroy(unit_name);
	snprintf(spec, sizeof(spec), "segment=%s create=yes rule=old rate=3/day", unit_name);
	is(shmlimit_gate_compare(spec, hear_difference, &heard), 0, "with create=yes a missing segment is no problem");
	snprintf(spec, sizeof(spec), "segment=%s rule=old", unit_name);
	is(shmlimit_gate_compare(spec, hear_difference, &heard), 1, "without create=yes a missing segment is one");
	ok(heard == 1 && strstr(compared[0], "no such segment") != NULL, "that is reported: %s", compared[0]);
	is(shmlimit_gate_compare("rule=old", hear_difference, &heard), -EINVAL, "a spec that is wrong is not compared");
	is(shmlimit_gate_compare(spec, NULL, NULL), -EINVAL, "a comparison needs a function to report to");
	l = unit_create("create", &two);
	unit_rule(l, "old", 3, 3, 86400 * SECOND);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *at;
		int lines;

		snprintf(spec, sizeof(spec), "segment=%s %s", unit_name, cases[i].words);
		at = cases[i].at != NULL ? strstr(spec, cases[i].at) : spec;
		heard = 0;
		lines = shmlimit_gate_compare(spec, hear_difference, &heard);
		ok(lines == heard && lines == (cases[i].says != NULL) &&
		           (lines == 0 ||
		            (strstr(compared[0], cases[i].says) != NULL && offsets[0] == (size_t)(at - spec))),
		   "%s: %s", cases[i].words, lines > 0 ? compared[0] : "there is nothing to report");
	}
	shmlimit_info(l, &info);
	is(info.rules_used, 1, "a comparison sets no rule");
	shmlimit_close(l);
}

/* The same of a delay, and of rules of each algorithm that were set by hand: `r`. */
static void compares_delays(void)
{
	static const struct {
		uint32_t algorithm;
		uint64_t max_wait_ns;
		const char *says;
	} cases[] = {
		{ SHMLIMIT_FUNNEL, 0,
		  "delay=5s is longer than its max-wait of 0s, so requests wait no longer than that" },
		{ SHMLIMIT_FUNNEL, 5 * SECOND - 1, "delay=5s is longer than its max-wait of 4.999999999s" },
		{ SHMLIMIT_FUNNEL, 5 * SECOND, NULL },
		{ SHMLIMIT_WINDOW, SECOND, "delay=5s is longer than its max-wait of 1s" },
		{ SHMLIMIT_GCRA, 6 * SECOND, NULL },
		{ SHMLIMIT_HOLD, 0, "rule r: requests cannot wait for it, as delay= wants" },
		{ SHMLIMIT_LEASE, 0, "rule r: requests cannot wait for it, as delay= wants" },
		{ SHMLIMIT_COUNTER, 0, "rule r: requests cannot wait for it, as delay= wants" },
	};
	const struct shmlimit_options eight = { .struct_size = sizeof(eight), .slots = 64 };
	char spec[300];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct shmlimit_rule rule = { .struct_size = sizeof(rule),
			                      .algorithm = cases[i].algorithm,
			                      .capacity = 3,
			                      .refill = cases[i].algorithm == SHMLIMIT_HOLD ? 0 : 3,
			                      .period_ns = 86400 * SECOND,
			                      .max_wait_ns = cases[i].max_wait_ns };
		struct shmlimit *l;
		int heard = 0, lines;

		shmlimit_destroy(unit_name);
		l = unit_create("create", &eight);
		unit_id(shmlimit_rule_set(l, "r", &rule));
		snprintf(spec, sizeof(spec), "segment=%s x_fields rule=r delay=5s", unit_name);
		lines = shmlimit_gate_compare(spec, hear_difference, &heard);
		ok(lines == heard && lines == (cases[i].says != NULL) &&
		           (lines == 0 || (strstr(compared[0], cases[i].says) != NULL &&
		                           offsets[0] == (size_t)(strstr(spec, "rule=r") - spec))),
		   "a delay of 5s, and a rule of algorithm %u that waits for %llu ns: %s", cases[i].algorithm,
		   (unsigned long long)cases[i].max_wait_ns, lines > 0 ? compared[0] : "there is nothing to report");
		shmlimit_close(l);
	}
}

/* Another process holds the segment's lock, for as long as that is open: then no rule is set. */
static int hold_lock(void)
{
	char path[SHMLIMIT_PATH_MAX];
	int fd;

	(void)shmlimit_path(unit_name, path);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || flock(fd, LOCK_EX) != 0)
		bail("flock: %s", strerror(errno));
	return fd;
}

static void cannot(void)
{
	struct shmlimit_gate *g;
	struct shmlimit *l;
	int lock;

	shmlimit_destroy(unit_name);
	l = unit_create("create", NULL);
	unit_rule(l, "f", 1, 1, SECOND);
	lock = hold_lock();
	g = gate_new("create=yes rule=f algorithm=window rate=5/s");
	ok(gate_said == 1 && strstr(gate_lines[0], "its new rate is refused, and the old one stays") != NULL,
	   "a rate that cannot be set is reported");
	ok(ASK(g, "k", 0) == SHMLIMIT_ALLOWED && ASK(g, "k", 0) == SHMLIMIT_DENIED, "the old one stays in force");
	is(answer.outcome, SHMLIMIT_GATE_REJECTED, "a request that the old rate denies is rejected, and did not fail");
	shmlimit_gate_attach(g);
	is(gate_said, 1, "another look at such a rule reports nothing else");
	close(lock);
	shmlimit_close(l);
	shmlimit_gate_attach(g);
	ok(gate_said == 2 && strstr(gate_lines[1], "its new rate is in force") != NULL,
	   "the end of it is reported when the rate was set");
	shmlimit_gate_close(g);
	shmlimit_destroy(unit_name);
	g = gate_new("rule=f");
	is(ASK(g, "k", 0), SHMLIMIT_DENIED, "without create=yes nothing is created");
	is(shmlimit_open(unit_name, 0, NULL, &l), -ENOENT, "at all");
	shmlimit_gate_close(g);
}

/* Limits of any size are set in a segment that was made for none of them; the keys keep what they have. */
static void any_size(void)
{
	struct shmlimit_info info = { .struct_size = sizeof(info) };
	struct shmlimit_gate *g;
	struct shmlimit *l;

	shmlimit_destroy(unit_name);
	l = unit_create("create",
	                &(struct shmlimit_options){ .struct_size = sizeof(struct shmlimit_options), .slots = 64 });
	unit_rule(l, "old", 3, 3, 86400 * SECOND);
	shmlimit_take(l, 0, "k", 1, 2, NULL);
	shmlimit_take(l, 0, "z", 1, 2, NULL);
	g = gate_new(
		"create=yes rule=old rate=3/day rule=places rate=\"20 at once\" rule=times rate=\"65536/day window\"");
	ok(gate_said == 0, "windows and places are set in a segment that had none: %s", gate_lines[0]);
	is(ASK(g, "k", 0, 1, 2), SHMLIMIT_ALLOWED, "a request has them all");
	is(ASK(g, "k", 0, 1, 2), SHMLIMIT_DENIED, "the older limit's key has what it had");
	shmlimit_gate_close(g);
	g = gate_new("create=yes rule=old rate=3/day rule=places rate=\"9000 at once\"");
	ok(gate_said == 0 && ASK(g, "k", 1) == SHMLIMIT_ALLOWED, "a limit becomes larger at once: %s", gate_lines[0]);
	is(shmlimit_info(l, &info), 0, "the segment is there");
	ok(info.slots == 64 && info.old_slots == 0, "its table is the same");
	shmlimit_gate_close(g);
	shmlimit_close(l);
}

/* A rule whose new rate is refused is removed by hand: the rate is in force no more than before. */
static void refused_then_removed(void)
{
	struct shmlimit *l;
	struct shmlimit_gate *g;
	int lock;

	shmlimit_destroy(unit_name);
	l = unit_create("create", NULL);
	unit_rule(l, "f", 1, 1, SECOND);
	lock = hold_lock();
	g = gate_new("create=yes rule=f algorithm=window rate=5/s");
	is(gate_said, 1, "a rate that cannot be set is reported");
	close(lock);
	shmlimit_rule_remove(l, "f");
	shmlimit_close(l);
	shmlimit_gate_attach(g);
	ok(gate_said == 2 && strstr(gate_lines[1], "its new rate is in force") != NULL,
	   "when the rule that could not get it is removed, it is made again with the rate");
	shmlimit_gate_close(g);
	shmlimit_destroy(unit_name);
}

int main(void)
{
	shmlimit_close(unit_create("create", NULL));
	shmlimit_destroy(unit_name);
	allowed = shared_memory(2 * sizeof(*allowed));
	failed = allowed + 1;
	races();
	created();
	changed();
	alike();
	never_mixed();
	protection();
	other_algorithm();
	for (size_t i = 0; i < sizeof(additions) / sizeof(additions[0]); i++) {
		without_room("fail=closed", i);
		without_room("fail=open", i);
	}
	other_options();
	compares();
	compares_delays();
	cannot();
	refused_then_removed();
	any_size();
	return tap_done();
}
