/*
 * unit.c: units of time.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <string.h>

#include "command.h"

struct unit {
	const char *name;      /* as it is printed */
	const char *names;     /* as it may be written, each between blanks */
	uint64_t ns;
};

#define SECOND UINT64_C(1000000000)

/* From the longest to the shortest. */
static const struct unit units[] = {
	{ "w", " w week weeks ", 7 * 86400 * SECOND },
	{ "d", " d day days ", 86400 * SECOND },
	{ "h", " h hour hours ", 3600 * SECOND },
	{ "m", " m min mins minute minutes ", 60 * SECOND },
	{ "s", " s sec secs second seconds ", SECOND },
	{ "ms", " ms ", SECOND / 1000 },
	{ "us", " us ", SECOND / 1000000 },
	{ "ns", " ns ", 1 },
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

int unit_parse(const char *what, const char *whole, const char *noun, const char *text, uint64_t *ns)
{
	uint64_t n = 1;
	const struct unit *unit;
	int error = digits_scan(&text, &n);

	if (error != -ERANGE) {
		unit = unit_find(text);
		if (unit == NULL)
			return fail("%s %s: unit %s: must be ns, us, ms, s, m, h, d or w", what, whole,
			            *text == '\0' ? "missing" : text);
		if (__builtin_mul_overflow(n, unit->ns, &n))
			error = -ERANGE;
	}
	if (error == -ERANGE)
		return fail("%s %s: %s too long: must be 30500 weeks or less", what, whole, noun);
	*ns = n;
	return STATUS_OK;
}

const char *unit_fitting(uint64_t ns, uint64_t *number)
{
	const struct unit *unit = units;

	while (unit->ns > 1 && (ns < unit->ns || ns % unit->ns != 0))
		unit++;
	*number = ns / unit->ns;
	return unit->name;
}
