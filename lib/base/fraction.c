/*
 * fraction: see fraction.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decimal.h"
#include "fraction.h"
#include "whole.h"

/* An exponent beyond this is as good as this one: no term has as many digits. */
#define EXPONENT_MAX 100000
#define DOUBLE_DIGITS 17 /* which tell any double from its neighbours */

/* ---- From digits ---- */

/* Multiply by a factor 0 or more times. BOUND: 64 times overflow, but of 0. */
static int times(uint64_t *number, uint64_t factor, int64_t n)
{
	for (; n > 0 && *number != 0; n--)
		if (__builtin_mul_overflow(*number, factor, number))
			return -ERANGE;
	return 0;
}

/* Take a factor out of a number up to n times. Returns how many times are left. */
static int64_t cancel(uint64_t *number, uint64_t factor, int64_t n)
{
	for (; n > 0 && *number % factor == 0; n--)
		*number /= factor;
	return n;
}

/* value * 2^twos * 5^fives */
static int make_fraction(uint64_t value, int64_t twos, int64_t fives, struct fraction *f)
{
	*f = (struct fraction){ .num = value, .den = 1 };
	if (value == 0)
		return 0;
	twos = twos < 0 ? -cancel(&f->num, 2, -twos) : twos;
	fives = fives < 0 ? -cancel(&f->num, 5, -fives) : fives;
	if (times(&f->num, 2, twos) != 0 || times(&f->num, 5, fives) != 0)
		return -ERANGE;
	return times(&f->den, 2, -twos) != 0 || times(&f->den, 5, -fives) != 0 ? -EDOM : 0;
}

/*
 * Digits with a point or without: value * 10^*exponent. Zeros at the end are no digits of the
 * value.
 */
static int digits_read(const char **text, uint64_t *value, int64_t *exponent)
{
	int64_t zeros = 0, behind = 0;
	const char *t = *text;
	int point = 0;

	*value = 0;
	if (!is_digit(*t))
		return -EINVAL;
	for (; is_digit(*t) || (!point && *t == '.' && is_digit(t[1])); t++) {
		if (*t == '.') {
			point = 1;
			continue;
		}
		behind += point;
		zeros++;
		if (*t == '0')
			continue;
		if (times(value, 10, zeros) != 0 || __builtin_add_overflow(*value, (uint64_t)(*t - '0'), value))
			return -ERANGE;
		zeros = 0;
	}
	*exponent = zeros - behind;
	*text = t;
	return 0;
}

/* e-5 */
static int64_t exponent_read(const char **text)
{
	const char *t = *text;
	int64_t exponent = 0;
	int minus;

	if ((*t | 0x20) != 'e')
		return 0;
	minus = *++t == '-';
	t += minus || *t == '+';
	if (!is_digit(*t))
		return 0;
	for (; is_digit(*t); t++)
		if (exponent < EXPONENT_MAX)
			exponent = exponent * 10 + (*t - '0');
	*text = t;
	return minus ? -exponent : exponent;
}

int fraction_scan(const char **text, struct fraction *f)
{
	const char *t = *text;
	int64_t exponent = 0;
	uint64_t value;
	int error = digits_read(&t, &value, &exponent), binary, power;

	if (error != 0)
		return error;
	exponent += exponent_read(&t);
	power = suffix_scan(&t, &binary);
	error = binary ? make_fraction(value, exponent + 10 * power, exponent, f)
	               : make_fraction(value, exponent + 3 * power, exponent + 3 * power, f);
	if (error == 0)
		*text = t;
	return error;
}

/* ---- To a rate ---- */

int fraction_rate(struct fraction f, uint64_t per_ns, uint64_t *count, uint64_t *period_ns)
{
	uint64_t common = 1;

	*count = f.num;
	*period_ns = per_ns;
	if (f.den == 1)
		return 0;
	if (__builtin_mul_overflow(per_ns, f.den, period_ns) || *period_ns > FRACTION_PERIOD_MAX) {
		common = common_divisor(f.num, per_ns);
		if (__builtin_mul_overflow(per_ns / common, f.den, period_ns) || *period_ns > FRACTION_PERIOD_MAX)
			return -ERANGE;
	}
	*count = f.num / common;
	return 0;
}

