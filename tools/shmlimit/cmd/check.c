/*
 * check.c: shmlimit check: is a segment well? For Nagios, Icinga and all that run such checks: a
 * line with performance data, and the exit statuses of their plugins.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "about.h"
#include "atomic_file.h"
#include "escape.h"
#include "fail.h"
#include "named_segment.h"
#include "number_text.h"
#include "other_layout.h"
#include "print.h"
#include "rule_facts.h"
#include "many_hosts.h"
#include "shmlimit_lease.h"
#include "top_keys.h"
#include "value_parse.h"

#define INTERVAL_DEFAULT UINT64_C(1000000000)
#define INTERVAL_MAX (UINT64_C(86400) * 1000000000)
#define STATE_HEAD "shmlimit check 4"

/* Statuses of such plugins. */
enum { CHECK_OK, CHECK_WARNING, CHECK_CRITICAL, CHECK_UNKNOWN };

static const char *const words[] = { "OK", "WARNING", "CRITICAL", "UNKNOWN" };

/* What can have a limit, in the order of the options; then what is only told. */
enum {
	DENIED,
	EVICTIONS,
	NO_SLOT,
	BACKEND_ERRORS,
	BREAKER_OPENINGS,
	ON_FAILURE,
	UNDECIDED,
	UNREGISTERED,
	LIMITS,
	ALLOWED = LIMITS,
	FACTS
};
enum { RULE = LIMITS, INTERVAL, STATE };

static const struct command_option options[] = {
	[DENIED] = { "max-denied", "LIMIT", "decisions denied" },
	[EVICTIONS] = { "max-evictions", "LIMIT", "keys that lost their slot before they were full again" },
	[NO_SLOT] = { "max-no-slot", "LIMIT", "decisions made without a slot" },
	[BACKEND_ERRORS] = { "max-backend-errors", "LIMIT", "calls to a Redis server that failed" },
	[BREAKER_OPENINGS] = { "max-breaker-openings", "LIMIT", "times that the circuit breaker opened" },
	[ON_FAILURE] = { "max-on-failure", "LIMIT", "requests that on_failure decided, without a Redis server" },
	[UNDECIDED] = { "max-undecided", "LIMIT", "requests of servers that a limit could not decide" },
	[UNREGISTERED] = { "max-unregistered", "LIMIT",
	                   "places that were not bound to their process, for want of room" },
	[RULE] = { "rule", "RULE", "decisions, evictions, slots and on_failure of this rule only" },
	[INTERVAL] = { "interval", "DURATION", "count for this long (default 1s)" },
	[STATE] = { "state", "FILE", "count since the last check that had this file, without waiting" },
	{ 0 },
};

static const char *const labels[FACTS] = { "denied",         "evictions",        "no_slot",
	                                   "backend_errors", "breaker_openings", "on_failure",
	                                   "undecided",      "unregistered",     "allowed" };

/* More than `warning` is a warning; UINT64_MAX: nothing is. */
struct limit {
	uint64_t warning, critical;
};

struct sample {
	uint64_t created_unix_ns, unix_ns;
	uint64_t fact[FACTS];
};

struct check {
	const char *name;
	struct limit limit[LIMITS];
	const char *rule;
	uint64_t interval_ns;
};

/* "CRITICAL" or "WARNING,CRITICAL". */
static int limit_parse(const char *what, const char *text, struct limit *limit)
{
	const char *comma = strchr(text, ',');
	char first[TEXT_LEN];
	int status;

	limit->warning = UINT64_MAX;
	if (comma == NULL)
		return number_parse(what, text, 0, UINT64_MAX - 1, &limit->critical);
	snprintf(first, sizeof(first), "%.*s", (int)(comma - text), text);
	status = number_parse(what, first, 0, UINT64_MAX - 1, &limit->warning);
	if (status == STATUS_OK)
		status = number_parse(what, comma + 1, 0, UINT64_MAX - 1, &limit->critical);
	if (status == STATUS_OK && limit->warning > limit->critical)
		return fail("%s %s: the first number, of a warning, must not be above the second", what, text);
	return status;
}

