/*
 * reset.c: shmlimit reset.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <string.h>

#include "command.h"

enum { ALL, RULE, KEY };

static const struct command_option options[] = {
	[ALL] = { "all", NULL, "every key of every rule" },
	[RULE] = { "rule", "RULE", "every key of this rule" },
	[KEY] = { "key", "KEY", "with --rule: this key only" },
	{ 0 },
};

static int check_call(const struct call *call)
{
	if ((call->option[ALL] != NULL) == (call->option[RULE] != NULL) ||
	    (call->option[ALL] != NULL && call->option[KEY] != NULL))
		return fail("reset: what to fill up: must be just one of --all, --rule RULE, or --rule RULE "
		            "--key KEY");
	return call->option[KEY] != NULL ? decision_key(call->option[KEY]) : STATUS_OK;
}

static int reset(const struct call *call, struct shmlimit *limiter)
{
	const char *segment = call->operand[0], *rule = call->option[RULE], *key = call->option[KEY];
	int id = -1, error, status = STATUS_OK;

	if (rule != NULL)
		status = rule_find(limiter, segment, rule, &id);
	if (status != STATUS_OK)
		return status;
	error = shmlimit_reset(limiter, id, key, key != NULL ? strlen(key) : 0);
	if (error == 0)
		return STATUS_OK;
	return rule != NULL ? fail_rule(segment, rule, error) : fail_segment(segment, error);
}

static int run(const struct call *call)
{
	struct shmlimit *limiter;
	int status = check_call(call);

	if (status == STATUS_OK)
		status = segment_open(call->operand[0], 0, &limiter);
	if (status != STATUS_OK)
		return status;
	status = reset(call, limiter);
	shmlimit_close(limiter);
	return status;
}

const struct command command_reset = {
	.name = "reset",
	.operands = "NAME",
	.purpose = "fill funnels up: of a key, of a rule, or all",
	.options = options,
	.run = run,
};
