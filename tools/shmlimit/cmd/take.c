/*
 * take.c: shmlimit take.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "command.h"

static int run(const struct call *call)
{
	return decision_run(call, 0, shmlimit_take);
}

const struct command command_take = {
	.name = "take",
	.operands = "NAME RULE KEY",
	.purpose = "take tokens: exit 0 if allowed, 1 if denied",
	.options = decision_options,
	.run = run,
};
