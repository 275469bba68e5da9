/*
 * exec.c: shmlimit exec: wait for tokens, then become another program.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "about.h"
#include "command.h"
#include "decision.h"
#include "fail.h"
#include "key_form.h"
#include "key_option.h"
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

/* It starts with what this one was started with: main() ignores two signals. */
static int become(char **command)
{
	signal(SIGPIPE, SIG_DFL);
	signal(SIGXFSZ, SIG_DFL);
	execvp(command[0], command);
	fail("%s: %s", command[0], strerror(errno));
	return errno == ENOENT ? STATUS_NOT_FOUND : STATUS_CANNOT_RUN;
}

static int deny(const char *rule, const struct request *q, const struct shmlimit_result *r)
{
	char text[TEXT_LEN];

	fail("rule %s: denied, and not run: it would fit after %s", rule, duration_about(text, r->retry_after_ns));
	return (int)q->denied_status;
}

/* Signals that do not end the process do not end the wait. */
static int acquire(struct shmlimit *limiter, int rule, struct request *q, struct shmlimit_result *r)
{
	struct shmlimit_request asked = {
		.rule = rule, .key = q->key.bytes, .key_len = q->key.len, .cost = q->cost, .limit = &q->limit
	};
	int error;

	if (q->limit.struct_size == 0)
		return shmlimit_acquire(limiter, rule, q->key.bytes, q->key.len, q->cost, q->max_wait_ns, r);
	error = limit_wait_set(limiter, rule, q->max_wait_ns, &q->limit);
	return error != 0 ? error : shmlimit_decide(limiter, SHMLIMIT_ACQUIRE, &asked, r);
}

/*
 * WHY NOT give the tokens back where the command does not run: others may wait behind this turn,
 * and a newcomer would have another's.
 */
static int ask(const struct call *call, struct shmlimit *limiter, int rule, struct request *q)
{
	struct shmlimit_result r;
	int answer = acquire(limiter, rule, q, &r);

	if (answer < 0) {
		fail_decision(call, call->operand[1], answer);
		return STATUS_NOT_TRIED;
	}
	if (answer == SHMLIMIT_DENIED)
		return deny(call->operand[1], q, &r);
	return become(call->operand + 3);
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
	if (rule_find(limiter, segment, rule, &id) == STATUS_OK &&
	    places_refuse(limiter, id, segment, rule) == STATUS_OK) {
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
		"would be too long, 126 or 127 if COMMAND cannot be run, 125 on any other failure. If a signal ends the wait,\n"
		"or COMMAND cannot be run, the tokens stay taken.\n",
	.options = options,
	.run = run,
	.misused = STATUS_NOT_TRIED,
};
