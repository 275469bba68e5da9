/*
 * size.c: sizes and numbers of things, with binary multiples: 64K is 65536.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "command.h"

static const char suffixes[] = "KMGTPE";       /* each is 1024 times the one before */

int size_parse(const char *what, const char *text, uint64_t min, uint64_t max, uint64_t *value)
{
	const char *t = text, *suffix;
	uint64_t v;
	int error = digits_scan(&t, &v);

	if (error == -EINVAL)
		return fail("%s %s: not a size: must be digits, then K, M, G or nothing", what, text);
	if (error == 0 && *t != '\0') {
		suffix = strchr(suffixes, *t);
		if (suffix == NULL || suffix > strchr(suffixes, 'G') || t[1] != '\0')
			return fail("%s %s: not a size: must be digits, then K, M, G or nothing", what, text);
		if (__builtin_mul_overflow(v, UINT64_C(1024) << (10 * (suffix - suffixes)), &v))
			error = -ERANGE;
	}
	if (error != 0 || v < min || v > max)
		return fail("%s %s: must be %" PRIu64 " to %" PRIu64, what, text, min, max);
	*value = v;
	return STATUS_OK;
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
		snprintf(text, TEXT_LEN, "%" PRIu64 "%c", bytes / unit, *suffix);
	else
		snprintf(text, TEXT_LEN, "%" PRIu64 ".%u%c", bytes / unit,
		         (unsigned)(bytes % unit / (unit / 1024) * 10 / 1024), *suffix);
	return text;
}
