/*
 * switch.c: shmlimit enable and shmlimit disable.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "command.h"
#include "fail.h"
#include "named_segment.h"

static int switch_to(const struct call *call, uint32_t on)
{
	struct shmlimit *limiter;
	int error, status = segment_open(call->operand[0], 0, &limiter);

	if (status != STATUS_OK)
		return status;
	error = shmlimit_enable(limiter, on);
	shmlimit_close(limiter);
	return error < 0 ? fail_segment(call->operand[0], error) : STATUS_OK;
}

static int run_enable(const struct call *call)
{
	return switch_to(call, 1);
}

static int run_disable(const struct call *call)
{
	return switch_to(call, 0);
}

const struct command command_enable = {
	.name = "enable",
	.operands = "NAME",
	.purpose = "switch a segment on again",
	.run = run_enable,
};

const struct command command_disable = {
	.name = "disable",
	.operands = "NAME",
	.purpose = "switch a segment off: every decision is allowed",
	.run = run_disable,
};
