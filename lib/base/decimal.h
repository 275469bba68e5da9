/*
 * decimal: numbers as people write them: 65536, 150M, 64Ki, 1.5k. A decimal suffix multiplies by
 * powers of 1000, a binary one by powers of 1024, whatever is counted. Pure.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_DECIMAL_H
#define SHMLIMIT_LIB_DECIMAL_H

#include <stdint.h>

/* Each is 1000 or 1024 times its predecessor; the first four are read. */
#define DECIMAL_SUFFIXES "kMGTPE"

/* In ASCII, whatever the locale. */
static inline int is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static inline int is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/*
 * Those that end in _scan move *text past what they read and return 0; or, with *text unchanged,
 * -EINVAL: there is no number; -ERANGE: it is too large; -EDOM: it is not a whole number.
 */
int digits_scan(const char **text, uint64_t *value); /* digits alone */
int number_scan(const char **text, uint64_t *value); /* with a suffix: 1500, 1.5k, 64Ki */

/*
 * Returns the power of 1000 (binary: of 1024) that the suffix multiplies by, 0 without one. A
 * letter of a longer word is none.
 */
int suffix_scan(const char **text, int *binary);

/* A decimal number is whole + fraction / scale; *value is that many units: 0, -ERANGE or -EDOM. */
int decimal_scan(const char **text, uint64_t *whole, uint64_t *fraction, uint64_t *scale);
int decimal_times(uint64_t whole, uint64_t fraction, uint64_t scale, uint64_t unit, uint64_t *value);

#endif
