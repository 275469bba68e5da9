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
	.purpose = "take tokens in advance, and print how long to wait",
	.details = "Exit 0 if allowed, 1 if the wait would be too long. Does not wait; acquire does.\n",
	.options = reservation_options,
	.run = run,
};
