/*
 * hold.c: shmlimit hold: run a command while it holds a place, as flock(1) does with a lock.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "about.h"
#include "command.h"
#include "decision.h"
#include "duration.h"
#include "fail.h"
#include "key_form.h"
#include "key_option.h"
#include "monotonic.h"
#include "named_segment.h"
#include "rule_facts.h"
#include "value_parse.h"

#define MS UINT64_C(1000000)
/*
 * A place that is left wakes no process: while the command waits for a place, it asks this often.
 */
#define ASK_AGAIN_NS (20 * MS)
/* A place is renewed when a third of its period is over, so that two renewals may be late. */
#define RENEWALS 3
#define LEVELS 2 /* --of, and the key's own */
#define SHARE_MAX UINT64_C(1000000)

enum { SEGMENT, RULE, KEY, COMMAND };
enum { WAIT, DENIED_STATUS, LIMIT, SHARE, OF };

static const struct command_option options[] = {
	[WAIT] = { "wait", "DURATION", "longest wait for a place: 2s, 500ms (default 0)" },
	[DENIED_STATUS] = { "denied-status", "N", "exit with N if there was no place, 0 to 255 (default 1)" },
	[LIMIT] = { "limit", "PLACES", "enter by this limit: '20 at once' (default and most: the rule's capacity)" },
	[SHARE] = { "share", "N", "hold at most N times the places that are free in --of: 4, 0.5" },
	[OF] = { "of", "RULE[=KEY]", "the limit that --share is of; a place of it is held too (KEY: all)" },
	KEY_OPTION_ROWS,
	KEY_PREFIX_ROW,
	{ 0 },
};

struct holder {
	const struct call *call;
	struct shmlimit *limiter;
	char of[SHMLIMIT_RULE_NAME_MAX + 1]; /* the rule of --of */
	struct key key, of_key;
	uint64_t wait_ns, denied_status;
	struct shmlimit_limit limit; /* --limit, if its struct_size is set */
	/* those of --of, if it is given, and of the key: the last */
	size_t n, denied_by;
	struct shmlimit_request asked[LEVELS];
	struct shmlimit_place places[LEVELS];
	struct shmlimit_result results[LEVELS];
	sigset_t awaited, before; /* signals that this process waits for; its mask when it began */
	pid_t child;              /* that runs the command */
	uint64_t entered_ns;      /* by monotonic_ns() */
	int is_lost;              /* the command has no place, and it was said */
};

/* All, or none. */
static int enter(struct holder *h)
{
	for (size_t i = 0; i < h->n; i++) {
		h->places[i] = (struct shmlimit_place){ .struct_size = sizeof(h->places[i]) };
		h->asked[i].place = &h->places[i];
	}
	h->entered_ns = monotonic_ns();
	h->denied_by = h->n - 1;
	if (h->n == 1)
		return shmlimit_decide(h->limiter, SHMLIMIT_TAKE, h->asked, h->results);
	return shmlimit_take_all(h->limiter, h->asked, h->n, &h->denied_by, h->results);
}

static void leave(const struct holder *h)
{
	for (size_t i = h->n; i-- > 0;)
		(void)shmlimit_leave(h->limiter, h->asked[i].rule, h->asked[i].key, h->asked[i].key_len, &h->places[i]);
}

static const char *rule_of(const struct holder *h, size_t i)
{
	return i + 1 < h->n ? h->of : h->call->operand[RULE];
}

/* ---- Signals ---- */

/*
 * Those that would end the process, except those that its parent made it ignore, as nohup does; and
 * SIGCHLD.
 */
