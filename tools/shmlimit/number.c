/*
 * number.c: whole numbers, written in decimal digits and nothing else.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <inttypes.h>

#include "command.h"

int digits_scan(const char **text, uint64_t *value)
{
	const char *t = *text;
	uint64_t sum = 0;

	if (*t < '0' || *t > '9')
		return -EINVAL;
	for (; *t >= '0' && *t <= '9'; t++)
		if (__builtin_mul_overflow(sum, 10, &sum) ||
		    __builtin_add_overflow(sum, (uint64_t)(*t - '0'), &sum))
			return -ERANGE;
	*text = t;
	*value = sum;
	return 0;
}

int number_parse(const char *what, const char *text, uint64_t min, uint64_t max, uint64_t *value)
{
	const char *t = text;
	uint64_t v;
	int error = digits_scan(&t, &v);

	if (error == -EINVAL || (error == 0 && *t != '\0'))
		return fail("%s %s: not a whole number: must be decimal digits", what, text);
	if (error == 0 && v < min && max == UINT64_MAX)
		return fail("%s %s: must be %" PRIu64 " or more", what, text, min);
	if (error != 0 || v < min || v > max)
		return fail("%s %s: must be %" PRIu64 " to %" PRIu64, what, text, min, max);
	*value = v;
	return STATUS_OK;
}
