/*
 * apply.c: shmlimit apply: apply a file of rules to a segment.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "fail.h"
#include "rules.h"

enum { DRY_RUN, EXIT_CODE, PRUNE, CREATE, JSON };

static const struct command_option options[] = {
	[DRY_RUN] = { "dry-run", NULL, "show what would change, and change nothing" },
	[EXIT_CODE] = { "exit-code", NULL, "with --dry-run: exit with 1 if something would change" },
	[PRUNE] = { "prune", NULL, "remove the rules that are not in the file" },
	[CREATE] = { "create", NULL, "make the segment if it is missing, as [*] has it" },
	[JSON] = { "json", NULL, "print what changes as JSON" },
	{ 0 },
};

static int run(const struct call *call)
{
	struct plan plan;
	unsigned flags = (call->option[PRUNE] != NULL ? PLAN_PRUNE : 0) |
	                 (call->option[CREATE] != NULL ? PLAN_CREATE : 0) |
	                 (call->option[JSON] != NULL ? PLAN_JSON : 0);
	int status;

	if (call->option[EXIT_CODE] != NULL && call->option[DRY_RUN] == NULL)
		return fail("--exit-code needs --dry-run");
	status = plan_make(&plan, call->operand[0], call->operand[1], flags);
	if (status == STATUS_OK && call->option[DRY_RUN] != NULL) {
		status = plan_show(&plan);
		if (status == STATUS_OK && call->option[EXIT_CODE] != NULL && !plan_is_empty(&plan))
			status = STATUS_NO;
	} else if (status == STATUS_OK) {
		status = plan_perform(&plan);
	}
	plan_free(&plan);
	return status;
}

const struct command command_apply = {
	.name = "apply",
	.operands = "NAME FILE",
	.purpose = "apply a file of rules to a segment",
	.details =
		"FILE (- for standard input) has a section [RULE] for each rule, with options of rule set\n"
		"(capacity = 20), and [*] with enabled = yes or no. Prints what changes: + new, ~ changed,\n"
		"- removed. The whole file is checked before anything changes, and every error is printed. See also\n"
		"apply --all --help.\n",
	.options = options,
	.run = run,
};
