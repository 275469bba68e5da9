/*
 * duration: see duration.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "decimal.h"
#include "duration.h"

#define SECOND UINT64_C(1000000000)
#define DAY (86400 * SECOND)

struct unit {
	const char *name;     /* as it is printed */
	const char *words[5]; /* as it may be written besides */
	uint64_t ns;
};

enum { YEAR, MONTH, WEEK, DAYS, HOUR, MINUTE, SECONDS, MS, US, NS, UNITS };

/* From the longest to the shortest. */
static const struct unit units[UNITS] = {
	[YEAR] = { "y", { "yr", "year", "years" }, 365 * DAY },
	[MONTH] = { "month", { "mo", "months" }, 30 * DAY },
	[WEEK] = { "w", { "week", "weeks" }, 7 * DAY },
	[DAYS] = { "d", { "day", "days" }, DAY },
	[HOUR] = { "h", { "hr", "hrs", "hour", "hours" }, 3600 * SECOND },
	[MINUTE] = { "m", { "min", "mins", "minute", "minutes" }, 60 * SECOND },
	[SECONDS] = { "s", { "sec", "secs", "second", "seconds" }, SECOND },
	[MS] = { "ms", { "msec", "msecs", "millisecond", "milliseconds" }, SECOND / 1000 },
	[US] = { "us", { "usec", "usecs", "microsecond", "microseconds" }, SECOND / 1000000 },
	[NS] = { "ns", { "nsec", "nsecs", "nanosecond", "nanoseconds" }, 1 },
};

static size_t unit_word_len(const char *text)
{
	size_t len = 0;

	while (is_letter(text[len]))
		len++;
	return len;
}

static int is_unit_word(const char *word, const char *text, size_t len)
{
	return strncasecmp(word, text, len) == 0 && word[len] == '\0';
}

/* The unit of the word that the text begins with, or NULL. */
static const struct unit *unit_find(const char *text, size_t len)
{
	/* WHY NOT a minute: to others it is a month. */
	if (len == 0 || (len == 1 && *text == 'M'))
		return NULL;
	for (const struct unit *unit = units; unit < units + UNITS; unit++) {
		if (is_unit_word(unit->name, text, len))
			return unit;
		for (size_t i = 0; i < 5 && unit->words[i] != NULL; i++)
			if (is_unit_word(unit->words[i], text, len))
				return unit;
	}
	return NULL;
}

void duration_words(void (*each)(void *context, const char *word), void *context)
{
	for (const struct unit *unit = units; unit < units + UNITS; unit++) {
		each(context, unit->name);
		for (size_t i = 0; i < 5 && unit->words[i] != NULL; i++)
			each(context, unit->words[i]);
	}
}

/* One number, unless `bare`, and its unit; adds to *ns. *last is the unit before. */
static int part_scan(const char **text, int bare, const struct unit **last, uint64_t *ns)
{
	uint64_t whole = 1, fraction = 0, scale = 1, part;
	const char *t = *text;
	int error = bare ? 0 : decimal_scan(&t, &whole, &fraction, &scale);
	const struct unit *unit;
	size_t len;

	if (error != 0)
		return error;
	t += strspn(t, " \t");
	len = unit_word_len(t);
	unit = unit_find(t, len);
	if (unit == NULL || (*last != NULL && unit <= *last)) {
		*text = t;
		return unit == NULL ? -EINVAL : -EILSEQ;
	}
	error = decimal_times(whole, fraction, scale, unit->ns, &part);
	if (error != 0)
		return error;
	if (__builtin_add_overflow(*ns, part, ns) || *ns > DURATION_MAX)
		return -ERANGE;
	*last = unit;
	*text = t + len;
	return 0;
}

int duration_scan(const char **text, int bare, uint64_t *ns)
{
	const struct unit *last = NULL;
	const char *next = *text;
	uint64_t sum = 0;
	int error;

	do {
		*text = next;
		error = part_scan(text, bare && last == NULL && !is_digit(**text), &last, &sum);
		next = *text + strspn(*text, " \t");
	} while (error == 0 && is_digit(*next));
	if (error == 0)
		*ns = sum;
	return error;
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

/* Zeros at the end are left out. */
char *duration_put_fraction(char *to, uint64_t value, uint64_t unit, const char *name)
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

const char *duration_text(char *text, uint64_t ns)
{
	char *to = text;
	int i = WEEK;

	if (ns == UINT64_MAX)
		return strcpy(text, "never");
	/* Weeks are for rates such as 100/w: 16 days are no 2w2d. */
	if (ns % units[WEEK].ns != 0)
		i = DAYS;
	for (; i < SECONDS; i++) {
		if (ns >= units[i].ns)
			to = stpcpy(put_digits(to, ns / units[i].ns), units[i].name);
		ns %= units[i].ns;
	}
	if (to == text)
		while (i < NS && ns < units[i].ns)
			i++;
	if (ns > 0 || to == text)
		duration_put_fraction(to, ns, units[ns > 0 ? i : SECONDS].ns, units[ns > 0 ? i : SECONDS].name);
	return text;
}
