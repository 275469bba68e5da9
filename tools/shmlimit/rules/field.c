/*
 * field.c: what a rule is set with, in words and in a rule.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "choice.h"
#include "command.h"
#include "decimal.h"
#include "fail.h"
#include "field.h"
#include "number_text.h"
#include "limit_text.h"
#include "traits.h"
#include "value_parse.h"
#include "zone_data.h"

#define COLD_FACTOR_DEFAULT 3000u

const char *const field_names[FIELDS] = {
	[FIELD_ALGORITHM] = "algorithm",
	[FIELD_CAPACITY] = "capacity",
	[FIELD_RATE] = "rate",
	[FIELD_PERIOD] = "period",
	[FIELD_WARMUP] = "warmup",
	[FIELD_COLD_FACTOR] = "cold-factor",
	[FIELD_COUNT_REFUSED] = "count-refused",
	[FIELD_MAX_WAIT] = "max-wait",
	[FIELD_NEXT_PAYS] = "next-pays",
	[FIELD_CREDIT] = "credit",
	[FIELD_CUT_OFF] = "cut-off",
	[FIELD_LAW] = "law",
	[FIELD_LEAST] = "least",
	[FIELD_ZONE] = "zone",
	[FIELD_PROTECTED] = "protected",
	[FIELD_MODE] = "mode",
};

int field_applies(int field, uint32_t algorithm)
{
	/* What is not here every algorithm has. */
	static const unsigned sets[FIELDS] = {
		[FIELD_CAPACITY] = SETS_CAPACITY,
		[FIELD_RATE] = SETS_RATE,
		[FIELD_PERIOD] = SETS_PERIOD,
		[FIELD_WARMUP] = SETS_WARMUP,
		[FIELD_COLD_FACTOR] = SETS_WARMUP,
		[FIELD_COUNT_REFUSED] = SETS_COUNT_REFUSED,
		[FIELD_MAX_WAIT] = SETS_MAX_WAIT,
		[FIELD_NEXT_PAYS] = SETS_NEXT_PAYS,
		[FIELD_CREDIT] = SETS_CREDIT,
		[FIELD_CUT_OFF] = SETS_CUT_OFF,
		[FIELD_LAW] = SETS_LAW,
		[FIELD_LEAST] = SETS_LAW,
		[FIELD_ZONE] = SETS_ZONE,
	};

	return sets[field] == 0 || (traits_of(algorithm)->sets & sets[field]) != 0;
}

int field_is_empty(int field, const struct shmlimit_rule *rule)
{
	if ((field == FIELD_LAW || field == FIELD_LEAST) && rule->law == 0)
		return 1;
	if (field == FIELD_ZONE)
		return rule->zone[0] == '\0';
	return traits_of(rule->algorithm)->takes_limits && rule->capacity == 0 &&
	       (field == FIELD_CAPACITY || field == FIELD_RATE);
}

/* 3, 2.5 or 1.125: thousandths. */
static int factor_parse(const char *what, const char *text, uint32_t *milli)
{
	const char *t = text;
	uint64_t whole = 0;
	uint32_t rest = 0;
	int error = digits_scan(&t, &whole);

	if (error == 0 && *t == '.') {
		t++;
		for (uint32_t unit = 100; unit > 0 && *t >= '0' && *t <= '9'; unit /= 10)
			rest += unit * (uint32_t)(*t++ - '0');
	}
	if (error == -EINVAL || (error == 0 && (*t != '\0' || t[-1] == '.')))
		return fail("%s %s: not a factor (for example 3 or 2.5, with at most three decimals)", what, text);
	if (error != 0 || whole < 1 || whole > 1000 || (whole == 1000 && rest != 0))
		return fail("%s %s: must be 1 to 1000", what, text);
	*milli = (uint32_t)whole * 1000 + rest;
	return STATUS_OK;
}

static int flag_parse(const char *what, const char *text, uint32_t flag, struct shmlimit_rule *rule)
{
	uint32_t yes;
	int status = choice_parse(what, text, choices_yes, &yes);

	if (status == STATUS_OK)
		rule->flags = (rule->flags & ~flag) | (yes ? flag : 0);
	return status;
}