/*
 * The decimal of the fewest digits that reads as this double. WHY NOT a point: locales have others.
 */
static int shortest(double rate, struct fraction *f)
{
	char text[DOUBLE_DIGITS + 16], plain[sizeof(text)], *to = plain;
	const char *from = plain;

	for (int digits = 1; digits <= DOUBLE_DIGITS; digits++) {
		snprintf(text, sizeof(text), "%.*e", digits - 1, rate);
		if (strtod(text, NULL) == rate)
			break;
	}
	*to++ = text[0];
	if (!is_digit(text[1]) && text[1] != 'e')
		*to++ = '.';
	for (const char *t = text + 1; *t != '\0'; t++)
		if (is_digit(*t) || *t == 'e' || *t == '-')
			*to++ = *t;
	*to = '\0';
	return fraction_scan(&from, f);
}

/* Of the fractions in [a / b, c / d] the one with the smallest terms, by continued fractions. */
static int simplest(u128 a, u128 b, u128 c, u128 d, struct fraction *f)
{
	uint64_t num = 1, den = 0, last_num = 0, last_den = 1;

	/* BOUND: Euclid's, below 128 bits. */
	for (;;) {
		u128 whole = a / b, rest = a % b;
		int end = rest == 0 || c / d > whole;
		u128 step = whole + (rest != 0 && end), next_num, next_den;

		if (step >> 64 != 0)
			return -ERANGE;
		next_num = step * num + last_num;
		next_den = step * den + last_den;
		if (next_num >> 64 != 0 || next_den >> 64 != 0)
			return -ERANGE;
		last_num = num;
		last_den = den;
		num = (uint64_t)next_num;
		den = (uint64_t)next_den;
		if (end)
			break;
		c -= whole * d;
		a = d;
		d = rest;
		rest = b;
		b = c;
		c = rest;
	}
	*f = (struct fraction){ .num = num, .den = den };
	return 0;
}

/*
 * The fraction of the smallest terms among those that round to the same double, of a token every
 * `per`. A third that was computed as a double is 1/3. The ends are halfway to another double.
 */
static int same_double(double rate, uint64_t per, struct fraction *f)
{
	uint64_t bits, middle, up, down;
	int shift;

	memcpy(&bits, &rate, sizeof(bits));
	/* rate = middle * 2^-shift; its neighbours are 4 away, but 2 below a power of two */
	middle = ((bits & (((uint64_t)1 << 52) - 1)) | (uint64_t)1 << 52) << 2;
	shift = 1075 + 2 - (int)(bits >> 52);
	up = middle + 2;
	down = middle - ((middle & (middle - 1)) == 0 ? 1 : 2);
	/*
	 * BOUND: the rate is 2^-64 * per or more and below 2^64, so 2^shift * per is at most 2^118.
	 */
	return shift > 0 ? simplest(down, ((u128)1 << shift) * per, up, ((u128)1 << shift) * per, f)
	                 : simplest((u128)down << -shift, per, (u128)up << -shift, per, f);
}

int fraction_rate_double(double rate, uint64_t per_ns, uint64_t *count, uint64_t *period_ns)
{
	struct fraction f;

	if (!(rate >= (double)per_ns * 0x1p-64 && rate < 0x1p64))
		return -ERANGE;
	if (shortest(rate, &f) == 0 && fraction_rate(f, per_ns, count, period_ns) == 0)
		return 0;
	if (same_double(rate, 1, &f) == 0 && fraction_rate(f, per_ns, count, period_ns) == 0)
		return 0;
	if (same_double(rate, per_ns, &f) != 0 || f.den > FRACTION_PERIOD_MAX)
		return -ERANGE;
	*count = f.num;
	*period_ns = f.den;
	return 0;
}
