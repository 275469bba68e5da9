/*
 * number_text.c: whole numbers, as people write them: 65536, 150M, 64Ki, 1.5k. lib/base reads them; what is wrong is
 * said here.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "command.h"
#include "decimal.h"
#include "fail.h"
#include "number_text.h"

static const char suffixes[] = DECIMAL_SUFFIXES;

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
