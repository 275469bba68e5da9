/*
 * rate.c: rates as people write them: 30/60s, 5/m, 1000/s, 1/500ms, 100/day.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <inttypes.h>

#include "command.h"

int rate_parse(const char *what, const char *text, uint64_t *count, uint64_t *period_ns)
{
	const char *t = text;
	uint64_t n, ns;
	int status, error = digits_scan(&t, &n);

	if (error == -ERANGE)
		return fail("%s %s: count too large: must be %" PRIu64 " or less", what, text, UINT64_MAX);
	if (error != 0 || *t != '/')
		return fail("%s %s: not a rate: must be COUNT/PERIOD, 30/60s or 5/m for example", what, text);
	if (n == 0)
		return fail("%s %s: count 0: must be 1 or more", what, text);
	status = unit_parse(what, text, "period", t + 1, &ns);
	if (status != STATUS_OK)
		return status;
	if (ns == 0)
		return fail("%s %s: period 0: must be 1 or more", what, text);
	*count = n;
	*period_ns = ns;
	return STATUS_OK;
}

const char *rate_text(char text[TEXT_LEN], uint64_t count, uint64_t period_ns)
{
	uint64_t number;
	const char *unit = unit_fitting(period_ns, &number);

	if (number == 1)
		snprintf(text, TEXT_LEN, "%" PRIu64 "/%s", count, unit);
	else
		snprintf(text, TEXT_LEN, "%" PRIu64 "/%" PRIu64 "%s", count, number, unit);
	return text;
}
