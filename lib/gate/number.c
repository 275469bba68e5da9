/*
 * number: see number.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <stddef.h>
#include <string.h>

#include "number.h"

const char *number(const char *at, uint64_t min, uint64_t max, char end, uint64_t *value)
{
	*value = 0;
	if (*at == end)
		return NULL;
	for (; *at >= '0' && *at <= '9'; at++)
		if (__builtin_mul_overflow(*value, 10, value) ||
		    __builtin_add_overflow(*value, (uint64_t)(*at - '0'), value))
			return NULL;
	return *at == end && *value >= min && *value <= max ? at + (end != '\0') : NULL;
}

const char *number_thousandths(const char *at, uint32_t max, uint32_t *value)
{
	uint64_t sum = 0;
	int decimals = -1; /* there was no point */

	if (*at < '0' || *at > '9')
		return NULL;
	for (; *at != '\0' && sum <= UINT64_C(1000) * max; at++) {
		if (*at == '.' && decimals < 0)
			decimals = 0;
		else if (*at >= '0' && *at <= '9' && decimals < 3)
			sum = sum * 10 + (uint64_t)(*at - '0'), decimals += decimals >= 0;
		else
			return NULL;
	}
	if (*at != '\0' || decimals == 0)
		return NULL;
	for (int i = decimals < 0 ? 0 : decimals; i < 3; i++)
		sum *= 10;
	*value = (uint32_t)sum;
	return sum > 0 && sum <= UINT64_C(1000) * max ? at : NULL;
}

const char *number_after(const char *option, const char *name)
{
	size_t length = strlen(name);

	return strncmp(option, name, length) == 0 ? option + length : NULL;
}
