/*
 * commands.c: every command, and which one was meant.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <string.h>

#include "allocate.h"
#include "command.h"
#include "fail.h"
#include "nearest.h"

static const struct command command_help;

/* clang-format off */
static const struct command *const commands[] = {
	&command_help,
	&command_size,
	&command_replay,
	&command_create,
	&command_destroy,
	&command_grow,
	&command_list,
	&command_rule_set,
	&command_rule_show,
	&command_rule_list,
	&command_rule_remove,
	&command_rule_export,
	&command_apply_all, /* before what its name begins with */
	&command_apply,
	&command_take,
	&command_peek,
	&command_reserve,
	&command_acquire,
	&command_exec,
	&command_hold,
	&command_charge,
	&command_refund,
	&command_count,
	&command_throttle,
	&command_pause,
	&command_reset,
	&command_ban,
	&command_unban,
	&command_bans,
	&command_global_take,
	&command_global_inspect,
	&command_global_ping,
	&command_global_reset,
	&command_global_status,
	&command_agent,
	&command_enable,
	&command_disable,
	&command_inspect,
	&command_keys,
	&command_top,
	&command_stat,
	&command_metrics,
	&command_check,
	&command_verify,
	&command_save,
	&command_load,
	NULL,
};
/* clang-format on */

/* Words that users of other programs type. */
static const struct alias {
	const char *word, *name;
} aliases[] = {
	{ "ls", "list" },           { "add", "create" },        { "rm", "destroy" },          { "show", "inspect" },
	{ "rule ls", "rule list" }, { "rule add", "rule set" }, { "rule rm", "rule remove" }, { 0 },
};

/* How many of the words at argv[0] spell the name: 0, 1 or 2. */
static int words_spelling(const char *name, char **argv)
{
	size_t len = strcspn(name, " ");

	if (argv[0] == NULL || strlen(argv[0]) != len || strncmp(name, argv[0], len) != 0)
		return 0;
	if (name[len] == '\0')
		return 1;
	return argv[1] != NULL && strcmp(name + len + 1, argv[1]) == 0 ? 2 : 0;
}

/*
 * The command that argv[0], or the two of argv[0] and argv[1], spell, and *words of them; or NULL.
 */
static const struct command *find(char **argv, int *words)
{
	const char *name = NULL;

	for (const struct alias *a = aliases; a->word != NULL && name == NULL; a++)
		if ((*words = words_spelling(a->word, argv)) > 0)
			name = a->name;
	for (const struct command *const *c = commands; *c != NULL; c++)
		if (name != NULL ? strcmp((*c)->name, name) == 0 : (*words = words_spelling((*c)->name, argv)) > 0)
			return *c;
	return NULL;
}

/* Words that need a second one. */
static const struct group {
	const char *word, *verbs;
} groups[] = {
	{ "rule", "rule set, show, list, remove or export" },
	{ "global", "global take, inspect, ping, reset or status" },
};

static const struct group *group_find(const char *word)
{
	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++)
		if (strcmp(word, groups[i].word) == 0)
			return &groups[i];
	return NULL;
}

void commands_help(const char *prefix)
{
	help_all(commands, prefix);
}

static void group_help(const struct group *group)
{
	char prefix[16];

	snprintf(prefix, sizeof(prefix), "%s ", group->word);
	commands_help(prefix);
}

/*
 * A word that none of the names begins with; or, with a group, a word that is no command of the
 * group.
 */
static int fail_unknown(const char *word, const struct group *group)
{
	struct nearest nearest = { .word = word };
	char first[32];

	if (group != NULL)
		return fail("%s %s: no such command: use %s", group->word, word, group->verbs);
	for (const struct command *const *c = commands; *c != NULL; c++) {
		snprintf(first, sizeof(first), "%.*s", (int)strcspn((*c)->name, " "), (*c)->name);
		nearest_try(&nearest, first);
	}
	return fail("%s: no such command (%sshmlimit --help lists them)", word, nearest_text(&nearest, ""));
}

/* The first word, alone or with a second word that is no subcommand. */
static int group_run(const struct group *group, const char *verb)
{
	if (verb == NULL)
		return fail("%s: missing command: use %s", group->word, group->verbs);
	if (strcmp(verb, "--help") != 0 && strcmp(verb, "-h") != 0)
		return fail_unknown(verb, group);
	group_help(group);
	return STATUS_OK;
}

int commands_run(int argc, char **argv)
{
	const struct group *group = group_find(argv[0]);
	int words;
	const struct command *command = find(argv, &words);

	allocate_for_json();
	if (command != NULL)
		return command_run(command, argc - words + 1, argv + words - 1);
	return group != NULL ? group_run(group, argv[1]) : fail_unknown(argv[0], NULL);
}

static int help_run(const struct call *call)
{
	const struct command *command;
	const struct group *group;
	int words;

	if (call->operand[0] == NULL) {
		commands_help("");
		return STATUS_OK;
	}
	command = find(call->operand, &words);
	group = group_find(call->operand[0]);
	if (command != NULL)
		help_command(command);
	else if (group != NULL && call->operand[1] == NULL)
		group_help(group);
	else
		return fail_unknown(call->operand[group != NULL], group);
	return STATUS_OK;
}

static const struct command command_help = {
	.name = "help",
	.operands = "[COMMAND...]",
	.purpose = "print how a command is used, as its --help does",
	.run = help_run,
};
