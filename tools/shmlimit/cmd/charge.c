/*
 * charge.c: shmlimit charge.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "command.h"

static int run(const struct call *call)
{
	return decision_run(call, 0, shmlimit_charge);
}

const struct command command_charge = {
	.name = "charge",
	.operands = "NAME RULE KEY",
	.purpose = "take tokens for what has happened already",
	.details = "What the funnel lacks becomes debt, as far as the rule's max-wait. Exit 1 if that was not all.\n",
	.options = charge_options,
	.run = run,
};
