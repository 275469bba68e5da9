/*
 * verify.c: shmlimit verify.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <inttypes.h>

#include "command.h"
#include "fail.h"
#include "named_segment.h"
#include "print.h"

#define SHOWN_MAX 1000 /* a table of garbage has more: these tell as much */

enum { REPAIR, JSON };

static const struct command_option options[] = {
	[REPAIR] = { "repair", NULL, "first repair what needs no guessing, and print it" },
	[JSON] = { "json", NULL, "print JSON" },
	{ 0 },
};

static struct shmlimit_problem problems[SHOWN_MAX], repairs[SHOWN_MAX];

static int shown(int found)
{
	return found < SHOWN_MAX ? found : SHOWN_MAX;
}

static void print_text(const char *name, int found, int repaired)
{
	for (int i = 0; i < shown(repaired); i++)
		print_line(name, "byte %" PRIu64 ": repaired: %s", repairs[i].offset, repairs[i].text);
	if (repaired > SHOWN_MAX)
		print_line(name, "repairs left out: %d", repaired - SHOWN_MAX);
	if (found == 0)
		print_line(name, "sound");
	for (int i = 0; i < shown(found); i++)
		print_line(name, "byte %" PRIu64 ": %s", problems[i].offset, problems[i].text);
	if (found > SHOWN_MAX)
		print_line(name, "problems left out: %d", found - SHOWN_MAX);
}

static json_t *list_json(const struct shmlimit_problem *from, int n)
{
	json_t *list = json_array();

	for (int i = 0; i < n; i++)
		json_append(&list, json_pack("{s:o, s:o}", "offset", json_number(from[i].offset), "text",
		                             json_text(from[i].text)));
	return list;
}

static json_t *report_json(const char *name, int found, int repaired, int repairing)
{
	json_t *report = json_pack("{s:o, s:b, s:i, s:o}", "name", json_text(name), "sound", found == 0, "found", found,
	                           "problems", list_json(problems, shown(found)));

	if (repairing)
		json_object_update_new(report, json_pack("{s:i, s:o}", "repaired", repaired, "repairs",
		                                         list_json(repairs, shown(repaired))));
	return report;
}

static int run(const struct call *call)
{
	const char *name = call->operand[0];
	int repairing = call->option[REPAIR] != NULL, repaired = 0, found, status = STATUS_OK, error;
	struct shmlimit *limiter;

	/* One that cannot be opened is verified, but not one whose owner root does not trust. */
	error = segment_try(name, SHMLIMIT_OPEN_READ_ONLY, &limiter);
	if (error == 0)
		shmlimit_close(limiter);
	if (error == -EPERM)
		return fail_segment(name, error);
	if (repairing)
		repaired = shmlimit_repair(name, repairs, SHOWN_MAX);
	if (repaired < 0)
		return fail_segment(name, repaired);
	found = shmlimit_verify(name, problems, SHOWN_MAX);
	if (found < 0)
		return fail_segment(name, found);
	if (call->option[JSON] != NULL)
		status = print_json(report_json(name, found, repaired, repairing));
	else
		print_text(name, found, repaired);
	if (status != STATUS_OK)
		return status;
	return found == 0 ? STATUS_OK : STATUS_NO;
}

const struct command command_verify = {
	.name = "verify",
	.operands = "NAME",
	.purpose = "check a whole segment: exit 0 if sound, 1 if problems were found",
	.details =
		"Works on segments that cannot be opened. Changes nothing except with --repair, which can run beside\n"
		"decisions. For what it cannot repair, set the rule again, or create the segment again.\n",
	.options = options,
	.run = run,
};
