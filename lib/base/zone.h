/*
 * zone: when the hours, days, weeks and months of a time zone end. Numbers in, numbers out: no
 * file, no clock, no allocation. Every function is total.
 *
 * A zone is two words, which say what a POSIX TZ string such as "CET-1CEST,M3.5.0,M10.5.0/3"
 * says: an offset, or two of them and the moments of each year at which one becomes the other.
 *
 *	word 0  [ begin of summer time : 33 ][ standard offset : 18 ][ zero : 13 ]
 *	word 1  [ end of summer time   : 33 ][ summer offset   : 18 ][ zero : 13 ]
 *
 * Offsets are seconds east of UTC, in two's complement. A moment is
 *
 *	[ form : 2 ][ month, week, weekday, or day of the year : 10 ][ seconds + 2^20 : 21 ]
 *
 * and 0 in both words where there is no summer time: then both offsets are the same. Zero words are
 * UTC.
 *
 * WHY NOT a list of the zone's changes: it would end some day, and take a hundred times as much.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_ZONE_H
#define SHMLIMIT_LIB_ZONE_H

#include <stdint.h>

/*
 * What a calendar period is. CALENDAR_NONE: a period of a fixed length, which begins at any time.
 */
enum calendar { CALENDAR_NONE, CALENDAR_HOUR, CALENDAR_DAY, CALENDAR_WEEK, CALENDAR_MONTH };

struct zone {
	uint64_t words[2];
};

/*
 * Read a POSIX TZ string of `len` bytes. Returns 0, or -EINVAL: it is none, or has offsets beyond
 * 26 hours, or more than 12 hours apart. On error *zone is undefined.
 */
int zone_parse(const char *text, unsigned long len, struct zone *zone);

/* Could zone_parse() have made these words? */
int zone_is_sound(const struct zone *zone);

/* Seconds east of UTC at a time. */
int64_t zone_offset(const struct zone *zone, int64_t unix_s);

/*
 * The first second after unix_s at which another hour, day, week (which begins on Monday) or month
 * of the zone begins. An hour begins when the zone's clock shows a full one. A day that would begin
 * in the hour that summer time leaves out begins with the next minute that there is; one whose
 * beginning is repeated begins the first time.
 */
int64_t zone_next(const struct zone *zone, enum calendar unit, int64_t unix_s);

/* The longest that such a period can be, in seconds. */
uint64_t zone_longest(const struct zone *zone, enum calendar unit);

#endif
