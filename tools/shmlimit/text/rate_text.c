/*
 * rate_text.c: rates as people write them: 30/60s, 5/m, 1.5k/s, 1/500ms, 100/day.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "command.h"
#include "duration.h"
#include "fail.h"
#include "number_text.h"
#include "rate_text.h"

int rate_parse(const char *what, const char *text, uint64_t *count, uint64_t *period_ns)
{
	const char *t = text;
	uint64_t n, ns;
	int status, error = number_scan(&t, &n);

	if (error == -ERANGE)
		return fail("%s %s: count too large: must be %" PRIu64 " or less", what, text, UINT64_MAX);
	if (error != 0 || *t != '/')
		return fail("%s %s: not a rate COUNT/PERIOD (for example 30/60s or 5/m)", what, text);
	if (n == 0)
		return fail("%s %s: count 0: must be 1 or more", what, text);
	status = period_parse(what, text, t + 1, &ns);
	if (status != STATUS_OK)
		return status;
	if (ns == 0)
		return fail("%s %s: period 0: must be 1ns or more", what, text);
	*count = n;
	*period_ns = ns;
	return STATUS_OK;
}

/* A period of one unit is that unit alone: 5/m. */
const char *rate_text(char text[TEXT_LEN], uint64_t count, uint64_t period_ns)
{
	char period[TEXT_LEN];

	duration_text(period, period_ns);
	snprintf(text, TEXT_LEN, "%" PRIu64 "/%.40s", count,
	         period + (period[0] == '1' && strpbrk(period + 1, "0123456789.") == NULL));
	return text;
}
