/*
 * value_parse.c: numbers, durations and limits that a user gives. lib/base reads them; what is
 * wrong is said here.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "command.h"
#include "decimal.h"
#include "fail.h"
#include "value_parse.h"

int number_parse(const char *what, const char *text, uint64_t min, uint64_t max, uint64_t *value)
{
	const char *t = text;
	uint64_t v;
	int error = number_scan(&t, &v);

	if (error == -EINVAL || error == -EDOM || (error == 0 && *t != '\0'))
		return fail("%s %s: not a whole number (for example 1500, 1.5k, 2M or 64Ki)", what, text);
	if (error == 0 && v < min && max == UINT64_MAX)
		return fail("%s %s: must be %" PRIu64 " or more", what, text, min);
	if (error != 0 || v < min || v > max)
		return fail("%s %s: must be %" PRIu64 " to %" PRIu64, what, text, min, max);
	*value = v;
	return STATUS_OK;
}

int thousandths_parse(const char *what, const char *text, uint64_t max, uint32_t *value)
{
	uint64_t whole, fraction, scale, v = 0;
	const char *t = text;
	int error = decimal_scan(&t, &whole, &fraction, &scale);

	if (error == 0)
		error = decimal_times(whole, fraction, scale, 1000, &v);
	if (error == 0 && (*t != '\0' || v < 1 || v > 1000 * max))
		error = -ERANGE;
	if (error != 0)
		return fail("%s %s: must be 0.001 to %" PRIu64 ", with up to three decimals", what, text, max);
	*value = (uint32_t)v;
	return STATUS_OK;
}

static int fail_duration(const char *what, const char *whole, const char *at, int error)
{
	char most[DURATION_TEXT_MAX];

	switch (-error) {
	case ERANGE:
		return fail("%s %s: duration too long: must be %s or less", what, whole,
		            duration_text(most, DURATION_MAX));
	case EDOM:
		return fail("%s %s: duration finer than a nanosecond: must be a whole number of them", what, whole);
	case EILSEQ:
		return fail("%s %s: unit %s: must be shorter than the one before it, as in 1h30m", what, whole, at);
	default:
		if (*at == '\0')
			return fail("%s %s: unit missing: write %ss if these are seconds (or " DURATION_UNITS ")", what,
			            whole, whole);
		return fail("%s %s: unit %s: must be " DURATION_UNITS, what, whole, at);
	}
}

int duration_parse(const char *what, const char *text, uint64_t *ns)
{
	const char *at = text;
	int error;

	if (strcmp(text, "0") == 0) {
		*ns = 0;
		return STATUS_OK;
	}
	if (!isdigit((unsigned char)*text))
		return fail("%s %s: not a duration (for example 2s, 500ms or 1m; or 0)", what, text);
	error = duration_scan(&at, 0, ns);
	if (error == 0 && *at != '\0')
		error = -EINVAL;
	return error == 0 ? STATUS_OK : fail_duration(what, text, at, error);
}

int duration_range_parse(const char *what, const char *text, uint64_t least, uint64_t most, uint64_t *ns)
{
	char from[DURATION_TEXT_MAX], to[DURATION_TEXT_MAX];
	uint64_t value;
	int status = duration_parse(what, text, &value);

	if (status != STATUS_OK)
		return status;
	if (value < least || value > most)
		return fail("%s %s: must be %s to %s", what, text, duration_text(from, least), duration_text(to, most));
	*ns = value;
	return STATUS_OK;
}

int limit_option_parse(const char *what, const char *text, struct shmlimit_rule *rule)
{
	struct shmlimit_problem wrong;

	return shmlimit_rule_parse(text, rule, &wrong) == 0 ? STATUS_OK : fail("%s %s: %s", what, text, wrong.text);
}

int call_limit_parse(const char *what, const char *text, struct shmlimit_limit *limit)
{
	struct shmlimit_problem wrong;

	return shmlimit_limit_parse(text, limit, &wrong) == 0 ? STATUS_OK : fail("%s %s: %s", what, text, wrong.text);
}