static int parse(const struct call *call, struct check *check)
{
	int status = STATUS_OK;

	for (int i = 0; i < LIMITS && status == STATUS_OK; i++) {
		char what[TEXT_LEN];

		check->limit[i] = (struct limit){ UINT64_MAX, UINT64_MAX };
		snprintf(what, sizeof(what), "--%s", options[i].name);
		if (call->option[i] != NULL)
			status = limit_parse(what, call->option[i], &check->limit[i]);
	}
	if (status == STATUS_OK && call->option[INTERVAL] != NULL && call->option[STATE] != NULL)
		return fail("--interval and --state cannot be combined");
	if (status == STATUS_OK && call->option[INTERVAL] != NULL)
		status = duration_parse("--interval", call->option[INTERVAL], &check->interval_ns);
	if (status == STATUS_OK && (check->interval_ns == 0 || check->interval_ns > INTERVAL_MAX))
		return fail("--interval %s: must be more than 0, and 1d or less", call->option[INTERVAL]);
	return status;
}

/* ---- what there is ---- */

/* Of one rule, or of all (-1). */
static uint64_t on_failure_count(struct shmlimit *limiter, int rule)
{
	struct shmlimit_info info = { .struct_size = sizeof(info) };
	uint64_t sum = 0;

	if (rule >= 0)
		return many_hosts_failures(limiter, rule);
	shmlimit_info(limiter, &info);
	for (uint32_t id = 0; id < info.rules; id++)
		sum += many_hosts_failures(limiter, (int)id);
	return sum;
}

/* Is there a server that the host's agent cannot ask now? *out is the first. */
static int server_fails(struct shmlimit *limiter, struct shmlimit_global_server *out)
{
	for (unsigned place = 0; has_many_hosts() && place < SHMLIMIT_GLOBAL_SERVERS; place++) {
		*out = (struct shmlimit_global_server){ .struct_size = sizeof(*out) };
		if (shmlimit_global_server(limiter, place, out) != 0)
			return 0;
		if (out->failing)
			return 1;
	}
	return 0;
}

/*
 * Did requests get no answer by their deadline, and is the backend further away than the default
 * one?
 */
static int backend_is_far(struct shmlimit *limiter, uint64_t undecided, struct shmlimit_global_status *out)
{
	*out = (struct shmlimit_global_status){ .struct_size = sizeof(*out) };
	return undecided != 0 && has_many_hosts() && shmlimit_global_status(limiter, out) == 0 && out->serving &&
	       out->round_trip_ns >= DEADLINE_DEFAULT_NS;
}

/*
 * Is there a rule whose last change a program was refused, or is this one such? Its name is *name
 * then.
 */
static int rule_is_refused(struct shmlimit *limiter, const char *only, char name[SHMLIMIT_RULE_NAME_MAX + 1])
{
	struct shmlimit_info info = { .struct_size = sizeof(info) };

	shmlimit_info(limiter, &info);
	for (uint32_t id = 0; id < info.rules; id++) {
		struct shmlimit_rule rule = { .struct_size = sizeof(rule) };

		if (shmlimit_rule_get(limiter, (int)id, &rule) == 0 && rule.refused_unix_ns != 0 &&
		    shmlimit_rule_name(limiter, (int)id, name) == 0 && (only == NULL || strcmp(name, only) == 0))
			return 1;
	}
	return 0;
}

/*
 * Does the rule find its number? Then *set is the rule, and *busiest the key that holds most
 * places, of number 0 if no key has a number.
 */
static int finds_number(struct shmlimit *limiter, const char *rule, struct shmlimit_rule *set, struct top_key *busiest)
{
	struct shmlimit_info info = { .struct_size = sizeof(info) };
	struct top_keys keys = { 0 };
	int id = rule != NULL ? shmlimit_rule_find(limiter, rule) : -1;

	*set = (struct shmlimit_rule){ .struct_size = sizeof(*set) };
	if (id < 0 || shmlimit_rule_get(limiter, id, set) != 0 || set->law == 0)
		return 0;
	shmlimit_info(limiter, &info);
	keys.rule = id;
	keys.busiest = calloc(info.rules, sizeof(*keys.busiest));
	if (keys.busiest == NULL || top_keys_scan(limiter, 0, info.slots + info.old_slots, &keys) != STATUS_OK) {
		free(keys.busiest);
		return 0;
	}
	*busiest = keys.busiest[id];
	free(keys.busiest);
	return 1;
}