static int credit_parse(const char *what, const char *text, uint32_t *credit)
{
	uint64_t number = 0;
	int status = number_parse(what, text, 0, SHMLIMIT_LEASE_CAPACITY_MAX, &number);

	*credit = (uint32_t)number;
	return status;
}

static int least_parse(const char *what, const char *text, uint32_t *least)
{
	uint64_t number = 0;
	int status = number_parse(what, text, 0, SHMLIMIT_WINDOW_MAX, &number);

	*least = (uint32_t)number;
	return status;
}

/* Whether there is such a zone is asked when the rule is set. */
static int zone_parse_name(const char *what, const char *text, struct shmlimit_rule *rule)
{
	if (strlen(text) >= SHMLIMIT_ZONE_MAX || !zone_data_is_name(text))
		return fail("%s %s: not a time zone: must be such as UTC or Europe/Berlin, or none", what, text);
	memset(rule->zone, 0, sizeof(rule->zone));
	memset(rule->zone_offsets, 0, sizeof(rule->zone_offsets));
	if (strcmp(text, "none") != 0)
		strcpy(rule->zone, text);
	return STATUS_OK;
}

int field_parse(const char *rule_name, int field, const char *text, struct shmlimit_rule *rule)
{
	char what[sizeof("rule : count-refused") + SHMLIMIT_RULE_NAME_MAX];

	snprintf(what, sizeof(what), "rule %s: %s", rule_name, field_names[field]);
	switch (field) {
	case FIELD_ALGORITHM:
		return choice_parse(what, text, choices_algorithm(), &rule->algorithm);
	case FIELD_CAPACITY:
		return number_parse(what, text, 1, UINT64_MAX, &rule->capacity);
	case FIELD_RATE:
		return limit_option_parse(what, text, rule);
	case FIELD_PERIOD:
		return duration_parse(what, text, &rule->period_ns);
	case FIELD_WARMUP:
		return duration_parse(what, text, &rule->warmup_ns);
	case FIELD_COLD_FACTOR:
		return factor_parse(what, text, &rule->cold_factor_milli);
	case FIELD_COUNT_REFUSED:
		return flag_parse(what, text, SHMLIMIT_RULE_COUNT_REFUSED, rule);
	case FIELD_MAX_WAIT:
		return duration_parse(what, text, &rule->max_wait_ns);
	case FIELD_CREDIT:
		return credit_parse(what, text, &rule->credit);
	case FIELD_CUT_OFF:
		return flag_parse(what, text, SHMLIMIT_RULE_CUT_OFF, rule);
	case FIELD_LAW:
		return choice_parse(what, text, choices_law, &rule->law);
	case FIELD_LEAST:
		return least_parse(what, text, &rule->least);
	case FIELD_ZONE:
		return zone_parse_name(what, text, rule);
	case FIELD_NEXT_PAYS:
		return flag_parse(what, text, SHMLIMIT_RULE_NEXT_PAYS, rule);
	case FIELD_PROTECTED:
		return flag_parse(what, text, SHMLIMIT_RULE_PROTECTED, rule);
	default:
		return choice_parse(what, text, choices_mode, &rule->mode);
	}
}

static const char *factor_text(char text[TEXT_LEN], uint32_t milli)
{
	int len = snprintf(text, TEXT_LEN, "%" PRIu32 ".%03" PRIu32, milli / 1000, milli % 1000);

	while (text[len - 1] == '0')
		len--;
	text[text[len - 1] == '.' ? len - 1 : len] = '\0';
	return text;
}

