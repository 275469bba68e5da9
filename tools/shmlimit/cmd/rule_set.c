/*
 * rule_set.c: shmlimit rule set.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "fail.h"
#include "field.h"
#include "named_segment.h"
#include "rules.h"

/* clang-format off */
static const struct command_option options[] = {
	[FIELD_ALGORITHM] = { "algorithm", "WHICH", "funnel, warmup, window, lease, counter, hold or gcra (a new rule: funnel)" },
	[FIELD_CAPACITY] = { "capacity", "N", "funnel: the largest burst; counter: the largest count; hold: places" },
	[FIELD_RATE] = { "rate", "LIMIT", "5/minute, '10/s burst 20', '1000/h strict', '20 at once', 'auto at once', block, unlimited" },
	[FIELD_PERIOD] = { "period", "DURATION", "counter: how long a count lives; hold: how long a place is held at most" },
	[FIELD_WARMUP] = { "warmup", "DURATION", "warmup: time from cold to warm" },
	[FIELD_COLD_FACTOR] = { "cold-factor", "X", "warmup: cold tokens take X times as long (a new rule: 3)" },
	[FIELD_COUNT_REFUSED] = { "count-refused", "YES|NO", "window: refused tokens count too (a new rule: no)" },
	[FIELD_MAX_WAIT] = { "max-wait", "DURATION", "longest wait that a reservation may cause: 2s (a new rule: 0)" },
	[FIELD_NEXT_PAYS] = { "next-pays", "YES|NO", "funnel: yes: the next caller waits for a debt (a new rule: no)" },
	[FIELD_CREDIT] = { "credit", "N", "lease: tokens before the backend is asked, for an unknown key (a new rule: 0)" },
	[FIELD_CUT_OFF] = { "cut-off", "YES|NO", "hold: a place ends after its period though its holder lives (a new rule: no)" },
	[FIELD_LAW] = { "law", "LAW", "hold: vegas, gradient2 or aimd finds how many places there are (a new rule: none)" },
	[FIELD_LEAST] = { "least", "N", "hold: with a law, the least number of places; the capacity is the largest" },
	[FIELD_ZONE] = { "zone", "ZONE", "counter: count by this time zone's hour, day, week or month (a new rule: none)" },
	[FIELD_PROTECTED] = { "protected", "YES|NO", "keep slots against keys of other rules when the table is full (a new rule: no)" },
	[FIELD_MODE] = { "mode", "MODE", "enforce, dry-run, off or block (a new rule: enforce)" },
	[FIELDS] = { "limit", "LIMIT", "the same as --rate; gcra: for calls without a --limit of their own" },
	{ 0 },
};
/* clang-format on */

static int options_parse(const struct call *call, struct rule_spec *spec)
{
	const char *limit = call->option[FIELDS], *typed = call->operand[2];
	int status = rule_spec_begin(spec, call->operand[1]);

	if (status == STATUS_OK && limit != NULL && call->option[FIELD_RATE] != NULL)
		return fail("--limit %s: the same as --rate %s: give one of them", limit, call->option[FIELD_RATE]);
	if (status == STATUS_OK && typed != NULL && (limit != NULL || call->option[FIELD_RATE] != NULL))
		return fail("%s: the same as %s %s: give one of them", typed, limit != NULL ? "--limit" : "--rate",
		            limit != NULL ? limit : call->option[FIELD_RATE]);
	if (typed != NULL)
		limit = typed;
	if (status == STATUS_OK && limit != NULL)
		status = rule_spec_parse(spec, FIELD_RATE, limit);
	for (int field = 0; field < FIELDS && status == STATUS_OK; field++)
		if (call->option[field] != NULL)
			status = rule_spec_parse(spec, field, call->option[field]);
	if (status == STATUS_OK && spec->given == 0)
		return fail("rule %s: nothing to set: give --capacity and --rate, --mode, or another option",
		            spec->name);
	return status;
}

static int run(const struct call *call)
{
	const char *segment = call->operand[0];
	struct rule_spec spec;
	struct shmlimit *limiter;
	int status = options_parse(call, &spec);

	if (status == STATUS_OK)
		status = segment_open(segment, 0, &limiter);
	if (status != STATUS_OK)
		return status;
	status = rule_spec_complete(&spec, limiter, segment);
	if (status == STATUS_OK)
		status = rule_spec_set(&spec, limiter, segment);
	shmlimit_close(limiter);
	return status;
}

const struct command command_rule_set = {
	.name = "rule set",
	.operands = "NAME RULE [LIMIT]",
	.purpose = "define a rule, or change one",
	.details =
		"LIMIT is the same as --rate LIMIT. A new rule needs --rate; with --algorithm warmup, --warmup too; with --algorithm counter or gcra, nothing; with\n"
		"--algorithm hold, --rate or --capacity and --period. An existing rule keeps what is not given, and its\n"
		"keys keep their tokens. shmlimit(7) has all that a LIMIT can be.\n",
	.options = options,
	.run = run,
};
