/*
 * help.c: what --help prints.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <string.h>

#include "command.h"

#define COLUMN "  %-24s"
#define COLUMN_MAX 23          /* what is longer gets a line of its own */

static void help_option(const struct command_option *option)
{
	char left[TEXT_LEN];

	snprintf(left, sizeof(left), "--%s%s%s", option->name, option->value != NULL ? " " : "",
	         option->value != NULL ? option->value : "");
	printf(COLUMN "%s\n", left, option->purpose);
}

void help_command(const struct command *command)
{
	printf("usage: shmlimit %s%s%s [options]\n\n%s.\n", command->name,
	       *command->operands != '\0' ? " " : "", command->operands, command->purpose);
	if (command->details != NULL)
		printf("%s", command->details);
	putchar('\n');
	for (const struct command_option *o = command->options; o != NULL && o->name != NULL; o++)
		help_option(o);
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
		printf("\n" COLUMN "%s\n" COLUMN "%s\n" COLUMN "%s\n", "-h, --help", "print this help", "-V, --version",
		       "print the version", "-o, --owner USER", "before COMMAND: trust this user's segments too");
	printf("\nshmlimit COMMAND --help says more about one.\n");
}
