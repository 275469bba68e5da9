/*
 * decimal: see decimal.h. WHY NOT 1024 for K where slots are counted: a rule of 10M tokens and a
 * table of 10M slots would be different numbers.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>

#include "decimal.h"

int digits_scan(const char **text, uint64_t *value)
{
	const char *t = *text;
	uint64_t sum = 0;

	if (!is_digit(*t))
		return -EINVAL;
	for (; is_digit(*t); t++)
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
	if (*t == '.' && is_digit(t[1])) {
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

int suffix_scan(const char **text, int *binary)
{
	static const char suffixes[] = DECIMAL_SUFFIXES;
	const char *t = *text;

	*binary = 0;
	for (int i = 0; i < 4; i++) {
		if ((*t | 0x20) != (suffixes[i] | 0x20))
			continue;
		t++;
		*binary = (*t | 0x20) == 'i';
		t += *binary;
		if (is_letter(*t))
			return 0;
		*text = t;
		return i + 1;
	}
	return 0;
}

int number_scan(const char **text, uint64_t *value)
{
	uint64_t whole, fraction, scale, unit = 1;
	const char *t = *text;
	int error = decimal_scan(&t, &whole, &fraction, &scale), binary;

	if (error == 0) {
		for (int power = suffix_scan(&t, &binary); power > 0; power--)
			unit *= binary ? 1024 : 1000;
		error = decimal_times(whole, fraction, scale, unit, value);
	}
	if (error == 0)
		*text = t;
	return error;
}
