/*
 * peek.c: shmlimit peek.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "command.h"

static int run(const struct call *call)
{
	return decision_run(call, SHMLIMIT_READ_ONLY, shmlimit_peek);
}

const struct command command_peek = {
	.name = "peek",
	.operands = "NAME RULE KEY",
	.purpose = "show what take would answer, without taking",
	.options = decision_options,
	.run = run,
};
