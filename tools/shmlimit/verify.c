/*
 * verify.c: shmlimit verify.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <inttypes.h>

#include "command.h"

#define SHOWN_MAX 1000         /* a table of garbage has more: these tell as much */

enum { JSON };

static const struct command_option options[] = {
	[JSON] = { "json", NULL, "print JSON" },
	{ 0 },
};

static struct shmlimit_problem problems[SHOWN_MAX];

static void print_text(const char *name, int found, int shown)
{
	if (found == 0)
		print_line(name, "sound");
	for (int i = 0; i < shown; i++)
		print_line(name, "byte %" PRIu64 ": %s", problems[i].offset, problems[i].text);
	if (found > shown)
		print_line(name, "%d more problems", found - shown);
}

static json_t *report_json(const char *name, int found, int shown)
{
	json_t *list = json_array();

	for (int i = 0; i < shown; i++)
		json_append(&list, json_pack("{s:o, s:o}", "offset", json_number(problems[i].offset),
		                             "text", json_text(problems[i].text)));
	return json_pack("{s:o, s:b, s:i, s:o}", "name", json_text(name), "sound", found == 0, "found", found,
	                 "problems", list);
}

static int run(const struct call *call)
{
	const char *name = call->operand[0];
	int found = shmlimit_verify(name, problems, SHOWN_MAX);
	int shown = found < SHOWN_MAX ? found : SHOWN_MAX;
	int status = STATUS_OK;

	if (found < 0)
		return fail_segment(name, found);
	if (call->option[JSON] != NULL)
		status = print_json(report_json(name, found, shown));
	else
		print_text(name, found, shown);
	if (status != STATUS_OK)
		return status;
	return found == 0 ? STATUS_OK : STATUS_NO;
}

const struct command command_verify = {
	.name = "verify",
	.operands = "NAME",
	.purpose = "check all of a segment: exit 0 sound, 1 if problems were found",
	.details = "Works on segments that cannot be opened. Changes nothing.\n",
	.options = options,
	.run = run,
};
