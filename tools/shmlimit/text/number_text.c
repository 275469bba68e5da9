/*
 * number_text.c: whole numbers, as people write them: 65536, 150M, 64Ki, 1.5k. A
 * decimal suffix multiplies by powers of 1000, a binary one by powers of 1024,
 * whatever is counted. WHY NOT 1024 for K where slots are counted: a rule of
 * 10M tokens and a table of 10M slots would be different numbers.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "command.h"
#include "fail.h"
#include "number_text.h"

static const char suffixes[] = "kMGTPE"; /* each is 1000 or 1024 times its predecessor */

int digits_scan(const char **text, uint64_t *value)
{
	const char *t = *text;
	uint64_t sum = 0;

	if (*t < '0' || *t > '9')
		return -EINVAL;
	for (; *t >= '0' && *t <= '9'; t++)
		if (__builtin_mul_overflow(sum, 10, &sum) || __builtin_add_overflow(sum, (uint64_t)(*t - '0'), &sum))
			return -ERANGE;
	*text = t;
	*value = sum;
	return 0;
}

int decimal_scan(const char **text, uint64_t *whole, uint64_t *fraction, uint64_t *scale)
{
	const char *t = *text, *point;
	int error = digits_scan(&t, whole);

	*fraction = 0;
	*scale = 1;
	if (error != 0)
		return error;
	if (*t == '.' && t[1] >= '0' && t[1] <= '9') {
		point = ++t;
		error = digits_scan(&t, fraction);
		for (; error == 0 && point < t; point++)
			if (__builtin_mul_overflow(*scale, 10, scale))
				error = -ERANGE;
		if (error != 0)
			return error;
	}
	*text = t;
	return 0;
}

int decimal_times(uint64_t whole, uint64_t fraction, uint64_t scale, uint64_t unit, uint64_t *value)
{
	unsigned __int128 part = (unsigned __int128)fraction * unit;
	uint64_t product;

	if (part % scale != 0)
		return -EDOM;
	if (__builtin_mul_overflow(whole, unit, &product) ||
	    __builtin_add_overflow(product, (uint64_t)(part / scale), value))
		return -ERANGE;
	return 0;
}

/* What the suffix multiplies by, moving *text behind it; 1 without one. */
static uint64_t suffix_scan(const char **text)
{
	uint64_t unit = 1, step = 1000;
	const char *t = *text;

	for (int i = 0; i < 4; i++) {
		if (tolower((unsigned char)*t) != tolower((unsigned char)suffixes[i]))
			continue;
		if (tolower((unsigned char)t[1]) == 'i')
			step = 1024;
		for (int power = 0; power <= i; power++)
			unit *= step;
		*text = t + (step == 1024 ? 2 : 1);
		break;
	}
	return unit;
}

int number_scan(const char **text, uint64_t *value)
{
	uint64_t whole, fraction, scale;
	const char *t = *text;
	int error = decimal_scan(&t, &whole, &fraction, &scale);

	if (error != 0)
		return error;
	error = decimal_times(whole, fraction, scale, suffix_scan(&t), value);
	*text = t;
	return error;
}

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

/* The shortest of what number_parse() reads as this number, and decimal if both are as short. */
const char *number_text(char text[TEXT_LEN], uint64_t number)
{
	snprintf(text, TEXT_LEN, "%" PRIu64, number);
	for (uint64_t step = 1000; step <= 1024; step += 24) {
		uint64_t unit = step;

		for (int i = 0; i < 4 && number % unit == 0; i++, unit *= step) {
			char other[TEXT_LEN];

			snprintf(other, sizeof(other), "%" PRIu64 "%c%s", number / unit,
			         step == 1024 ? toupper((unsigned char)suffixes[i]) : suffixes[i],
			         step == 1024 ? "i" : "");
			if (strlen(other) < strlen(text))
				strcpy(text, other);
		}
	}
	return text;
}

const char *size_text(char text[TEXT_LEN], uint64_t bytes)
{
	uint64_t unit = 1;
	const char *suffix = suffixes;

	if (bytes < 1024) {
		snprintf(text, TEXT_LEN, "%" PRIu64, bytes);
		return text;
	}
	for (unit = 1024; bytes / unit >= 1024; unit *= 1024)
		suffix++;
	if (bytes % unit == 0)
		snprintf(text, TEXT_LEN, "%" PRIu64 "%ci", bytes / unit, toupper((unsigned char)*suffix));
	else
		snprintf(text, TEXT_LEN, "%" PRIu64 ".%u%ci", bytes / unit,
		         (unsigned)(bytes % unit / (unit / 1024) * 10 / 1024), toupper((unsigned char)*suffix));
	return text;
}
