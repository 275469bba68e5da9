/*
 * command.c: options and operands, as every subcommand takes them.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <getopt.h>
#include <limits.h>
#include <string.h>

#include "command.h"

enum {
	FOUND_HELP = 'h',
	FOUND_OPTION = 256,    /* + its place in command.options */
};

/* getopt's own table of the command's options. */
static void list_options(const struct command *command, struct option list[OPTIONS_MAX + 2])
{
	const struct command_option *o = command->options;
	int n = 0;

	for (; o != NULL && o[n].name != NULL; n++)
		list[n] = (struct option){ o[n].name, o[n].value != NULL, NULL, FOUND_OPTION + n };
	list[n] = (struct option){ "help", no_argument, NULL, FOUND_HELP };
	list[n + 1] = (struct option){ 0 };
}

static int fail_option(const struct command *command, int found, const char *typed)
{
	int place = optopt - FOUND_OPTION;

	if (found == ':')
		return fail("%s: --%s: its value is missing: must be --%s %s", command->name,
		            command->options[place].name, command->options[place].name,
		            command->options[place].value);
	if (place >= 0)
		return fail("%s: %s: takes no value: must be --%s", command->name, typed,
		            command->options[place].name);
	if (optopt == FOUND_HELP)
		return fail("%s: %s: takes no value: must be --help", command->name, typed);
	if (optopt != 0)
		return fail("%s: -%c: no such option (shmlimit %s --help lists them)", command->name, optopt,
		            command->name);
	return fail("%s: %s: no such option (shmlimit %s --help lists them)", command->name, typed,
	            command->name);
}

/* The first word behind the first `n`; its length goes to *len, 0 if there is none. */
static const char *word_at(const char *words, int n, int *len)
{
	for (; n > 0; n--) {
		words += strcspn(words, " ");
		words += strspn(words, " ");
	}
	*len = (int)strcspn(words, " ");
	return words;
}

static int may_repeat(const char *what, size_t len)
{
	return len >= 3 && memcmp(what + len - 3, "...", 3) == 0;
}

/* How many operands: those that must be there, and those that may. */
static int count_operands(const char *operands, int *most)
{
	const char *word;
	int len, least = 0;

	for (*most = 0; word = word_at(operands, *most, &len), len > 0; ++*most) {
		if (may_repeat(word, (size_t)len - 1)) {       /* "[FILE...]", the last */
			*most = INT_MAX;
			break;
		}
		least += *word != '[';
	}
	return least;
}

static int check_operands(const struct command *command, int argc, char **argv)
{
	const char *operands = command->operands;
	int len, most, least = count_operands(operands, &most);

	if (argc < least) {
		const char *missing = word_at(operands, argc, &len);

		return fail("%s: %.*s is missing: must be shmlimit %s %s", command->name, len, missing,
		            command->name, operands);
	}
	if (argc > most)
		return fail("%s: %s: one operand too many: must be shmlimit %s%s%s", command->name,
		            argv[most], command->name, most > 0 ? " " : "", operands);
	return STATUS_OK;
}

static int take_option(const struct command *command, int place, struct call *call)
{
	const char *value = command->options[place].value;

	call->option[place] = optarg != NULL ? optarg : "";
	if (value == NULL || !may_repeat(value, strlen(value)))
		return STATUS_OK;
	if (call->repeated_count == REPEATED_MAX)
		return fail("%s: --%s %s: comes too often: must be %d times or less", command->name,
		            command->options[place].name, optarg, REPEATED_MAX);
	call->repeated[call->repeated_count++] = optarg;
	return STATUS_OK;
}

int command_run(const struct command *command, int argc, char **argv)
{
	struct option list[OPTIONS_MAX + 2];
	struct call call = { .command = command };
	int found, status;

	list_options(command, list);
	optind = 0;            /* start over: main() has read the options before the command's name */
	while ((found = getopt_long(argc, argv, ":h", list, NULL)) != -1) {
		if (found == FOUND_HELP) {
			help_command(command);
			return STATUS_OK;
		}
		if (found < FOUND_OPTION)
			return fail_option(command, found, argv[optind - 1]);
		status = take_option(command, found - FOUND_OPTION, &call);
		if (status != STATUS_OK)
			return status;
	}
	status = check_operands(command, argc - optind, argv + optind);
	if (status != STATUS_OK)
		return status;
	call.operand = argv + optind;
	return command->run(&call);
}