/* 0 or -errno: -ESRCH there is no such rule. */
static int sample_take(struct shmlimit *limiter, const char *rule, struct sample *sample)
{
	struct shmlimit_info info = { .struct_size = sizeof(info) };
	struct shmlimit_counters c = { .struct_size = sizeof(c) };
	struct shmlimit_lease_counters lease = { .struct_size = sizeof(lease) };
	int id = rule != NULL ? shmlimit_rule_find(limiter, rule) : 0;
	struct timespec now;

	if (id < 0)
		return id;
	shmlimit_info(limiter, &info);
	if (rule != NULL)
		shmlimit_counters(limiter, id, &c);
	else
		rule_counters_all(limiter, &c);
	shmlimit_lease_counters(limiter, &lease);
	clock_gettime(CLOCK_REALTIME, &now);
	*sample = (struct sample){
		.created_unix_ns = info.created_unix_ns,
		.unix_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec,
		.fact = {
			[DENIED] = c.denied,
			[EVICTIONS] = c.evictions,
			[NO_SLOT] = c.no_slot,
			[BACKEND_ERRORS] = lease.backend_errors,
			[BREAKER_OPENINGS] = lease.breaker_openings,
			[ON_FAILURE] = on_failure_count(limiter, rule != NULL ? id : -1),
			[UNDECIDED] = info.undecided_passed + info.undecided_refused,
			[UNREGISTERED] = info.unregistered,
			[ALLOWED] = c.allowed,
		},
	};
	return 0;
}

/* What was counted between the two. The counters of a new segment or rule begin at 0. */
static void subtract(const struct sample *before, struct sample *now)
{
	for (int i = 0; i < FACTS; i++)
		if (before->created_unix_ns == now->created_unix_ns && now->fact[i] >= before->fact[i])
			now->fact[i] -= before->fact[i];
}

/* ---- the state that a check leaves to the next one ---- */

/* Returns 1, or 0: there is none yet, or -1: it cannot be read, or is something else. */
static int state_read(const char *path, struct sample *sample)
{
	FILE *from = fopen(path, "re");
	int fields;

	if (from == NULL)
		return errno == ENOENT ? 0 : -1;
	fields = fscanf(from, STATE_HEAD " %" SCNu64 " %" SCNu64, &sample->created_unix_ns, &sample->unix_ns);
	for (int i = 0; i < FACTS && fields == 2 + i; i++)
		fields += fscanf(from, "%" SCNu64, &sample->fact[i]) == 1;
	fclose(from);
	return fields == 2 + FACTS ? 1 : -1;
}

static int state_write(const char *path, const struct sample *sample)
{
	struct atomic_file file;
	int status = atomic_file_open(&file, path);

	if (status != STATUS_OK)
		return status;
	fprintf(file.to, STATE_HEAD "\n%" PRIu64 " %" PRIu64, sample->created_unix_ns, sample->unix_ns);
	for (int i = 0; i < FACTS; i++)
		fprintf(file.to, " %" PRIu64, sample->fact[i]);
	putc('\n', file.to);
	return atomic_file_commit(&file);
}

/* ---- what is printed ---- */

/* A bar begins performance data. */
static void print_name(const char *name)
{
	char one[ESCAPE_ONE_LEN];

	for (size_t n, len = strlen(name); len > 0; name += n, len -= n) {
		n = escape_one(one, name, len, 0);
		fputs(strcmp(one, "|") == 0 ? "\\x7c" : one, stdout);
	}
}

static void print_head(int found, const char *name)
{
	printf("SHMLIMIT %s - segment ", words[found]);
	print_name(name);
}

static int print_reason(int found, const char *name, const char *reason)
{
	print_head(found, name);
	printf(": %s\n", reason);
	return found;
}

