/*
 * number_text.c: numbers as people write them.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "decimal.h"
#include "duration.h"
#include "number_text.h"

static const char suffixes[] = DECIMAL_SUFFIXES;

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

const char *resolution_text(char text[TEXT_LEN], uint64_t ps)
{
	if (ps % 1000 == 0)
		return duration_text(text, ps / 1000);
	duration_put_fraction(text, ps, 1000, "ns");
	return text;
}
