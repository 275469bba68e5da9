/*
 * command.c: options and operands, as every subcommand takes them.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "fail.h"
#include "key_option.h"
#include "nearest.h"
#include "number_text.h"

enum {
	FOUND_HELP = 'h',
	FOUND_OPTION = 256, /* + its place in command.options */
};

/* getopt's own tables of the command's options, and of their letters. */
static void list_options(const struct command *command, struct option list[OPTIONS_MAX + 2],
                         char letters[2 * OPTIONS_MAX + 3])
{
	const struct command_option *o = command->options;
	int n = 0;
	char letter;

	letters = stpcpy(letters, ":h");
	for (; o != NULL && o[n].name != NULL; n++) {
		list[n] = (struct option){ o[n].name, o[n].value != NULL, NULL, FOUND_OPTION + n };
		letter = command_letter(command, (size_t)n);
		if (letter != '\0')
			letters += sprintf(letters, "%c%s", letter, o[n].value != NULL ? ":" : "");
	}
	list[n] = (struct option){ "help", no_argument, NULL, FOUND_HELP };
	list[n + 1] = (struct option){ 0 };
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

/* The place of KEY among the operands, or -1. */
static int key_place(const struct command *command)
{
	const char *word;
	int len;

	for (int i = 0; word = word_at(command->operands, i, &len), len > 0; i++)
		if (strncmp(word, "KEY", (size_t)len) == 0 || strncmp(word, "[KEY]", (size_t)len) == 0)
			return i;
	return -1;
}

/*
 * The place in command.options of what getopt says, which is as large for a long name, or a letter;
 * -1: it has none.
 */
static int place_of(const struct command *command, int said)
{
	const char *at;

	if (said >= FOUND_OPTION)
		return said - FOUND_OPTION;
	at = said != 0 && command->letters != NULL ? strchr(command->letters, said) : NULL;
	return at != NULL ? (int)(at - command->letters) : -1;
}

/*
 * Words, as a sentence has them: "--a, --b or --c". The last one is not added before there is
 * another.
 */
static void join(char *text, size_t size, const char **last, const char *name)
{
	size_t len = strlen(text);

	if (*last != NULL)
		snprintf(text + len, size - len, "%s--%s", len > 0 ? ", " : "", *last);
	*last = name;
}

/* None of that name, or several that begin with it. */
static int fail_name(const struct command *command, const char *typed)
{
	const struct command_option *o = command->options;
	struct nearest nearest;
	char name[32], all[512] = "";
	const char *last = NULL, *names[OPTIONS_MAX + 1] = { "help" };
	size_t n = 1;

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(typed + 2, "="), typed + 2);
	nearest = (struct nearest){ .word = name };
	for (; o != NULL && o[n - 1].name != NULL; n++)
		names[n] = o[n - 1].name;
	for (size_t i = 0; i < n; i++) {
		nearest_try(&nearest, names[i]);
		if (strncmp(names[i], name, strlen(name)) == 0)
			join(all, sizeof(all), &last, names[i]);
	}
	if (all[0] != '\0')
		return fail("%s: --%s: ambiguous: could be %s or --%s", command->name, name, all, last);
	return fail("%s: %s: no such option (%sshmlimit %s --help lists them)", command->name, typed,
	            nearest_text(&nearest, "--"), command->name);
}

static int fail_option(const struct command *command, int found, const char *typed)
{
	int place = place_of(command, optopt);

	if (found == ':')
		return fail("%s: --%s: missing value (usage: --%s %s)", command->name, command->options[place].name,
		            command->options[place].name, command->options[place].value);
	if (place >= 0)
		return fail("%s: %s: takes no value (usage: --%s)", command->name, typed, command->options[place].name);
	if (optopt == FOUND_HELP)
		return fail("%s: %s: takes no value (usage: --help)", command->name, typed);
	/* What a listing shows of a key is tried wherever a key is taken. */
	if (strncmp(typed, "--fingerprint", strlen("--fingerprint")) == 0 && key_place(command) >= 0)
		return fail("%s: --fingerprint: the key's bytes are needed: give KEY, --key-ip or --key-hex (reset "
		            "and inspect take fingerprints)",
		            command->name);
	if (optopt != 0)
		return fail("%s: -%c: no such option (shmlimit %s --help lists them; -- stands before an operand with "
		            "a dash)",
		            command->name, optopt, command->name);
	return fail_name(command, typed);
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
		int is_last = may_repeat(word, (size_t)len - (word[len - 1] == ']')); /* "[FILE...]", "COMMAND..." */

		least += *word != '[' && word[len - 1] != ']';
		if (is_last) {
			*most = INT_MAX;
			break;
		}
	}
	return least;
}