static void block_signals(struct holder *h)
{
	static const int ending[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM };
	struct sigaction old;

	signal(SIGCHLD, SIG_DFL);
	sigemptyset(&h->awaited);
	sigaddset(&h->awaited, SIGCHLD);
	for (size_t i = 0; i < sizeof(ending) / sizeof(ending[0]); i++)
		if (sigaction(ending[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
			sigaddset(&h->awaited, ending[i]);
	sigprocmask(SIG_BLOCK, &h->awaited, &h->before);
}

/* Returns the signal that came, or 0 when the time is over. */
static int await(const struct holder *h, uint64_t ns, siginfo_t *info)
{
	struct timespec left = { (time_t)(ns / (1000 * MS)), (long)(ns % (1000 * MS)) };
	int number = sigtimedwait(&h->awaited, info, &left);

	return number > 0 ? number : 0;
}

/* ---- The command ---- */

static void become(const struct holder *h)
{
	char **command = h->call->operand + COMMAND;

	signal(SIGPIPE, SIG_DFL);
	signal(SIGXFSZ, SIG_DFL);
	sigprocmask(SIG_SETMASK, &h->before, NULL);
	execvp(command[0], command);
	fail("%s: %s", command[0], strerror(errno));
	_exit(errno == ENOENT ? STATUS_NOT_FOUND : STATUS_CANNOT_RUN);
}

/*
 * The place is the command's, and not this process's: if this one is killed, the command goes on,
 * and its place is not to be given away. A place that cannot be bound ends with its period, and is
 * renewed.
 */
static void bind_to_child(struct holder *h)
{
	for (size_t i = 0; i < h->n; i++) {
		const struct shmlimit_request *asked = &h->asked[i];
		int error = shmlimit_bind(h->limiter, asked->rule, asked->key, asked->key_len, &h->places[i],
		                          (uint32_t)h->child);

		/* -ECHILD: it has ended already. -ETIME: keep() reports that. */
		if (error != 0 && error != -ECHILD && error != -ETIME)
			fail("rule %s: the place is not bound to the command: %s: if hold is killed, it ends with its period",
			     rule_of(h, i), shmlimit_strerror(error));
	}
}

static void renew(struct holder *h)
{
	int is_lost = h->is_lost;

	for (size_t i = 0; i < h->n; i++)
		is_lost |= shmlimit_renew(h->limiter, h->asked[i].rule, h->asked[i].key, h->asked[i].key_len,
		                          &h->places[i]) == -ETIME;
	if (!is_lost)
		return;
	/*
	 * It was reset or evicted, or this process did not run for a period: another place will do.
	 */
	leave(h);
	if (enter(h) == SHMLIMIT_ALLOWED) {
		h->is_lost = 0;
		bind_to_child(h);
		return;
	}
	if (h->is_lost)
		return;
	h->is_lost = 1;
	fail("rule %s: the place was lost, and all are held: the command goes on without one", h->call->operand[RULE]);
}

static void report_end(struct holder *h, uint64_t period_ns)
{
	char after[DURATION_TEXT_MAX];

	h->is_lost = 1;
	fail("rule %s: the place ended after %s: the command goes on without one", h->call->operand[RULE],
	     duration_text(after, period_ns));
}

/*
 * Does what is due for the place: a renewal, if is_due says so, or, where the rule cuts places off,
 * a message when that has happened. Returns in how long to call it again.
 */
static uint64_t keep(struct holder *h, int is_due)
{
	struct shmlimit_rule rule = { .struct_size = sizeof(rule) };
	uint64_t passed_ns = monotonic_ns() - h->entered_ns;

	if (shmlimit_rule_get(h->limiter, h->asked[h->n - 1].rule, &rule) != 0)
		return 1000 * MS;
	if ((rule.flags & SHMLIMIT_RULE_CUT_OFF) == 0) {
		if (is_due)
			renew(h);
		return rule.period_ns / RENEWALS + 1;
	}
	if (passed_ns <= rule.period_ns)
		return rule.period_ns - passed_ns + MS;
	if (!h->is_lost)
		report_end(h, rule.period_ns);
	return 3600 * 1000 * MS;
}

/*
 * Keeps the place until the child has ended; forwards signals that were sent to this process alone.
 * Returns the exit status.
 */
static int watch(struct holder *h)
{
	uint64_t next_ns = keep(h, 0);
	siginfo_t info;
	int status;

	for (;;) {
		int number = await(h, next_ns, &info);

		if (number == 0)
			next_ns = keep(h, 1);
		else if (number != SIGCHLD && info.si_code == SI_USER)
			kill(h->child, number); /* a terminal's go to the child too */
		if (waitpid(h->child, &status, WNOHANG) == h->child)
			return WIFSIGNALED(status) ? STATUS_SIGNAL + WTERMSIG(status) : WEXITSTATUS(status);
	}
}

/*
 * The command runs when its places are its own, and not at all if this process is killed before.
 * Returns -1 with errno, or 0.
 */
static int begin(struct holder *h)
{
	char byte = 0;
	int bound[2];

	if (pipe2(bound, O_CLOEXEC) != 0)
		return -1;
	h->child = fork();
	if (h->child == 0) {
		close(bound[1]);
		if (read(bound[0], &byte, 1) == 1)
			become(h);
		_exit(STATUS_CANNOT_RUN);
	}
	if (h->child > 0) {
		bind_to_child(h);
		(void)!write(bound[1], &byte, 1);
	}
	close(bound[0]);
	close(bound[1]);
	return h->child > 0 ? 0 : -1;
}

static int run_held(struct holder *h)
{
	int status;

	if (begin(h) == 0) {
		status = watch(h);
	} else {
		fail("%s: %s", h->call->operand[COMMAND], strerror(errno));
		status = STATUS_CANNOT_RUN;
	}
	leave(h);
	return status;
}

/* ---- The place ---- */

/* As shmlimit_enter(), after a wait; *number is the signal that ended it, or 0. */
static int enter_in_time(struct holder *h, int *number)
{
	uint64_t began_ns = monotonic_ns(), passed_ns = 0;
	int answer = enter(h);

	*number = 0;
	while (answer == SHMLIMIT_DENIED && passed_ns < h->wait_ns && *number == 0) {
		uint64_t rest_ns = h->wait_ns - passed_ns;
		siginfo_t ignored;

		*number = await(h, rest_ns < ASK_AGAIN_NS ? rest_ns : ASK_AGAIN_NS, &ignored);
		if (*number == SIGCHLD)
			*number = 0; /* of a child that this process was started with */
		answer = *number != 0 ? answer : enter(h);
		passed_ns = monotonic_ns() - began_ns;
	}
	return answer;
}

static int deny(const struct holder *h)
{
	const struct shmlimit_request *asked = &h->asked[h->denied_by];
	uint64_t limit = h->results[h->denied_by].limit, left_ns;
	const char *rule = rule_of(h, h->denied_by);
	struct shmlimit_rule set = { .struct_size = sizeof(set) };
	char left[TEXT_LEN];

	(void)shmlimit_rule_get(h->limiter, asked->rule, &set);

	if (shmlimit_paused(h->limiter, asked->rule, asked->key, asked->key_len, &left_ns) == SHMLIMIT_DENIED)
		fail("rule %s: denied, and not run: the key is paused for %s", rule, duration_about(left, left_ns));
	else if (asked->share != 0)
		fail("rule %s: denied, and not run: the key's share of rule %s is %" PRIu64 " now, and held", rule,
		     h->of, limit);
	else if (limit == 0)
		fail("rule %s: denied, and not run: it is blocked", rule);
	else if (asked->limit != NULL)
		fail("rule %s: denied, and not run: %" PRIu64 " or more places are held", rule, limit);
	else if (limit == 1)
		fail("rule %s: denied, and not run: %s is held", rule,
		     set.law != 0 ? "the one place that there is now" : "its only place");
	else
		fail("rule %s: denied, and not run: all %" PRIu64 " places%s are held", rule, limit,
		     set.law != 0 ? " that there are now" : "");
	return (int)h->denied_status;
}

static int hold(struct holder *h)
{
	int number, answer, status = STATUS_NOT_TRIED;

	block_signals(h);
	answer = enter_in_time(h, &number);
	if (answer == -EOPNOTSUPP && h->limit.struct_size != 0 && h->limit.flags == 0)
		fail("--limit %s: must be a number of places, such as '20 at once'", h->call->option[LIMIT]);
	else if (answer == -EOPNOTSUPP)
		fail("rule %s: has no places: must be set with --algorithm hold", rule_of(h, h->denied_by));
	else if (answer < 0)
		fail_rule(h->call->operand[SEGMENT], rule_of(h, h->denied_by), answer);
	else if (answer == SHMLIMIT_DENIED)
		status = number == 0 ? deny(h) : STATUS_NOT_TRIED;
	else
		status = run_held(h);
	if (answer == SHMLIMIT_DENIED && number != 0)
		raise(number); /* blocked: it is let through here */
	sigprocmask(SIG_SETMASK, &h->before, NULL);
	return status;
}

/* The rule and the key of --of. Returns a status. */
static int read_of(struct holder *h)
{
	const char *text = h->call->option[OF], *key = strchr(text, '=');
	size_t length = key != NULL ? (size_t)(key - text) : strlen(text);

	if (length == 0 || length > SHMLIMIT_RULE_NAME_MAX)
		return fail("--of %s: must be RULE or RULE=KEY", text);
	memcpy(h->of, text, length);
	h->of[length] = '\0';
	return key_text_parse(key != NULL ? key + 1 : "all", &h->of_key);
}

/* Returns a status. */
static int read_share(struct holder *h)
{
	if ((h->call->option[SHARE] == NULL) != (h->call->option[OF] == NULL))
		return fail("--share and --of: each needs the other");
	h->n = 1;
	if (h->call->option[SHARE] == NULL)
		return STATUS_OK;
	h->n = LEVELS;
	if (thousandths_parse("--share", h->call->option[SHARE], SHARE_MAX, &h->asked[1].share) != STATUS_OK)
		return STATUS_ERROR;
	return read_of(h);
}

/* Returns a status. */
static int find_rules(struct holder *h)
{
	struct key *keys[LEVELS] = { h->n == LEVELS ? &h->of_key : &h->key, &h->key };

	for (size_t i = 0; i < h->n; i++) {
		int rule, status = rule_find(h->limiter, h->call->operand[SEGMENT], rule_of(h, i), &rule);

		if (status != STATUS_OK)
			return status;
		key_choose(h->limiter, rule, keys[i]);
		h->asked[i].rule = rule;
		h->asked[i].key = keys[i]->bytes;
		h->asked[i].key_len = keys[i]->len;
		h->asked[i].cost = 1;
	}
	if (h->limit.struct_size != 0)
		h->asked[h->n - 1].limit = &h->limit;
	return STATUS_OK;
}

static int run(const struct call *call)
{
	struct holder h = { .call = call, .denied_status = STATUS_NO };
	int status = key_parse(call, call->operand[KEY], &h.key);

	if (status == STATUS_OK && call->option[WAIT] != NULL)
		status = duration_parse("--wait", call->option[WAIT], &h.wait_ns);
	if (status == STATUS_OK && call->option[DENIED_STATUS] != NULL)
		status = number_parse("--denied-status", call->option[DENIED_STATUS], 0, 255, &h.denied_status);
	if (status == STATUS_OK)
		status = limit_option_read(call, &h.limit);
	if (status == STATUS_OK)
		status = read_share(&h);
	if (status == STATUS_OK)
		status = segment_open(call->operand[SEGMENT], 0, &h.limiter);
	if (status != STATUS_OK)
		return STATUS_NOT_TRIED;
	status = STATUS_NOT_TRIED;
	if (find_rules(&h) == STATUS_OK)
		status = hold(&h);
	shmlimit_close(h.limiter);
	return status;
}

const struct command command_hold = {
	.name = "hold",
	.operands = "NAME RULE KEY COMMAND...",
	.purpose = "run a command while it holds a place",
	.details =
		"Write -- before COMMAND, whose options are its own. The place is held while COMMAND runs, unless\n"
		"the rule cuts it off, and given back when it ends. Exits with the status of COMMAND (128 + N if\n"
		"signal N ended it), 1 if no place was free, 126 or 127 if COMMAND cannot be run, 125 on any other\n"
		"failure. If hold itself is killed, the place ends with COMMAND. A place that cannot be bound to\n"
		"COMMAND ends after a period. With --share the key holds at most that many times the places that are\n"
		"free in another limit, of which a place is held, too.\n",
	.options = options,
	.run = run,
	.misused = STATUS_NOT_TRIED,
};
