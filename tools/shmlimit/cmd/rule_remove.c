/*
 * rule_remove.c: shmlimit rule remove.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "command.h"
#include "fail.h"
#include "named_segment.h"

static int run(const struct call *call)
{
	struct shmlimit *limiter;
	int error, status = segment_open(call->operand[0], 0, &limiter);

	if (status != STATUS_OK)
		return status;
	error = shmlimit_rule_remove(limiter, call->operand[1]);
	shmlimit_close(limiter);
	return error < 0 ? fail_rule(call->operand[0], call->operand[1], error) : STATUS_OK;
}

const struct command command_rule_remove = {
	.name = "rule remove",
	.operands = "NAME RULE",
	.purpose = "remove a rule and all its funnels",
	.run = run,
};
