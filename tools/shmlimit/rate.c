/*
 * rate.c: rates as people write them: 30/60s, 5/m, 1000/s, 1/500ms, 100/day.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "command.h"

struct unit {
	const char *names;     /* each between blanks; the first is the one that is printed */
	uint64_t ns;
};

#define SECOND UINT64_C(1000000000)

/* From the longest to the shortest. */
static const struct unit units[] = {
	{ " w week weeks ", 7 * 86400 * SECOND },
	{ " d day days ", 86400 * SECOND },
	{ " h hour hours ", 3600 * SECOND },
	{ " m min mins minute minutes ", 60 * SECOND },
	{ " s sec secs second seconds ", SECOND },
	{ " ms ", SECOND / 1000 },
	{ " us ", SECOND / 1000000 },
	{ " ns ", 1 },
	{ 0 },
};

static const struct unit *unit_find(const char *name)
{
	size_t len = strlen(name);

	if (len == 0 || strchr(name, ' ') != NULL)
		return NULL;
	for (const struct unit *unit = units; unit->names != NULL; unit++)
		for (const char *at = unit->names; (at = strstr(at, name)) != NULL; at++)
			if (at[-1] == ' ' && at[len] == ' ')
				return unit;
	return NULL;
}

/* What stands behind the slash. */
static int period_parse(const char *what, const char *rate, const char *text, uint64_t *period_ns)
{
	uint64_t n = 1;
	const struct unit *unit;
	int error = digits_scan(&text, &n);

	if (error != -ERANGE) {
		unit = unit_find(text);
		if (unit == NULL)
			return fail("%s %s: unit %s: must be ns, us, ms, s, m, h, d or w", what, rate,
			            *text == '\0' ? "missing" : text);
		if (__builtin_mul_overflow(n, unit->ns, &n))
			error = -ERANGE;
	}
	if (error == -ERANGE)
		return fail("%s %s: period too long: must be 30500 weeks or less", what, rate);
	if (n == 0)
		return fail("%s %s: period 0: must be 1 or more", what, rate);
	*period_ns = n;
	return STATUS_OK;
}

int rate_parse(const char *what, const char *text, uint64_t *count, uint64_t *period_ns)
{
	const char *t = text;
	uint64_t n;
	int status, error = digits_scan(&t, &n);

	if (error == -ERANGE)
		return fail("%s %s: count too large: must be %" PRIu64 " or less", what, text, UINT64_MAX);
	if (error != 0 || *t != '/')
		return fail("%s %s: not a rate: must be COUNT/PERIOD, 30/60s or 5/m for example", what, text);
	if (n == 0)
		return fail("%s %s: count 0: must be 1 or more", what, text);
	status = period_parse(what, text, t + 1, period_ns);
	if (status == STATUS_OK)
		*count = n;
	return status;
}

const char *rate_text(char text[TEXT_LEN], uint64_t count, uint64_t period_ns)
{
	const struct unit *unit = units;
	int len;

	while (unit->ns > 1 && (period_ns < unit->ns || period_ns % unit->ns != 0))
		unit++;
	len = (int)strcspn(unit->names + 1, " ");
	if (period_ns == unit->ns)
		snprintf(text, TEXT_LEN, "%" PRIu64 "/%.*s", count, len, unit->names + 1);
	else
		snprintf(text, TEXT_LEN, "%" PRIu64 "/%" PRIu64 "%.*s", count, period_ns / unit->ns, len,
		         unit->names + 1);
	return text;
}
