/*
 * global_reset.c: shmlimit global reset.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <string.h>

#include "global.h"

static const struct command_option options[] = {
	GLOBAL_OPTION_ROWS,
	{ 0 },
};

static int run(const struct call *call)
{
	struct shmlimit_global_options o = { 0 };
	const char *key = call->operand[GLOBAL_KEY];
	struct global_call g;
	int status = key != NULL ? decision_key(key) : STATUS_OK;

	if (status == STATUS_OK)
		status = global_open(&g, call, &o);
	if (status != STATUS_OK)
		return status;
	status = global_status(&g, shmlimit_global_reset(g.global, g.rule, key, key != NULL ? strlen(key) : 0));
	global_close(&g);
	return status;
}

const struct command command_global_reset = {
	.name = "global reset",
	.operands = "NAME URL RULE [KEY]",
	.purpose = "fill up funnels that all hosts share: of a rule, or a key",
	.details = GLOBAL_DETAILS "After a rule was changed on all hosts, this lets the new one begin.\n",
	.options = options,
	.run = run,
};
