/*
 * duration.c: durations, as people write them (2s, 500ms), and in seconds with
 * all nine decimals.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <inttypes.h>
#include <string.h>

#include "command.h"

#define SECOND UINT64_C(1000000000)

int duration_parse(const char *what, const char *text, uint64_t *ns)
{
	if (*text < '0' || *text > '9')
		return fail("%s %s: not a duration: must be 2s, 500ms or 1m for example, or 0", what, text);
	if (strcmp(text, "0") != 0)
		return unit_parse(what, text, "duration", text, ns);
	*ns = 0;
	return STATUS_OK;
}

const char *duration_text(char text[TEXT_LEN], uint64_t ns)
{
	uint64_t number;
	const char *unit = unit_fitting(ns, &number);

	snprintf(text, TEXT_LEN, "%" PRIu64 "%s", number, number > 0 ? unit : "");
	return text;
}

const char *seconds_text(char text[TEXT_LEN], uint64_t ns)
{
	if (ns == UINT64_MAX)
		snprintf(text, TEXT_LEN, "never");
	else
		snprintf(text, TEXT_LEN, "%" PRIu64 ".%09" PRIu64 " s", ns / SECOND, ns % SECOND);
	return text;
}

const char *span_text(char text[TEXT_LEN], uint64_t ns)
{
	uint64_t minutes = ns / SECOND / 60;

	if (ns == UINT64_MAX || minutes == 0)
		return seconds_text(text, ns);
	snprintf(text, TEXT_LEN, "%" PRIu64 ".%09" PRIu64 " s (%" PRIu64 " d %" PRIu64 " h %" PRIu64 " m)",
	         ns / SECOND, ns % SECOND, minutes / 60 / 24, minutes / 60 % 24, minutes % 60);
	return text;
}
