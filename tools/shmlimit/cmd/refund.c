/*
 * refund.c: shmlimit refund.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "command.h"

static int run(const struct call *call)
{
	return decision_run(call, 0, shmlimit_refund);
}

const struct command command_refund = {
	.name = "refund",
	.operands = "NAME RULE KEY",
	.purpose = "give back tokens that were taken and not used",
	.options = refund_options,
	.run = run,
};
