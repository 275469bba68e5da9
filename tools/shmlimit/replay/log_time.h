/*
 * log_time.h: times as logs have them.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef LOG_TIME_H
#define LOG_TIME_H

#include <stddef.h>
#include <stdint.h>

#define LOG_SECOND INT64_C(1000000000)
#define LOG_TIME_MAX INT64_C(9214646400) /* seconds: the year 2262 begins, whose nanoseconds still fit into 63 bits */

/*
 * Reads the time that the text begins with, fractions of a second included:
 *
 *	21/Nov/2026:09:22:45 +0100          21/Nov/2026:09:22:45.123 +0100
 *	2026-11-21T09:22:45.123456Z         2026-11-21 09:22:45,123+01:00         without a zone: UTC
 *	1795249365.123                      seconds since 1970, or milliseconds, microseconds, nanoseconds
 *
 * Returns its length, or 0 if it is none. Numbers of seconds below 10^8, the year 1973, are taken
 * for something else.
 */
size_t log_time_read(const char *text, size_t len, int64_t *unix_ns);

/* The same of a number that JSON had. Returns 0 if it is no time. */
int log_time_of_number(double number, int64_t *unix_ns);

#endif
