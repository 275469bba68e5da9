/*
 * rule_show.c: shmlimit rule show.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <inttypes.h>
#include <time.h>

#include "command.h"
#include "duration.h"
#include "fail.h"
#include "field.h"
#include "named_segment.h"
#include "number_text.h"
#include "print.h"
#include "rule_facts.h"

#define SECOND ((uint64_t)1000000000)

enum { JSON };

static const struct command_option options[] = {
	[JSON] = { "json", NULL, "print JSON" },
	{ 0 },
};

/* A clock that stepped back since says: now. */
static void print_refused(uint64_t refused_unix_ns)
{
	struct timespec now;
	char text[TEXT_LEN];
	uint64_t s;

	clock_gettime(CLOCK_REALTIME, &now);
	s = refused_unix_ns / SECOND < (uint64_t)now.tv_sec ? (uint64_t)now.tv_sec - refused_unix_ns / SECOND : 0;
	print_line("refused", "another limit, %s ago: this one is in force", duration_text(text, s * SECOND));
}

static void print_facts(const struct rule_facts *facts)
{
	char text[TEXT_LEN];

	print_line("rule", "%s", facts->name);
	print_line("id", "%d", facts->id);
	for (int field = 0; field < FIELDS; field++)
		if ((field == FIELD_CAPACITY || field_applies(field, facts->rule.algorithm)) &&
		    !field_is_empty(field, &facts->rule))
			print_line(field_names[field], "%s", field_text(text, field, &facts->rule));
	if (facts->rule.credit != 0)
		print_line("overshoot", "at most %" PRIu32 " on each host that does not know the key",
		           facts->rule.credit);
	if (facts->rule.refused_unix_ns != 0)
		print_refused(facts->rule.refused_unix_ns);
	print_line("resolution", "%s", resolution_text(text, facts->range.resolution_ps));
	print_line("time to full", "%s", duration_text(text, facts->range.refill_ns));
	print_line("range back", "%s", duration_text(text, facts->range.back_ns));
	print_line("range ahead", "%s", duration_text(text, facts->range.ahead_ns));
}

static int show(const struct call *call, struct shmlimit *limiter)
{
	struct rule_facts facts;
	int id, error, status = rule_find(limiter, call->operand[0], call->operand[1], &id);

	if (status != STATUS_OK)
		return status;
	error = rule_read(limiter, id, &facts);
	if (error < 0)
		return fail_rule(call->operand[0], call->operand[1], error);
	if (call->option[JSON] != NULL)
		return print_json(rule_json(&facts));
	print_facts(&facts);
	return STATUS_OK;
}

static int run(const struct call *call)
{
	struct shmlimit *limiter;
	int status = segment_open(call->operand[0], SHMLIMIT_OPEN_READ_ONLY, &limiter);

	if (status != STATUS_OK)
		return status;
	status = show(call, limiter);
	shmlimit_close(limiter);
	return status;
}

const struct command command_rule_show = {
	.name = "rule show",
	.operands = "NAME RULE",
	.purpose = "show a rule, and the resolution and range of its clock",
	.options = options,
	.run = run,
};
