/*
 * apply_all.c: shmlimit apply --all: at boot, make the segments that a folder
 * has files of, and set their rules.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "escape.h"
#include "fail.h"
#include "print.h"
#include "rules.h"

#define FOLDER "/etc/shmlimit.d"
#define ENDING ".conf"

enum { DRY_RUN, EXIT_CODE, PRUNE, JSON };

static const struct command_option options[] = {
	[DRY_RUN] = { "dry-run", NULL, "show what would change, and change nothing" },
	[EXIT_CODE] = { "exit-code", NULL, "with --dry-run: exit with 1 if something would change" },
	[PRUNE] = { "prune", NULL, "remove the rules that are not in the files" },
	[JSON] = { "json", NULL, "print what changes as JSON, an object a line for each segment" },
	{ 0 },
};

/* A hidden file is not meant: no segment can have its name, either. */
static int is_meant(const struct dirent *entry)
{
	size_t len = strlen(entry->d_name), ending_len = strlen(ENDING);

	return entry->d_name[0] != '.' && len > ending_len && strcmp(entry->d_name + len - ending_len, ENDING) == 0;
}

/* The lines of a plan are of the segment above them. */
static int apply_file(const struct call *call, const char *segment, const char *path)
{
	struct plan plan;
	unsigned flags = PLAN_CREATE | PLAN_TRUSTED | (call->option[PRUNE] != NULL ? PLAN_PRUNE : 0) |
	                 (call->option[JSON] != NULL ? PLAN_JSON : 0);
	int status = plan_make(&plan, segment, path, flags);

	if (status == STATUS_OK && !plan_is_empty(&plan)) {
		if (!plan.missing && call->option[JSON] == NULL) {
			printf("~ segment ");
			print_clean(stdout, segment);
			putchar('\n');
		}
		if (call->option[DRY_RUN] == NULL)
			status = plan_perform(&plan);
		else
			status = plan_show(&plan);
		if (status == STATUS_OK && call->option[EXIT_CODE] != NULL)
			status = STATUS_NO;
	}
	plan_free(&plan);
	return status;
}

static int apply_entry(const struct call *call, const char *folder, const char *entry)
{
	char *segment = strndup(entry, strlen(entry) - strlen(ENDING)), *path = NULL;
	int status;

	if (segment == NULL || asprintf(&path, "%s/%s", folder, entry) < 0) {
		free(segment);
		return fail_memory();
	}
	status = apply_file(call, segment, path);
	free(path);
	free(segment);
	return status;
}

/* One file that is wrong must not leave the others' segments unmade. */
static int run(const struct call *call)
{
	const char *folder = call->operand[0] != NULL ? call->operand[0] : FOLDER;
	struct dirent **entry;
	int status = STATUS_OK, count;

	if (call->option[EXIT_CODE] != NULL && call->option[DRY_RUN] == NULL)
		return fail("--exit-code needs --dry-run");
	count = scandir(folder, &entry, is_meant, alphasort);
	if (count < 0)
		return fail("%s: %s", folder, strerror(errno));
	for (int i = 0; i < count; i++) {
		int of_one = apply_entry(call, folder, entry[i]->d_name);

		if (of_one != STATUS_OK && status != STATUS_ERROR)
			status = of_one == STATUS_NO ? STATUS_NO : STATUS_ERROR;
		free(entry[i]);
	}
	free(entry);
	return status;
}

const struct command command_apply_all = {
	.name = "apply --all",
	.operands = "[DIR]",
	.purpose = "create the segments and rules that a folder's files describe",
	.details =
		"For each NAME.conf in DIR, by default " FOLDER ", does what apply NAME does. Creates the\n"
		"segment if it is missing, with create's options from section [*] (slots = 64K). An existing segment\n"
		"keeps its options. An error in one file does not affect the others.\n",
	.options = options,
	.run = run,
};
