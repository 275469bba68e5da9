/*
 * log_time.c: times as logs have them. Pure.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <string.h>

#include "log_time.h"

#define YEAR_MIN 1970
#define YEAR_MAX 2261
#define SECONDS_MIN INT64_C(100000000)

struct cursor {
	const char *at, *end;
	int wrong;
};

/* Exactly `n` digits. */
static int digits(struct cursor *c, int n)
{
	int sum = 0;

	for (; n > 0; n--, c->at++) {
		if (c->at >= c->end || *c->at < '0' || *c->at > '9') {
			c->wrong = 1;
			return 0;
		}
		sum = sum * 10 + (*c->at - '0');
	}
	return sum;
}

/* One of these characters. Returns it, or 0. */
static char one_of(struct cursor *c, const char *these)
{
	if (c->at < c->end && *c->at != '\0' && strchr(these, *c->at) != NULL)
		return *c->at++;
	return 0;
}

static void need(struct cursor *c, const char *these)
{
	if (one_of(c, these) == 0)
		c->wrong = 1;
}

static int month_named(struct cursor *c)
{
	static const char names[] = "JanFebMarAprMayJunJulAugSepOctNovDec";

	for (int i = 0; i < 12 && c->end - c->at >= 3; i++)
		if (memcmp(names + 3 * i, c->at, 3) == 0) {
			c->at += 3;
			return i + 1;
		}
	c->wrong = 1;
	return 0;
}

/*
 * Nanoseconds since 1970 of the Gregorian calendar: years are counted from March, so that a leap
 * day is their last.
 */
static int64_t day_of(struct cursor *c, int year, int month, int day)
{
	int64_t y = month > 2 ? year : year - 1, m = month > 2 ? month - 3 : month + 9;

	if (c->wrong || year < YEAR_MIN || year > YEAR_MAX || month < 1 || month > 12 || day < 1 || day > 31) {
		c->wrong = 1;
		return 0;
	}
	return (365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1 - 719468) * 86400 * LOG_SECOND;
}

/* Digits behind the point that was read, as nanoseconds; what is less is left out. */
static int64_t fraction(struct cursor *c)
{
	int64_t ns = 0, unit = LOG_SECOND / 10;

	for (; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++, unit /= 10)
		ns += (*c->at - '0') * unit;
	return ns;
}

/*
 * 09:22:45, with a fraction or none, as nanoseconds. A leap second is the first of the next minute.
 */
static int64_t clock_read(struct cursor *c)
{
	int hour = digits(c, 2), minute, second;

	need(c, ":");
	minute = digits(c, 2);
	need(c, ":");
	second = digits(c, 2);
	if (hour > 23 || minute > 59 || second > 60)
		c->wrong = 1;
	return (hour * INT64_C(3600) + minute * 60 + second) * LOG_SECOND + (one_of(c, ".,") != 0 ? fraction(c) : 0);
}

/* +0100, +01:00, Z or nothing: nanoseconds. */
static int64_t zone_read(struct cursor *c)
{
	char sign = one_of(c, "Z+-");
	int hours, minutes;

	if (sign == 0 || sign == 'Z')
		return 0;
	hours = digits(c, 2);
	one_of(c, ":");
	minutes = digits(c, 2);
	if (hours > 23 || minutes > 59)
		c->wrong = 1;
	return (sign == '-' ? -1 : 1) * (hours * INT64_C(3600) + minutes * 60) * LOG_SECOND;
}

/* 21/Nov/2026:09:22:45 +0100 */
static int64_t read_clf(struct cursor *c)
{
	int day = digits(c, 2), month, year;
	int64_t ns;

	need(c, "/");
	month = month_named(c);
	need(c, "/");
	year = digits(c, 4);
	need(c, ":");
	ns = clock_read(c);
	need(c, " ");
	if (c->at >= c->end || (*c->at != '+' && *c->at != '-'))
		c->wrong = 1;
	return day_of(c, year, month, day) + ns - zone_read(c);
}

/* 2026-11-21T09:22:45Z */
static int64_t read_iso(struct cursor *c)
{
	int year = digits(c, 4), month, day;
	int64_t ns;

	need(c, "-");
	month = digits(c, 2);
	need(c, "-");
	day = digits(c, 2);
	need(c, "Tt ");
	ns = clock_read(c);
	return day_of(c, year, month, day) + ns - zone_read(c);
}

/* Its unit follows from its size. Returns how many there are in a second, or 0: no time. */
static int64_t units_of(double number)
{
	for (int64_t units = 1; units <= LOG_SECOND; units *= 1000)
		if (number >= (double)(SECONDS_MIN * units) && number < (double)LOG_TIME_MAX * (double)units)
			return units;
	return 0;
}

/* BOUND: 19 digits fit into 64 bits, and more are no time. */
static int64_t read_number(struct cursor *c)
{
	const char *begin = c->at;
	uint64_t whole = 0;
	int64_t units, ns;

	for (; c->at < c->end && *c->at >= '0' && *c->at <= '9' && c->at - begin < 20; c->at++)
		whole = 10 * whole + (uint64_t)(*c->at - '0');
	units = c->at - begin < 20 ? units_of((double)whole) : 0;
	if (units == 0) {
		c->wrong = 1;
		return 0;
	}
	ns = (int64_t)whole * (LOG_SECOND / units);
	return one_of(c, ".") != 0 ? ns + fraction(c) / units : ns;
}

size_t log_time_read(const char *text, size_t len, int64_t *unix_ns)
{
	static int64_t (*const read[])(struct cursor *) = { read_clf, read_iso, read_number };

	for (size_t i = 0; i < sizeof(read) / sizeof(read[0]); i++) {
		struct cursor c = { text, text + len, 0 };

		*unix_ns = read[i](&c);
		if (!c.wrong && *unix_ns >= 0 && *unix_ns / LOG_SECOND < LOG_TIME_MAX)
			return (size_t)(c.at - text);
	}
	return 0;
}

/*
 * A double of today's seconds is exact to a quarter of a microsecond, so microseconds are what was
 * meant.
 */
int log_time_of_number(double number, int64_t *unix_ns)
{
	int64_t units = units_of(number);

	if (units == 0)
		return 0;
	*unix_ns = (int64_t)(number / (double)units * 1e6 + 0.5) * 1000;
	return 1;
}