const char *field_text(char text[TEXT_LEN], int field, const struct shmlimit_rule *rule)
{
	if (field_is_empty(field, rule))
		return "-";
	switch (field) {
	case FIELD_ALGORITHM:
		return choice_word(choices_algorithm(), rule->algorithm);
	case FIELD_CAPACITY:
		snprintf(text, TEXT_LEN, "%" PRIu64, rule->capacity);
		return text;
	case FIELD_RATE:
		if (rule->zone[0] != '\0')
			limit_text(rule, text);
		else
			rate_text(text, rule->refill, rule->period_ns);
		return text;
	case FIELD_PERIOD:
		return duration_text(text, rule->period_ns);
	case FIELD_WARMUP:
		return duration_text(text, rule->warmup_ns);
	case FIELD_COLD_FACTOR:
		return factor_text(text, rule->cold_factor_milli != 0 ? rule->cold_factor_milli : COLD_FACTOR_DEFAULT);
	case FIELD_COUNT_REFUSED:
		return choice_word(choices_yes, (rule->flags & SHMLIMIT_RULE_COUNT_REFUSED) != 0);
	case FIELD_MAX_WAIT:
		return duration_text(text, rule->max_wait_ns);
	case FIELD_CREDIT:
		snprintf(text, TEXT_LEN, "%" PRIu32, rule->credit);
		return text;
	case FIELD_CUT_OFF:
		return choice_word(choices_yes, (rule->flags & SHMLIMIT_RULE_CUT_OFF) != 0);
	case FIELD_LAW:
		return choice_word(choices_law, rule->law);
	case FIELD_LEAST:
		snprintf(text, TEXT_LEN, "%" PRIu32, rule->least);
		return text;
	case FIELD_ZONE:
		return rule->zone[0] != '\0' ? strcpy(text, rule->zone) : "none";
	case FIELD_NEXT_PAYS:
		return choice_word(choices_yes, (rule->flags & SHMLIMIT_RULE_NEXT_PAYS) != 0);
	case FIELD_PROTECTED:
		return choice_word(choices_yes, (rule->flags & SHMLIMIT_RULE_PROTECTED) != 0);
	default:
		return choice_word(choices_mode, rule->mode);
	}
}

const char *field_cell(char text[TEXT_LEN], int field, const struct shmlimit_rule *rule)
{
	if (field != FIELD_CAPACITY && field != FIELD_RATE && !field_applies(field, rule->algorithm))
		return "-";
	return field_text(text, field, rule);
}

static void flag_copy(uint32_t flag, const struct shmlimit_rule *from, struct shmlimit_rule *to)
{
	to->flags = (to->flags & ~flag) | (from->flags & flag);
}

void field_copy(int field, const struct shmlimit_rule *from, struct shmlimit_rule *to)
{
	switch (field) {
	case FIELD_ALGORITHM:
		to->algorithm = from->algorithm;
		break;
	case FIELD_CAPACITY:
		to->capacity = from->capacity;
		break;
	case FIELD_RATE:
		to->refill = from->refill;
		to->period_ns = from->period_ns;
		break;
	case FIELD_PERIOD:
		to->period_ns = from->period_ns;
		break;
	case FIELD_WARMUP:
		to->warmup_ns = from->warmup_ns;
		break;
	case FIELD_COLD_FACTOR:
		to->cold_factor_milli = from->cold_factor_milli;
		break;
	case FIELD_COUNT_REFUSED:
		flag_copy(SHMLIMIT_RULE_COUNT_REFUSED, from, to);
		break;
	case FIELD_MAX_WAIT:
		to->max_wait_ns = from->max_wait_ns;
		break;
	case FIELD_CREDIT:
		to->credit = from->credit;
		break;
	case FIELD_CUT_OFF:
		flag_copy(SHMLIMIT_RULE_CUT_OFF, from, to);
		break;
	case FIELD_LAW:
		to->law = from->law;
		break;
	case FIELD_LEAST:
		to->least = from->least;
		break;
	case FIELD_ZONE:
		memcpy(to->zone, from->zone, sizeof(to->zone));
		memcpy(to->zone_offsets, from->zone_offsets, sizeof(to->zone_offsets));
		break;
	case FIELD_NEXT_PAYS:
		flag_copy(SHMLIMIT_RULE_NEXT_PAYS, from, to);
		break;
	case FIELD_PROTECTED:
		flag_copy(SHMLIMIT_RULE_PROTECTED, from, to);
		break;
	default:
		to->mode = from->mode;
	}
}