static int level(const struct limit *limit, uint64_t value)
{
	if (limit->critical != UINT64_MAX && value > limit->critical)
		return CHECK_CRITICAL;
	return limit->warning != UINT64_MAX && value > limit->warning ? CHECK_WARNING : CHECK_OK;
}

static void print_limit(uint64_t limit)
{
	putchar(';');
	if (limit != UINT64_MAX)
		printf("%" PRIu64, limit);
}

static void print_data(const struct check *check, const struct sample *counted)
{
	fputs(" |", stdout);
	for (int i = 0; i < FACTS; i++) {
		printf(" %s=%" PRIu64, labels[i], counted->fact[i]);
		print_limit(i < LIMITS ? check->limit[i].warning : UINT64_MAX);
		print_limit(i < LIMITS ? check->limit[i].critical : UINT64_MAX);
		fputs(";0", stdout);
	}
}

/* Those that are above a limit, or that all is well. */
static int report(const struct check *check, struct shmlimit *limiter, const struct sample *counted, uint64_t span_ns)
{
	struct shmlimit_info info = { .struct_size = sizeof(info) };
	struct shmlimit_global_server server;
	struct shmlimit_global_status agent;
	struct shmlimit_rule set;
	struct top_key busiest;
	uint64_t decisions;
	char rule[SHMLIMIT_RULE_NAME_MAX + 1];
	int fails = server_fails(limiter, &server), refused = rule_is_refused(limiter, check->rule, rule), found,
	    enabled, far, finds;
	uint32_t other = other_layout(check->name);
	char span[TEXT_LEN];

	shmlimit_info(limiter, &info);
	enabled = info.enabled != 0;
	far = !fails && backend_is_far(limiter, counted->fact[ON_FAILURE], &agent);
	found = fails                                                  ? CHECK_CRITICAL
	        : enabled && !refused && info.slots_asked == 0 && !far ? CHECK_OK
	                                                               : CHECK_WARNING;
	for (int i = 0; i < LIMITS; i++)
		if (level(&check->limit[i], counted->fact[i]) > found)
			found = level(&check->limit[i], counted->fact[i]);
	print_head(found, check->name);
	if (check->rule != NULL)
		printf(" rule %s", check->rule);
	fputs(enabled ? ":" : ": disabled, every decision answers allowed;", stdout);
	if (fails) {
		fputs(" the backend ", stdout);
		print_name(server.name);
		fputs(" does not answer,", stdout);
	}
	if (far)
		printf(" the backend takes %s to answer, too long for requests with a shorter deadline (default 50ms),",
		       duration_about(span, agent.round_trip_ns));
	if (refused) {
		fputs(" rule ", stdout);
		print_name(rule);
		fputs(" was refused another limit and keeps the old one,", stdout);
	}
	if (info.slots_asked != 0)
		printf(" %" PRIu64 " slots, since /dev/shm had no room for %" PRIu64 " (shmlimit grow),", info.slots,
		       info.slots_asked);
	for (int i = 0; i < LIMITS; i++)
		if (level(&check->limit[i], counted->fact[i]) != CHECK_OK)
			printf(" %s %" PRIu64 ",", labels[i], counted->fact[i]);
	decisions = counted->fact[ALLOWED] + counted->fact[DENIED];
	printf("%s %" PRIu64 " decision%s in %s", found == CHECK_OK ? " healthy," : "", decisions,
	       decisions == 1 ? "" : "s", duration_text(span, span_ns / 1000000 * 1000000));
	finds = finds_number(limiter, check->rule, &set, &busiest) && busiest.number != 0;
	if (finds)
		printf(", %" PRIu32 " places now", busiest.number);
	if (other != 0) {
		printf("; another shmlimit left a segment of layout version %" PRIu32
		       ": once no process uses it, shmlimit destroy ",
		       other);
		print_name(check->name);
		printf(" --layout %" PRIu32, other);
	}
	print_data(check, counted);
	if (finds)
		printf(" places=%" PRIu32 ";;;%" PRIu32 ";%" PRIu64, busiest.number, set.least, set.capacity);
	putchar('\n');
	return found;
}

