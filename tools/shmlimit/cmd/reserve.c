/*
 * reserve.c: shmlimit reserve.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "command.h"

static int run(const struct call *call)
{
	return reservation_run(call, shmlimit_reserve);
}

const struct command command_reserve = {
	.name = "reserve",
	.operands = "NAME RULE KEY",
	.purpose = "take tokens in advance, and say how long to wait for them",
	.details = "Exit 0 if allowed, 1 if it were too long. Does not wait itself: acquire does.\n",
	.options = reservation_options,
	.run = run,
};
