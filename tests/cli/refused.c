/*
 * refused: of which rule `shmlimit check` says that a program was refused another limit for it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <sys/wait.h>

#include "../unit/unit.h"

static char said[1000];

/* The exit status of a check, of one rule or (NULL) of all. */
static int check(const char *rule)
{
	char command[600];
	FILE *from;
	size_t n;

	snprintf(command, sizeof(command), "PATH=\"%.*s/../../bin:$PATH\" shmlimit check %s --interval 1ms%s%s",
	         (int)(strrchr(program_invocation_name, '/') - program_invocation_name), program_invocation_name,
	         unit_name, rule != NULL ? " --rule " : "", rule != NULL ? rule : "");
	from = popen(command, "r");
	if (from == NULL)
		bail("popen");
	n = fread(said, 1, sizeof(said) - 1, from);
	said[n] = '\0';
	return WEXITSTATUS(pclose(from));
}

static int names(const char *rule)
{
	char text[100];

	snprintf(text, sizeof(text), " rule %s was refused another limit and keeps the old one,", rule);
	return strstr(said, text) != NULL;
}

int main(void)
{
	static const char *const rules[] = { "first", "second", "third" };
	struct shmlimit_rule rule = { .struct_size = sizeof(rule), .capacity = 1, .refill = 1, .period_ns = SECOND };
	struct shmlimit *l = unit_create("refused", NULL);

	for (int i = 0; i < 3; i++)
		if (shmlimit_rule_ensure(l, rules[i], &rule) != i)
			bail("rule_ensure");
	is(check(NULL), 0, "where no limit was refused a check finds nothing");
	rule.capacity = SHMLIMIT_CAPACITY_MAX + 1;
	is(shmlimit_rule_ensure(l, "second", &rule), -ERANGE, "a rule is refused another limit");
	is(check(NULL), 1, "a check of the segment is a warning");
	ok(names("second"), "it names the rule: %s", said);
	is(check("second"), 1, "a check of that rule is a warning");
	is(check("first") + check("third"), 0, "a check of another rule is none");
	rule.capacity = 2;
	is(shmlimit_rule_ensure(l, "second", &rule), 1, "the rule gets a limit that it can have");
	is(check(NULL) + check("second"), 0, "from then on nothing is found");
	shmlimit_close(l);
	return tap_done();
}
