/*
 * duration.c: durations, as people write them and as they are printed: 2s,
 * 1.5s, 500ms, 1h30m.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "command.h"
#include "duration.h"
#include "fail.h"
#include "number_text.h"

#define SECOND UINT64_C(1000000000)
#define DURATION_MAX (UINT64_MAX - 1) /* the one above is printed as "never" */

struct unit {
	const char *name;  /* as it is printed */
	const char *names; /* as it may be written, each between blanks */
	uint64_t ns;
};

enum { WEEK, DAY, HOUR, MINUTE, SECONDS, MS, US, NS, UNITS };

/* From the longest to the shortest. */
static const struct unit units[UNITS] = {
	[WEEK] = { "w", " w week weeks ", 7 * 86400 * SECOND },
	[DAY] = { "d", " d day days ", 86400 * SECOND },
	[HOUR] = { "h", " h hour hours ", 3600 * SECOND },
	[MINUTE] = { "m", " m min mins minute minutes ", 60 * SECOND },
	[SECONDS] = { "s", " s sec secs second seconds ", SECOND },
	[MS] = { "ms", " ms ", SECOND / 1000 },
	[US] = { "us", " us ", SECOND / 1000000 },
	[NS] = { "ns", " ns ", 1 },
};

/* The unit that the text begins with, up to the next digit. NULL: there is no such unit. */
static const struct unit *unit_find(const char *text, size_t len)
{
	char name[16];

	if (len == 0 || len > sizeof(name) - 3 || memchr(text, ' ', len) != NULL)
		return NULL;
	snprintf(name, sizeof(name), " %.*s ", (int)len, text);
	for (const struct unit *unit = units; unit < units + UNITS; unit++)
		if (strstr(unit->names, name) != NULL)
			return unit;
	return NULL;
}

/*
 * One number, unless `bare`, and its unit; adds to *ns. *last is the unit before. Returns 0, -ERANGE, or, with *text
 * at the unit, -EINVAL: no such unit, -EILSEQ: not shorter than the last, -EDOM: finer than a nanosecond.
 */
static int part_scan(const char **text, int bare, const struct unit **last, uint64_t *ns)
{
	uint64_t whole = 1, fraction = 0, scale = 1, part;
	int error = bare ? 0 : decimal_scan(text, &whole, &fraction, &scale);
	size_t len = strcspn(*text, "0123456789");
	const struct unit *unit = unit_find(*text, len);

	if (error != 0)
		return error;
	if (unit == NULL)
		return -EINVAL;
	if (*last != NULL && unit <= *last)
		return -EILSEQ;
	error = decimal_times(whole, fraction, scale, unit->ns, &part);
	if (error != 0)
		return error;
	if (__builtin_add_overflow(*ns, part, ns) || *ns > DURATION_MAX)
		return -ERANGE;
	*last = unit;
	*text += len;
	return 0;
}

static int fail_part(const char *what, const char *whole, const char *noun, const char *text, int error)
{
	char most[TEXT_LEN];

	switch (-error) {
	case ERANGE:
		return fail("%s %s: %s too long: must be %s or less", what, whole, noun,
		            duration_text(most, DURATION_MAX));
	case EDOM:
		return fail("%s %s: %s finer than a nanosecond: must be a whole number of them", what, whole, noun);
	case EILSEQ:
		return fail("%s %s: unit %s: must be shorter than the one before it, as in 1h30m", what, whole, text);
	default:
		return fail("%s %s: unit %s: must be ns, us, ms, s, m, h, d or w", what, whole,
		            *text == '\0' ? "missing" : text);
	}
}

static int parts_parse(const char *what, const char *whole, const char *noun, const char *text, uint64_t *ns)
{
	const struct unit *last = NULL;
	uint64_t sum = 0;

	do {
		int error = part_scan(&text, !isdigit((unsigned char)*text), &last, &sum);

		if (error != 0)
			return fail_part(what, whole, noun, text, error);
	} while (*text != '\0');
	*ns = sum;
	return STATUS_OK;
}

int period_parse(const char *what, const char *whole, const char *text, uint64_t *ns)
{
	return parts_parse(what, whole, "period", text, ns);
}

int duration_parse(const char *what, const char *text, uint64_t *ns)
{
	if (!isdigit((unsigned char)*text))
		return fail("%s %s: not a duration (for example 2s, 500ms or 1m; or 0)", what, text);
	if (strcmp(text, "0") != 0)
		return parts_parse(what, text, "duration", text, ns);
	*ns = 0;
	return STATUS_OK;
}

/* WHY NOT printf(): a million slots have two of these each. */
static char *put_digits(char *to, uint64_t number)
{
	char digits[20];
	int n = 0;

	do
		digits[n++] = (char)('0' + number % 10);
	while ((number /= 10) > 0);
	while (n > 0)
		*to++ = digits[--n];
	return to;
}

/* So much of the unit, which is a power of ten of what is counted: "1.5s". Zeros at the end are left out. */
static char *put_fraction(char *to, uint64_t value, uint64_t unit, const char *name)
{
	to = put_digits(to, value / unit);
	value %= unit;
	if (value > 0)
		*to++ = '.';
	for (; value > 0; value %= unit) {
		unit /= 10;
		*to++ = (char)('0' + value / unit);
	}
	return stpcpy(to, name);
}

const char *duration_text(char text[TEXT_LEN], uint64_t ns)
{
	char *to = text;
	int i = WEEK;

	if (ns == UINT64_MAX)
		return strcpy(text, "never");
	/* Weeks are for rates such as 100/w: 16 days are no 2w2d. */
	if (ns % units[WEEK].ns != 0)
		i = DAY;
	for (; i < SECONDS; i++) {
		if (ns >= units[i].ns)
			to = stpcpy(put_digits(to, ns / units[i].ns), units[i].name);
		ns %= units[i].ns;
	}
	if (to == text)
		while (i < NS && ns < units[i].ns)
			i++;
	if (ns > 0 || to == text)
		put_fraction(to, ns, units[ns > 0 ? i : SECONDS].ns, units[ns > 0 ? i : SECONDS].name);
	return text;
}

const char *resolution_text(char text[TEXT_LEN], uint64_t ps)
{
	if (ps % 1000 == 0)
		return duration_text(text, ps / 1000);
	put_fraction(text, ps, 1000, "ns");
	return text;
}
