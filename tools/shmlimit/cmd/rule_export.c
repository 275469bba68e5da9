/*
 * rule_export.c: shmlimit rule export: a file for shmlimit apply, that would
 * change nothing now.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "escape.h"
#include "choice.h"
#include "field.h"
#include "named_segment.h"
#include "number_text.h"
#include "print.h"
#include "rule_facts.h"
#include "rules.h"
#include "segment_options.h"

static void print_rule(const char *name, const struct shmlimit_rule *rule)
{
	char text[TEXT_LEN];

	printf("\n[%s]\n", name);
	for (int field = 0; field < FIELDS; field++)
		if (field_applies(field, rule->algorithm) && !field_is_empty(field, rule))
			printf("%s = %s\n", field_names[field], field_text(text, field, rule));
}

static void print_segment(const struct shmlimit_info *info)
{
	struct shmlimit_options made;
	char text[TEXT_LEN];

	segment_options_of(info, &made);
	puts("[*]");
	for (int field = 0; field < SEGMENT_OPTIONS; field++)
		printf("%s = %s\n", segment_options_names[field], segment_options_text(text, field, &made));
	printf("enabled = %s\n", choice_word(choices_yes, info->enabled != 0));
}

static void print_file(const char *segment, struct shmlimit *limiter)
{
	struct shmlimit_info info = { .struct_size = sizeof(info) };
	struct rule_facts facts;

	shmlimit_info(limiter, &info);
	printf("# Segment ");
	print_clean(stdout, segment);
	puts(", for shmlimit apply");
	print_segment(&info);
	for (int id = 0; id < (int)info.rules; id++) {
		if (rule_read(limiter, id, &facts) < 0)
			continue;
		if (rule_is_internal(facts.name))
			printf("\n# Not %s: made by a library when it is needed\n", facts.name);
		else
			print_rule(facts.name, &facts.rule);
	}
}

static int run(const struct call *call)
{
	struct shmlimit *limiter;
	int status = segment_open(call->operand[0], SHMLIMIT_OPEN_READ_ONLY, &limiter);

	if (status != STATUS_OK)
		return status;
	print_file(call->operand[0], limiter);
	shmlimit_close(limiter);
	return STATUS_OK;
}

const struct command command_rule_export = {
	.name = "rule export",
	.operands = "NAME",
	.purpose = "print segment and rules as a file for apply",
	.details = "Leaves out, with a comment, rules made by throttle or the library for many hosts: their names\n"
		   "begin with '~'.\n",
	.run = run,
};
