/*
 * destroy.c: shmlimit destroy.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>

#include "command.h"
#include "fail.h"

enum { IF_EXISTS };

static const struct command_option options[] = {
	[IF_EXISTS] = { "if-exists", NULL, "succeed if there is no such segment" },
	{ 0 },
};

static int run(const struct call *call)
{
	const char *name = call->operand[0];
	int error = shmlimit_destroy(name);

	if (error == -ENOENT && call->option[IF_EXISTS] != NULL)
		return STATUS_OK;
	if (error == -EACCES || error == -EPERM)
		return fail("segment %s: no permission (only its owner and root can destroy it)", name);
	return error < 0 ? fail_segment(name, error) : STATUS_OK;
}

const struct command command_destroy = {
	.name = "destroy",
	.operands = "NAME",
	.purpose = "destroy a segment, even a damaged one",
	.details = "Processes that have it open can go on using it.\n",
	.options = options,
	.run = run,
};
