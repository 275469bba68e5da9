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
	.purpose = "take tokens for something that has already happened",
	.details = "Missing tokens become debt, up to the rule's max-wait. Exit 1 if only a part could be taken.\n",
	.options = charge_options,
	.run = run,
};
