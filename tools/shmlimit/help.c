/*
 * help.c: what --help prints.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <string.h>

#include "command.h"
#include "number_text.h"

char command_letter(const struct command *command, size_t i)
{
	return command->letters != NULL && i < strlen(command->letters) ? command->letters[i] : '\0';
}

#define COLUMN "  %-24s"
#define COLUMN_MAX 23 /* what is longer gets a line of its own */

static void help_option(const struct command_option *option, char letter)
{
	char left[TEXT_LEN], dash[] = { '-', letter, ',', ' ', '\0' };

	snprintf(left, sizeof(left), "%s--%s%s%s", letter != '\0' ? dash : "", option->name,
	         option->value != NULL ? " " : "", option->value != NULL ? option->value : "");
	if (strlen(left) > COLUMN_MAX)
		printf("  %s\n" COLUMN "%s\n", left, "", option->purpose);
	else
		printf(COLUMN "%s\n", left, option->purpose);
}

void help_command(const struct command *command)
{
	const struct command_option *o = command->options;

	printf("usage: shmlimit %s%s%s [options]\n\n%s.\n", command->name, *command->operands != '\0' ? " " : "",
	       command->operands, command->purpose);
	if (command->details != NULL)
		printf("%s", command->details);
	putchar('\n');
	for (size_t i = 0; o != NULL && o[i].name != NULL; i++)
		help_option(&o[i], command_letter(command, i));
	printf(COLUMN "%s\n", "-h, --help", "print this help");
}

void help_all(const struct command *const *commands, const char *prefix)
{
	printf("usage: shmlimit %sCOMMAND [operands] [options]\n\n", prefix);
	for (; *commands != NULL; commands++) {
		char left[TEXT_LEN];

		if (strncmp((*commands)->name, prefix, strlen(prefix)) != 0)
			continue;
		snprintf(left, sizeof(left), "%s %s", (*commands)->name, (*commands)->operands);
		if (strlen(left) > COLUMN_MAX)
			printf("  %s\n" COLUMN "%s\n", left, "", (*commands)->purpose);
		else
			printf(COLUMN "%s\n", left, (*commands)->purpose);
	}
	if (*prefix == '\0')
		printf("\nls, add, rm and show are list, create, destroy and inspect; rule ls, add and rm are rule list, set "
		       "and remove.\n\n" COLUMN "%s\n" COLUMN "%s\n" COLUMN "%s\n",
		       "-h, --help", "print this help", "-V, --version", "print the version", "-o, --owner USER",
		       "before COMMAND: trust this user's segments too");
	printf("\nshmlimit COMMAND --help says more about one.\n");
}