/* A segment that is missing, or cannot be opened, does its work no more. */
static int report_error(const struct check *check, int error)
{
	uint32_t other = error == -ENOENT ? other_layout(check->name) : 0;
	char text[TEXT_LEN];

	return print_reason(error == -EACCES || error == -EPERM || error == -ENOMEM ? CHECK_UNKNOWN : CHECK_CRITICAL,
	                    check->name,
	                    other != 0        ? other_layout_text(text, other)
	                    : error == -ESRCH ? "the rule is missing"
	                                      : shmlimit_strerror(error));
}

/* ---- a check ---- */

/*
 * From the last check, or for an interval from now. Returns 1, 0: this is the first check, or -1:
 * it was said.
 */
static int sample_before(const struct check *check, struct shmlimit *limiter, const char *state, struct sample *before)
{
	struct timespec until;
	int found;

	if (state != NULL) {
		errno = 0;
		found = state_read(state, before);
		if (found < 0)
			print_reason(CHECK_UNKNOWN, check->name,
			             errno == ENOMEM ? shmlimit_strerror(-ENOMEM)
			                             : "its state file cannot be read, or is none");
		return found;
	}
	(void)sample_take(limiter, check->rule, before);
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += (time_t)(check->interval_ns / 1000000000);
	until.tv_nsec += (long)(check->interval_ns % 1000000000);
	if (until.tv_nsec >= 1000000000) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000;
	}
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
		;
	return 1;
}

static int look(const struct check *check, struct shmlimit *limiter, const char *state)
{
	struct sample before = { 0 }, now;
	int error = sample_take(limiter, check->rule, &now), since;

	if (error < 0)
		return report_error(check, error);
	since = sample_before(check, limiter, state, &before);
	if (since < 0)
		return CHECK_UNKNOWN;
	error = sample_take(limiter, check->rule, &now);
	if (error < 0)
		return report_error(check, error);
	if (state != NULL && state_write(state, &now) != STATUS_OK)
		return print_reason(CHECK_UNKNOWN, check->name, "its state file cannot be written");
	if (since == 0)
		before = now;
	subtract(&before, &now);
	return report(check, limiter, &now, now.unix_ns > before.unix_ns ? now.unix_ns - before.unix_ns : 0);
}

static int run(const struct call *call)
{
	struct check check = { .name = call->operand[0], .rule = call->option[RULE], .interval_ns = INTERVAL_DEFAULT };
	struct shmlimit *limiter;
	int found, error, status = parse(call, &check);

	if (status != STATUS_OK)
		return CHECK_UNKNOWN;
	/*
	 * Only a process that may write to the segment sees its agent and what on_failure decided.
	 */
	error = segment_try(check.name, 0, &limiter);
	if (error == -EACCES || error == -EROFS) {
		if (call->option[ON_FAILURE] != NULL)
			return print_reason(CHECK_UNKNOWN, check.name,
			                    "on_failure is counted where only a user that may write to it can read");
		error = segment_try(check.name, SHMLIMIT_OPEN_READ_ONLY, &limiter);
	}
	if (error < 0)
		return report_error(&check, error);
	found = look(&check, limiter, call->option[STATE]);
	shmlimit_close(limiter);
	return found;
}

const struct command command_check = {
	.name = "check",
	.operands = "NAME",
	.purpose = "check a segment's health, as a plugin for Nagios or Icinga",
	.details =
		"Prints a line with performance data. The exit status is 0 if all is well, 1 for a warning, 2 if a state\n"
		"is critical, and 3 if it is unknown, also after a wrong option. A missing segment is critical, and so is a Redis server that the\n"
		"host's agent cannot reach. A disabled segment is a warning, and so is a rule that keeps its old limit\n"
		"because a program was refused another one, or a table that is smaller than a program asked for, since\n"
		"/dev/shm had too little room. The line also names segments that another version of\n"
		"shmlimit left under the name. Changes nothing.\n"
		"LIMIT is N (more than N is critical), or N,M (more than N is a warning, more than M is critical), of what\n"
		"happened in the interval, or since the last check.\n",
	.options = options,
	.run = run,
	.misused = CHECK_UNKNOWN,
};
