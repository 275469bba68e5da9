/*
 * exec.c: shmlimit exec: wait for tokens, then become another program.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "about.h"
#include "command.h"
#include "decision.h"
#include "fail.h"
#include "key_form.h"
#include "key_option.h"
#include "monotonic.h"
#include "named_segment.h"
#include "number_text.h"
#include "rule_facts.h"
#include "value_parse.h"

enum { COST, MAX_WAIT, LIMIT, DENIED_STATUS };

static const struct command_option options[] = {
	[COST] = { "cost", "N", "tokens to ask for (default 1)" },
	[MAX_WAIT] = { "max-wait", "DURATION", "the longest wait: 2s, 500ms, 0 (default: what the rule allows)" },
	[LIMIT] = LIMIT_ROW,
	[DENIED_STATUS] = { "denied-status", "N", "exit with N if the wait were too long, 0 to 255 (default 1)" },
	KEY_OPTION_ROWS,
	KEY_PREFIX_ROW,
	{ 0 },
};

struct request {
	struct key key;
	struct shmlimit_limit limit;
	uint64_t cost, max_wait_ns, denied_status;
};

static int parse(const struct call *call, struct request *q)
{
	int status = key_parse(call, call->operand[2], &q->key);

	if (status == STATUS_OK && call->option[COST] != NULL)
		status = number_parse("--cost", call->option[COST], 0, UINT64_MAX, &q->cost);
	if (status == STATUS_OK && call->option[MAX_WAIT] != NULL)
		status = duration_parse("--max-wait", call->option[MAX_WAIT], &q->max_wait_ns);
	if (status == STATUS_OK && call->option[DENIED_STATUS] != NULL)
		status = number_parse("--denied-status", call->option[DENIED_STATUS], 0, 255, &q->denied_status);
	return status == STATUS_OK ? limit_option_read(call, &q->limit) : status;
}

/* Signals that would end the process: not those that its parent made it ignore, as nohup does. */
static void ending_signals(sigset_t *set)
{
	static const int ending[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM };
	struct sigaction old;

	sigemptyset(set);
	for (size_t i = 0; i < sizeof(ending) / sizeof(ending[0]); i++)
		if (sigaction(ending[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
			sigaddset(set, ending[i]);
}

/*
 * Returns 0 when the time is over, or the signal that came first. The set is blocked, so that none
 * is missed.
 */
static int wait_ns(uint64_t ns, const sigset_t *ending)
{
	uint64_t began = monotonic_ns(), passed = 0;
	int number;

	do {
		uint64_t rest = ns > passed ? ns - passed : 0;
		struct timespec left = { (time_t)(rest / 1000000000), (long)(rest % 1000000000) };

		number = sigtimedwait(ending, NULL, &left);
		passed = monotonic_ns() - began;
	} while (number <= 0 && passed < ns);
	return number > 0 ? number : 0;
}

/* It starts with what this one was started with: main() ignores two signals. */
static int become(char **command)
{
	signal(SIGPIPE, SIG_DFL);
	signal(SIGXFSZ, SIG_DFL);
	execvp(command[0], command);
	fail("%s: %s", command[0], strerror(errno));
	return errno == ENOENT ? STATUS_NOT_FOUND : STATUS_CANNOT_RUN;
}

/*
 * What goes back if a signal comes after the wait and before the command runs, which has no handler
 * of this.
 */
static struct {
	struct shmlimit *limiter;
	const struct request *q;
	int rule;
} taken;

/* May be called from handlers. */
static void refund(void)
{
	const struct request *q = taken.q;
	struct shmlimit_request asked = { .rule = taken.rule,
		                          .key = q->key.bytes,
		                          .key_len = q->key.len,
		                          .cost = q->cost,
		                          .limit = q->limit.struct_size != 0 ? &q->limit : NULL };

	shmlimit_decide(taken.limiter, SHMLIMIT_REFUND, &asked, NULL);
}

/* This one is gone by now, so the signal ends the process. */
static void give_back(int number)
{
	refund();
	raise(number);
}

static void handle(const sigset_t *ending, void (*handler)(int))
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = SA_RESETHAND | SA_NODEFER };

	for (int number = 1; number < NSIG; number++)
		if (sigismember(ending, number) == 1)
			sigaction(number, &action, NULL);
}

/* Signals that were held, and what they are to be set back to. */
struct held {
	sigset_t ending, before;
};

/* Tokens that were taken for nothing go back: of a signal, or a command that cannot be run. */
static int wait_and_run(struct shmlimit *limiter, int rule, const struct request *q, const struct shmlimit_result *r,
                        const struct held *held, char **command)
{
	int number = wait_ns(r->wait_ns, &held->ending), status = STATUS_ERROR, is_taken = r->retry_after_ns == 0;

	taken.limiter = limiter;
	taken.q = q;
	taken.rule = rule;
	if (number == 0) {
		if (is_taken)
			handle(&held->ending, give_back);
		sigprocmask(SIG_SETMASK, &held->before, NULL);
		status = become(command);
		sigprocmask(SIG_BLOCK, &held->ending, NULL);
		handle(&held->ending, SIG_DFL);
	}
	if (is_taken)
		refund();
	if (number != 0)
		raise(number); /* held: the caller lets it through */
	return status;
}

static int deny(const char *rule, const struct request *q, const struct shmlimit_result *r)
{
	char text[TEXT_LEN];

	fail("rule %s: denied, and not run: it would fit after %s", rule, duration_about(text, r->retry_after_ns));
	return (int)q->denied_status;
}

static int reserve(struct shmlimit *limiter, int rule, struct request *q, struct shmlimit_result *r)
{
	struct shmlimit_request asked = {
		.rule = rule, .key = q->key.bytes, .key_len = q->key.len, .cost = q->cost, .limit = &q->limit
	};
	int error;

	if (q->limit.struct_size == 0)
		return shmlimit_reserve(limiter, rule, q->key.bytes, q->key.len, q->cost, q->max_wait_ns, r);
	error = limit_wait_set(limiter, rule, q->max_wait_ns, &q->limit);
	return error != 0 ? error : shmlimit_decide(limiter, SHMLIMIT_RESERVE, &asked, r);
}

/* No signal comes between taking the tokens and waiting for them. */
static int ask(const struct call *call, struct shmlimit *limiter, int rule, struct request *q)
{
	struct shmlimit_result r;
	struct held held;
	int answer, status;

	ending_signals(&held.ending);
	sigprocmask(SIG_BLOCK, &held.ending, &held.before);
	answer = reserve(limiter, rule, q, &r);
	if (answer < 0) {
		fail_decision(call, call->operand[1], answer);
		status = STATUS_NOT_TRIED;
	} else if (answer == SHMLIMIT_DENIED)
		status = deny(call->operand[1], q, &r);
	else
		status = wait_and_run(limiter, rule, q, &r, &held, call->operand + 3);
	sigprocmask(SIG_SETMASK, &held.before, NULL);
	return status;
}

static int run(const struct call *call)
{
	struct request q = { .cost = 1, .max_wait_ns = UINT64_MAX, .denied_status = STATUS_NO };
	const char *segment = call->operand[0], *rule = call->operand[1];
	struct shmlimit *limiter;
	int id, status = parse(call, &q);

	if (status == STATUS_OK)
		status = segment_open(segment, 0, &limiter);
	if (status != STATUS_OK)
		return STATUS_NOT_TRIED;
	status = STATUS_NOT_TRIED;
	if (rule_find(limiter, segment, rule, &id) == STATUS_OK) {
		key_choose(limiter, id, &q.key);
		status = ask(call, limiter, id, &q);
	}
	shmlimit_close(limiter);
	return status;
}

const struct command command_exec = {
	.name = "exec",
	.operands = "NAME RULE KEY COMMAND...",
	.purpose = "wait for tokens, take them, and run a command",
	.details =
		"Write -- before COMMAND, whose options are its own. exec exits with its status, 1 if the wait\n"
		"would be too long, 126 or 127 if COMMAND cannot be run, 125 on any other failure. Tokens go back if a signal ends the wait, or\n"
		"if COMMAND cannot be run.\n",
	.options = options,
	.run = run,
	.misused = STATUS_NOT_TRIED,
};