static int check_operands(const struct command *command, const char *operands, int argc, char **argv)
{
	int len, most, least = count_operands(operands, &most);

	if (argc < least) {
		const char *missing = word_at(operands, argc, &len);

		return fail("%s: %.*s is missing; usage: shmlimit %s %s", command->name, len, missing, command->name,
		            operands);
	}
	if (argc > most && command->extra != NULL)
		return fail("%s: %s: one operand too many (meant is perhaps: %s %s); usage: shmlimit %s %s",
		            command->name, argv[most], command->extra, argv[most], command->name, operands);
	if (argc > most)
		return fail("%s: %s: one operand too many; usage: shmlimit %s%s%s", command->name, argv[most],
		            command->name, most > 0 ? " " : "", operands);
	return STATUS_OK;
}

static int take_option(const struct command *command, int place, struct call *call)
{
	const char *value = command->options[place].value;

	call->option[place] = optarg != NULL ? optarg : "";
	if (value == NULL || !may_repeat(value, strlen(value)))
		return STATUS_OK;
	if (call->repeated_count == REPEATED_MAX)
		return fail("%s: --%s %s: given too often (at most %d times)", command->name,
		            command->options[place].name, optarg, REPEATED_MAX);
	call->repeated[call->repeated_count++] = optarg;
	return STATUS_OK;
}

const char *call_option(const struct call *call, const char *name)
{
	const struct command_option *o = call->command->options;

	for (size_t i = 0; o != NULL && o[i].name != NULL; i++)
		if (strcmp(o[i].name, name) == 0)
			return call->option[i];
	return NULL;
}

int key_is_single(const struct call *call)
{
	return call_option(call, "key-ip") != NULL || call_option(call, "key-text") != NULL ||
	       call_option(call, "key-hex") != NULL || call_option(call, "fingerprint") != NULL;
}

int key_is_option(const struct call *call)
{
	return key_is_single(call) || call_option(call, "keys-from") != NULL;
}

/*
 * The operands without KEY, which an option gives: it is NULL among the others. They are the
 * caller's to free.
 */
static int take_operands(struct call *call, int place, int argc, char **argv)
{
	char **operand = calloc((size_t)argc + 2, sizeof(*operand));
	const char *all = call->command->operands, *key;
	char operands[TEXT_LEN];
	int len, status;

	if (operand == NULL)
		return fail_memory();
	call->operand = operand;
	key = word_at(all, place, &len);
	len += key[len] == ' ';
	snprintf(operands, sizeof(operands), "%.*s%s", (int)(key - all) - (key[len] == '\0'), all, key + len);
	status = check_operands(call->command, operands, argc, argv);
	if (status != STATUS_OK)
		return status;
	/* With their NULL, as main() has it. */
	for (int i = 0; i <= argc; i++)
		operand[i + (i >= place)] = argv[i];
	operand[place] = NULL;
	return STATUS_OK;
}

static int misused(const struct command *command, int status)
{
	return status == STATUS_ERROR && command->misused != 0 ? command->misused : status;
}

int command_run(const struct command *command, int argc, char **argv)
{
	struct option list[OPTIONS_MAX + 2];
	char letters[2 * OPTIONS_MAX + 3];
	struct call call = { .command = command };
	int place = key_place(command);
	int found, status;

	list_options(command, list, letters);
	optind = 0; /* start over: main() has read the options before the command's name */
	while ((found = getopt_long(argc, argv, letters, list, NULL)) != -1) {
		if (found == FOUND_HELP) {
			help_command(command);
			return STATUS_OK;
		}
		if (found == ':' || found == '?')
			return misused(command, fail_option(command, found, argv[optind - 1]));
		status = take_option(command, place_of(command, found), &call);
		if (status != STATUS_OK)
			return misused(command, status);
	}
	call.operand = argv + optind;
	if (place >= 0 && key_is_option(&call))
		status = take_operands(&call, place, argc - optind, argv + optind);
	else
		status = check_operands(command, command->operands, argc - optind, argv + optind);
	status = status == STATUS_OK ? command->run(&call) : misused(command, status);
	if (call.operand != argv + optind)
		free(call.operand);
	return status;
}
