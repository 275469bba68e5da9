/*
 * rate: see rate.h. Pure.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "rate.h"

#define SECOND UINT64_C(1000000000)
#define DAY (86400 * SECOND)
#define PLACE_NS (60 * SECOND) /* default expiry of a place; Laravel's funnel has the same */

/* The words of a unit are separated by spaces. */
static const struct unit {
	const char *words;
	uint64_t ns;
} units[] = {
	{ "s sec secs second seconds", SECOND },
	{ "m min mins minute minutes", 60 * SECOND },
	{ "h hr hrs hour hours", 3600 * SECOND },
	{ "d day days", DAY },
	{ "w week weeks", 7 * DAY },
	{ "month months", 30 * DAY },
	{ "y year years", 365 * DAY },
};

static const char *skip_spaces(const char *at)
{
	return at + strspn(at, " \t");
}

/* Read a number of 1 or more, with its suffix. Returns what follows it, or NULL. */
static const char *read_count(const char *at, uint64_t *count)
{
	uint64_t factor = 1;

	if (*at < '0' || *at > '9')
		return NULL;
	for (*count = 0; *at >= '0' && *at <= '9'; at++)
		if (__builtin_mul_overflow(*count, 10, count) ||
		    __builtin_add_overflow(*count, (uint64_t)(*at - '0'), count))
			return NULL;
	if (*at == 'K')
		factor = 1000;
	else if (*at == 'M')
		factor = 1000000;
	else if (*at == 'G')
		factor = 1000000000;
	at += factor != 1;
	return __builtin_mul_overflow(*count, factor, count) || *count == 0 ? NULL : at;
}

static size_t word_length(const char *at)
{
	return strcspn(at, " \t");
}

static int is_word(const char *words, const char *at, size_t length)
{
	for (; *words != '\0'; words += strspn(words, " ")) {
		size_t n = word_length(words);

		if (n == length && strncasecmp(words, at, n) == 0)
			return 1;
		words += n;
	}
	return 0;
}

static const char *read_unit(const char *at, uint64_t *ns)
{
	size_t length = word_length(at);

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (is_word(units[i].words, at, length)) {
			*ns = units[i].ns;
			return at + length;
		}
	return NULL;
}

/* Skip "/" or "per", with or without spaces around it. "10r/s" is the form of nginx's limit_req. */
static const char *read_separator(const char *at)
{
	if (at[0] == 'r' && at[1] == '/')
		return at + 2;
	at = skip_spaces(at);
	if (*at == '/')
		return skip_spaces(at + 1);
	return strncasecmp(at, "per", 3) == 0 && (at[3] == ' ' || at[3] == '\t') ? skip_spaces(at + 3) : NULL;
}

static const char *read_period(const char *at, uint64_t *ns)
{
	uint64_t n = 1, unit;
	const char *after = read_count(at, &n);

	if (after != NULL)
		at = skip_spaces(after);
	at = read_unit(at, &unit);
	return at == NULL || __builtin_mul_overflow(n, unit, ns) ? NULL : skip_spaces(at);
}

/* Read "at once [for N UNIT]" behind a number of places. Returns whether that is what `at` says. */
static int read_places(const char *at, uint64_t *period_ns)
{
	static const char words[] = "at once";

	at = skip_spaces(at);
	if (strncasecmp(at, words, sizeof(words) - 1) != 0)
		return 0;
	at += sizeof(words) - 1;
	*period_ns = PLACE_NS;
	if (strcspn(at, " \t") > 0)
		return 0;
	at = skip_spaces(at);
	if (strncasecmp(at, "for", 3) == 0 && (at[3] == ' ' || at[3] == '\t'))
		at = read_period(skip_spaces(at + 3), period_ns);
	return at != NULL && *at == '\0';
}

int rate_read(const char *text, struct shmlimit_rule *rule)
{
	uint64_t count, period_ns, burst;
	const char *at = read_count(skip_spaces(text), &count);

	if (at != NULL && read_places(at, &period_ns)) {
		*rule = (struct shmlimit_rule){ .struct_size = rule->struct_size,
			                        .algorithm = SHMLIMIT_HOLD,
			                        .capacity = count,
			                        .refill = count,
			                        .period_ns = period_ns };
		return 0;
	}
	if (at != NULL)
		at = read_separator(at);
	if (at != NULL)
		at = read_period(at, &period_ns);
	if (at == NULL)
		return -EINVAL;
	burst = count;
	if (strncasecmp(at, "burst", 5) == 0 && (at[5] == '=' || at[5] == ' ')) {
		at = read_count(skip_spaces(at + 6), &burst);
		if (at == NULL)
			return -EINVAL;
	}
	if (*skip_spaces(at) != '\0')
		return -EINVAL;
	rule->capacity = burst;
	rule->refill = count;
	rule->period_ns = period_ns;
	return 0;
}
