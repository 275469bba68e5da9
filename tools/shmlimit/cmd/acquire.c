/*
 * acquire.c: shmlimit acquire.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "command.h"

static int run(const struct call *call)
{
	return reservation_run(call, shmlimit_acquire);
}

const struct command command_acquire = {
	.name = "acquire",
	.operands = "NAME RULE KEY",
	.purpose = "wait for tokens and take them: shmlimit acquire ... && send",
	.details = "Exit 0 once tokens are taken, 1 at once if the wait is too long.\n",
	.options = reservation_options,
	.run = run,
};
