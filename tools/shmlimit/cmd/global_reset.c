/*
 * global_reset.c: shmlimit global reset.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "global.h"
#include "key_option.h"
#include "reset.h"

enum { JSON = GLOBAL_OPTIONS };

static const struct command_option options[] = {
	GLOBAL_OPTION_ROWS,
	[JSON] = { "json", NULL, "print JSON" },
	KEY_OPTION_ROWS,
	{ 0 },
};

static int run(const struct call *call)
{
	struct shmlimit_global_options o = { 0 };
	int one = call->operand[GLOBAL_KEY] != NULL || key_is_option(call), found;
	struct global_call g;
	struct key key;
	int status = one ? key_parse(call, call->operand[GLOBAL_KEY], &key) : STATUS_OK;

	if (status == STATUS_OK)
		status = global_open(&g, call, &o);
	if (status != STATUS_OK)
		return status;
	found = shmlimit_global_reset(g.global, g.rule, one ? key.bytes : NULL, one ? key.len : 0);
	status = global_status(&g, found);
	global_close(&g);
	if (status == STATUS_OK && call->option[JSON] != NULL)
		return reset_print_json(found, one);
	return status == STATUS_OK ? reset_report(found, one ? &key : NULL, call->operand[GLOBAL_RULE]) : status;
}

const struct command command_global_reset = {
	.name = "global reset",
	.operands = "NAME URL RULE [KEY]",
	.purpose = "restore all tokens of a rule or key that all hosts share",
	.details = GLOBAL_DETAILS "A changed rule needs no reset: it is in force at once on each host that has it.\n",
	.options = options,
	.run = run,
};
