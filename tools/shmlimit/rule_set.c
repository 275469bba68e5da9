/*
 * rule_set.c: shmlimit rule set.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <inttypes.h>

#include "command.h"

enum { CAPACITY, RATE, MODE };

static const struct command_option options[] = {
	[CAPACITY] = { "capacity", "N", "tokens that a full funnel holds: the largest burst, 1 or more" },
	[RATE] = { "rate", "COUNT/PERIOD", "tokens that come back a period: 30/60s, 5/m, 100/day, 1/500ms" },
	[MODE] = { "mode", "MODE", "enforce, dry-run or off (a new rule: enforce)" },
	{ 0 },
};

static int options_parse(const struct call *call, struct shmlimit_rule *rule)
{
	const char *const *text = call->option;
	char what[sizeof("rule : capacity") + SHMLIMIT_RULE_NAME_MAX];
	int status = STATUS_OK;

	if (text[CAPACITY] == NULL && text[RATE] == NULL && text[MODE] == NULL)
		return fail("rule %s: nothing to set: must be --capacity with --rate, or --mode",
		            call->operand[1]);
	snprintf(what, sizeof(what), "rule %s: capacity", call->operand[1]);
	if (text[CAPACITY] != NULL)
		status = number_parse(what, text[CAPACITY], 1, UINT64_MAX, &rule->capacity);
	snprintf(what, sizeof(what), "rule %s: rate", call->operand[1]);
	if (status == STATUS_OK && text[RATE] != NULL)
		status = rate_parse(what, text[RATE], &rule->count, &rule->period_ns);
	snprintf(what, sizeof(what), "rule %s: mode", call->operand[1]);
	if (status == STATUS_OK && text[MODE] != NULL)
		status = choice_parse(what, text[MODE], choices_mode, &rule->mode);
	return status;
}

/* What was not given stays as the rule has it. */
static int complete(const struct call *call, struct shmlimit *limiter, struct shmlimit_rule *rule)
{
	const char *segment = call->operand[0], *name = call->operand[1];
	struct shmlimit_rule old = { .struct_size = sizeof(old) };
	int id = shmlimit_rule_find(limiter, name);
	int error = id < 0 ? id : shmlimit_rule_get(limiter, id, &old);

	if (error == -ESRCH && call->option[CAPACITY] != NULL && call->option[RATE] != NULL)
		return STATUS_OK;
	if (error < 0)
		return fail_rule(segment, name, error);
	if (call->option[CAPACITY] == NULL)
		rule->capacity = old.capacity;
	if (call->option[RATE] == NULL) {
		rule->count = old.count;
		rule->period_ns = old.period_ns;
	}
	if (call->option[MODE] == NULL)
		rule->mode = old.mode;
	return STATUS_OK;
}

static int fail_set(const struct call *call, struct shmlimit *limiter, const struct shmlimit_rule *rule,
                    int error)
{
	const char *segment = call->operand[0], *name = call->operand[1];
	struct shmlimit_rule old = { .struct_size = sizeof(old) };
	char rate[TEXT_LEN];

	switch (-error) {
	case EBUSY:
		shmlimit_rule_get(limiter, shmlimit_rule_find(limiter, name), &old);
		return fail("rule %s: exists with capacity %" PRIu64 " and rate %s: must be set to the same, "
		            "or be removed first, its keys forgotten (shmlimit rule remove %s %s)",
		            name, old.capacity, rate_text(rate, old.count, old.period_ns), segment, name);
	case ERANGE:
		return fail("rule %s: capacity %" PRIu64 " at rate %s: cannot be represented exactly: must "
		            "be a smaller capacity, or a rate of smaller or rounder numbers",
		            name, rule->capacity, rate_text(rate, rule->count, rule->period_ns));
	default:
		return fail_rule(segment, name, error);
	}
}

static int run(const struct call *call)
{
	struct shmlimit_rule rule = { .struct_size = sizeof(rule) };
	struct shmlimit *limiter;
	int error, status = options_parse(call, &rule);

	if (status == STATUS_OK)
		status = segment_open(call->operand[0], 0, &limiter);
	if (status != STATUS_OK)
		return status;
	status = complete(call, limiter, &rule);
	if (status == STATUS_OK) {
		error = shmlimit_rule_set(limiter, call->operand[1], &rule);
		if (error < 0)
			status = fail_set(call, limiter, &rule, error);
	}
	shmlimit_close(limiter);
	return status;
}

const struct command command_rule_set = {
	.name = "rule set",
	.operands = "NAME RULE",
	.purpose = "define a rule, or change the mode of one",
	.details = "A new rule needs --capacity and --rate; one that exists keeps what is not given.\n",
	.options = options,
	.run = run,
};
