/*
 * duration_parse.c: durations and limits that a user gives. lib/base reads them; what is wrong is said here.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "command.h"
#include "duration_parse.h"
#include "fail.h"

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
		return fail("%s %s: unit %s: must be " DURATION_UNITS, what, whole, *at == '\0' ? "missing" : at);
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

const char *resolution_text(char text[TEXT_LEN], uint64_t ps)
{
	if (ps % 1000 == 0)
		return duration_text(text, ps / 1000);
	duration_put_fraction(text, ps, 1000, "ns");
	return text;
}
