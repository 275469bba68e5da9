/*
 * field.c: what a rule is set with, in words and in a rule.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <inttypes.h>

#include "command.h"

const char *const field_names[FIELDS] = {
	[FIELD_CAPACITY] = "capacity",
	[FIELD_RATE] = "rate",
	[FIELD_MAX_WAIT] = "max-wait",
	[FIELD_NEXT_PAYS] = "next-pays",
	[FIELD_MODE] = "mode",
};

int field_parse(const char *rule_name, int field, const char *text, struct shmlimit_rule *rule)
{
	char what[sizeof("rule : next-pays") + SHMLIMIT_RULE_NAME_MAX];
	uint32_t next_pays;
	int status;

	snprintf(what, sizeof(what), "rule %s: %s", rule_name, field_names[field]);
	switch (field) {
	case FIELD_CAPACITY:
		return number_parse(what, text, 1, UINT64_MAX, &rule->capacity);
	case FIELD_RATE:
		return rate_parse(what, text, &rule->count, &rule->period_ns);
	case FIELD_MAX_WAIT:
		return duration_parse(what, text, &rule->max_wait_ns);
	case FIELD_NEXT_PAYS:
		status = choice_parse(what, text, choices_yes, &next_pays);
		if (status == STATUS_OK)
			rule->flags = next_pays ? SHMLIMIT_NEXT_PAYS : 0;
		return status;
	default:
		return choice_parse(what, text, choices_mode, &rule->mode);
	}
}

const char *field_text(char text[TEXT_LEN], int field, const struct shmlimit_rule *rule)
{
	switch (field) {
	case FIELD_CAPACITY:
		snprintf(text, TEXT_LEN, "%" PRIu64, rule->capacity);
		return text;
	case FIELD_RATE:
		return rate_text(text, rule->count, rule->period_ns);
	case FIELD_MAX_WAIT:
		return duration_text(text, rule->max_wait_ns);
	case FIELD_NEXT_PAYS:
		return choice_word(choices_yes, (rule->flags & SHMLIMIT_NEXT_PAYS) != 0);
	default:
		return choice_word(choices_mode, rule->mode);
	}
}

void field_copy(int field, const struct shmlimit_rule *from, struct shmlimit_rule *to)
{
	switch (field) {
	case FIELD_CAPACITY:
		to->capacity = from->capacity;
		break;
	case FIELD_RATE:
		to->count = from->count;
		to->period_ns = from->period_ns;
		break;
	case FIELD_MAX_WAIT:
		to->max_wait_ns = from->max_wait_ns;
		break;
	case FIELD_NEXT_PAYS:
		to->flags = from->flags;
		break;
	default:
		to->mode = from->mode;
	}
}
