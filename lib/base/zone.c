/*
 * zone: see zone.h. Days and dates are computed as in Howard Hinnant, "chrono-Compatible Low-Level
 * Date Algorithms" (https://howardhinnant.github.io/date_algorithms.html): days_from_civil() and
 * civil_from_days(). The strings are those of POSIX, "Other Environment Variables", TZ, with the
 * hours from -167 to 167 that RFC 9636 adds.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <stddef.h>

#include "zone.h"

#define DAY_S 86400
#define HOUR_S 3600
#define OFFSET_MAX (26 * HOUR_S)
#define SUMMER_MAX (12 * HOUR_S) /* between the two offsets */
#define TIME_MAX (168 * HOUR_S)
/* Years that a time can be of, so that nothing overflows: the clock has 584 of them. */
#define SECONDS_MAX ((int64_t)1 << 40)

#define MOMENT_BITS 33
#define OFFSET_BITS 18
#define TIME_BITS 21

enum form { NEVER, MONTH_FORM, JULIAN, DAY_OF_YEAR };

/* When summer time begins or ends: a day, and seconds of the clock that is right until then. */
struct moment {
	enum form form;
	int month, week, weekday; /* 1 to 12; 1 to 5, 5 the last; 0 is Sunday */
	int day;                  /* JULIAN: 1 to 365, and February 29 is none; else 0 to 365 */
	int64_t time_s;
};

struct rules {
	struct moment begin, end; /* of summer time; NEVER: there is none */
	int64_t standard_s, summer_s;
};

struct change {
	int64_t at_s, offset_s;
};

#define CHANGES 6 /* of three years */

/* ---- Dates ---- */

static int64_t floor_div(int64_t a, int64_t b)
{
	return a / b - (a % b < 0);
}

/* Days since 1970. */
static int64_t days_of(int64_t year, int month, int day)
{
	int64_t y = year - (month <= 2), era = floor_div(y, 400), of_era = y - era * 400;
	int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;

	return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static int64_t year_of(int64_t days, int *month)
{
	int64_t z = days + 719468, era = floor_div(z, 146097), of_era = z - era * 146097;
	int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
	int64_t of_year = of_era - (365 * year + year / 4 - year / 100), mp = (5 * of_year + 2) / 153;

	*month = (int)(mp < 10 ? mp + 3 : mp - 9);
	return year + era * 400 + (*month <= 2);
}

static int is_leap(int64_t year)
{
	return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

/* Monday is 0: 1970 began on a Thursday. */
static int64_t weekday_of(int64_t days)
{
	return days + 3 - floor_div(days + 3, 7) * 7;
}

/* ---- Words ---- */

static uint64_t pack_moment(const struct moment *m)
{
	uint64_t day = m->form == MONTH_FORM ? (uint64_t)(m->month << 6 | m->week << 3 | m->weekday) : (uint64_t)m->day;

	if (m->form == NEVER)
		return 0;
	return (uint64_t)m->form << (TIME_BITS + 10) | day << TIME_BITS |
	       (uint64_t)(m->time_s + ((int64_t)1 << (TIME_BITS - 1)));
}

static uint64_t pack_word(const struct moment *m, int64_t offset_s)
{
	return pack_moment(m) << 31 | ((uint64_t)offset_s & (((uint64_t)1 << OFFSET_BITS) - 1)) << 13;
}

static struct moment unpack_moment(uint64_t bits)
{
	unsigned day = bits >> TIME_BITS & 1023;

	return (struct moment){ .form = (enum form)(bits >> (TIME_BITS + 10) & 3),
		                .month = (int)(day >> 6),
		                .week = (int)(day >> 3 & 7),
		                .weekday = (int)(day & 7),
		                .day = (int)day,
		                .time_s = (int64_t)(bits & (((uint64_t)1 << TIME_BITS) - 1)) -
		                          ((int64_t)1 << (TIME_BITS - 1)) };
}

static int64_t unpack_offset(uint64_t word)
{
	return (int64_t)(word << MOMENT_BITS) >> (64 - OFFSET_BITS);
}

static struct rules unpack(const struct zone *zone)
{
	return (struct rules){ unpack_moment(zone->words[0] >> 31), unpack_moment(zone->words[1] >> 31),
		               unpack_offset(zone->words[0]), unpack_offset(zone->words[1]) };
}

static int is_moment(const struct moment *m)
{
	if (m->form == NEVER)
		return 1;
	if (m->time_s <= -TIME_MAX || m->time_s >= TIME_MAX)
		return 0;
	if (m->form == MONTH_FORM)
		return m->month >= 1 && m->month <= 12 && m->week >= 1 && m->week <= 5 && m->weekday <= 6;
	return m->day <= 365 && (m->form != JULIAN || m->day >= 1);
}

static int is_offset(int64_t offset_s)
{
	return offset_s >= -OFFSET_MAX && offset_s <= OFFSET_MAX;
}

static int is_sound(const struct rules *rules)
{
	int64_t apart_s = rules->summer_s - rules->standard_s;

	return is_moment(&rules->begin) && is_moment(&rules->end) &&
	       (rules->begin.form == NEVER) == (rules->end.form == NEVER) &&
	       (rules->begin.form != NEVER || apart_s == 0) && is_offset(rules->standard_s) &&
	       is_offset(rules->summer_s) && apart_s <= SUMMER_MAX && apart_s >= -SUMMER_MAX;
}

static struct zone pack(const struct rules *rules)
{
	return (struct zone){ { pack_word(&rules->begin, rules->standard_s),
		                pack_word(&rules->end, rules->summer_s) } };
}

int zone_is_sound(const struct zone *zone)
{
	struct rules rules = unpack(zone);
	struct zone again = pack(&rules);

	return is_sound(&rules) && again.words[0] == zone->words[0] && again.words[1] == zone->words[1];
}

/* ---- Text ---- */

struct zone_text {
	const char *at, *end;
};

static int skip_char(struct zone_text *t, char c)
{
	if (t->at == t->end || *t->at != c)
		return 0;
	t->at++;
	return 1;
}

/* Digits, of at most `most`. */
static int scan_number(struct zone_text *t, int most, int *out)
{
	const char *begin = t->at;
	int n = 0;

	for (; t->at < t->end && *t->at >= '0' && *t->at <= '9' && n <= most; t->at++)
		n = 10 * n + (*t->at - '0');
	*out = n;
	return t->at != begin && n <= most;
}

/* [+-]hh[:mm[:ss]] */
static int scan_time(struct zone_text *t, int hours_max, int64_t *out_s)
{
	int minus = skip_char(t, '-'), hours, minutes = 0, seconds = 0;

	if (!minus)
		(void)skip_char(t, '+');
	if (!scan_number(t, hours_max, &hours))
		return 0;
	if (skip_char(t, ':') &&
	    (!scan_number(t, 59, &minutes) || (skip_char(t, ':') && !scan_number(t, 59, &seconds))))
		return 0;
	*out_s = hours * HOUR_S + minutes * 60 + seconds;
	if (minus)
		*out_s = -*out_s;
	return 1;
}

/* Of three or more letters, or of anything between < and >. */
static int skip_abbreviation(struct zone_text *t)
{
	const char *begin = t->at;

	if (skip_char(t, '<')) {
		while (t->at < t->end && *t->at != '>')
			t->at++;
		return skip_char(t, '>');
	}
	while (t->at < t->end && ((*t->at >= 'A' && *t->at <= 'Z') || (*t->at >= 'a' && *t->at <= 'z')))
		t->at++;
	return t->at - begin >= 3;
}

static int scan_moment(struct zone_text *t, struct moment *m)
{
	*m = (struct moment){ .form = DAY_OF_YEAR, .time_s = 2 * HOUR_S };
	if (!skip_char(t, ','))
		return 0;
	if (skip_char(t, 'M')) {
		m->form = MONTH_FORM;
		if (!scan_number(t, 12, &m->month) || !skip_char(t, '.') || !scan_number(t, 5, &m->week) ||
		    !skip_char(t, '.') || !scan_number(t, 6, &m->weekday))
			return 0;
	} else {
		if (skip_char(t, 'J'))
			m->form = JULIAN;
		if (!scan_number(t, 365, &m->day))
			return 0;
	}
	return !skip_char(t, '/') || scan_time(t, 167, &m->time_s);
}

int zone_parse(const char *text, unsigned long len, struct zone *zone)
{
	struct zone_text t = { text, text + len };
	struct rules rules = { .begin.form = NEVER };

	if (!skip_abbreviation(&t) || !scan_time(&t, 24, &rules.standard_s))
		return -EINVAL;
	/* POSIX counts to the west. */
	rules.standard_s = -rules.standard_s;
	rules.summer_s = rules.standard_s + (t.at == t.end ? 0 : HOUR_S);
	if (t.at < t.end) {
		if (!skip_abbreviation(&t))
			return -EINVAL;
		if (t.at < t.end && *t.at != ',') {
			if (!scan_time(&t, 24, &rules.summer_s))
				return -EINVAL;
			rules.summer_s = -rules.summer_s;
		}
		if (!scan_moment(&t, &rules.begin) || !scan_moment(&t, &rules.end))
			return -EINVAL;
	}
	*zone = pack(&rules);
	/* Two offsets that have no rule are none. */
	return t.at == t.end && zone_is_sound(zone) ? 0 : -EINVAL;
}

/* ---- Offsets ---- */

/* The day of a moment in a year, in days since 1970. */
static int64_t day_of(const struct moment *m, int64_t year)
{
	int64_t first, day;

	if (m->form == JULIAN)
		return days_of(year, 1, 1) + m->day - 1 + (m->day >= 60 && is_leap(year));
	if (m->form != MONTH_FORM)
		return days_of(year, 1, 1) + m->day;
	first = days_of(year, m->month % 13, 1);
	/* Weekdays of a moment begin with Sunday. */
	day = first + (m->weekday + 6 - weekday_of(first)) % 7 + (m->week - 1) * (int64_t)7;
	if (m->week == 5 && day >= days_of(year + (m->month >= 12), m->month % 12 + 1, 1))
		day -= 7;
	return day;
}

/* Those of a time's year and of its neighbours; of one without summer time, none. */
static int list_changes(const struct rules *rules, int64_t unix_s, struct change changes[CHANGES])
{
	int month, n = 0;
	int64_t year = year_of(floor_div(unix_s + rules->standard_s, DAY_S), &month);

	if (rules->begin.form == NEVER || rules->end.form == NEVER)
		return 0;
	for (int64_t y = year - 1; y <= year + 1; y++) {
		changes[n++] = (struct change){ day_of(&rules->end, y) * DAY_S + rules->end.time_s - rules->summer_s,
			                        rules->standard_s };
		changes[n++] =
			(struct change){ day_of(&rules->begin, y) * DAY_S + rules->begin.time_s - rules->standard_s,
			                 rules->summer_s };
	}
	return n;
}

/* That of the last change before. Where summer time ends and begins at once, it goes on. */
static int64_t offset_at(const struct rules *rules, const struct change *changes, int n, int64_t unix_s)
{
	const struct change *last = NULL;

	for (int i = 0; i < n; i++)
		if (changes[i].at_s <= unix_s &&
		    (last == NULL || changes[i].at_s > last->at_s ||
		     (changes[i].at_s == last->at_s && changes[i].offset_s == rules->summer_s)))
			last = &changes[i];
	return last != NULL ? last->offset_s : rules->standard_s;
}

static int64_t seconds_east(const struct rules *rules, int64_t unix_s)
{
	struct change changes[CHANGES];
	int n = list_changes(rules, unix_s, changes);

	return offset_at(rules, changes, n, unix_s);
}

static int64_t bounded(int64_t unix_s)
{
	return unix_s > SECONDS_MAX ? SECONDS_MAX : unix_s < -SECONDS_MAX ? -SECONDS_MAX : unix_s;
}

int64_t zone_offset(const struct zone *zone, int64_t unix_s)
{
	struct rules rules = unpack(zone);

	return seconds_east(&rules, bounded(unix_s));
}

/* ---- Periods ---- */

/* The first second at which the zone's clock shows local_s or later. */
static int64_t first_at(const struct rules *rules, int64_t local_s)
{
	struct change changes[CHANGES];
	int n = list_changes(rules, local_s - rules->standard_s, changes);
	int64_t first = local_s - (rules->standard_s < rules->summer_s ? rules->standard_s : rules->summer_s);

	if (n == 0)
		return local_s - rules->standard_s;
	/* It is reached as time passes, under one of the offsets, or skipped by a change. */
	for (int i = -2; i < n; i++) {
		int64_t at = i == -2   ? local_s - rules->standard_s
		             : i == -1 ? local_s - rules->summer_s
		                       : changes[i].at_s;

		if (at < first && at + offset_at(rules, changes, n, at) >= local_s)
			first = at;
	}
	return first;
}

/* The local time at which the period after that of local_s begins. */
static int64_t next_local(enum calendar unit, int64_t local_s)
{
	int64_t days = floor_div(local_s, DAY_S), year;
	int month;

	if (unit == CALENDAR_DAY)
		return (days + 1) * DAY_S;
	if (unit == CALENDAR_WEEK)
		return (days - weekday_of(days) + 7) * DAY_S;
	year = year_of(days, &month);
	return days_of(year + (month == 12), month % 12 + 1, 1) * DAY_S;
}

static int64_t full_hour_after(int64_t unix_s, int64_t offset_s)
{
	return (floor_div(unix_s + offset_s, HOUR_S) + 1) * HOUR_S - offset_s;
}

static int64_t next_hour(const struct rules *rules, int64_t unix_s)
{
	struct change changes[CHANGES];
	int n = list_changes(rules, unix_s, changes);
	int64_t next = full_hour_after(unix_s, offset_at(rules, changes, n, unix_s)), change = next;

	for (int i = 0; i < n; i++)
		if (changes[i].at_s > unix_s && changes[i].at_s <= change)
			change = changes[i].at_s;
	/* At a change the clock may show another minute than it would have. */
	return full_hour_after(change - 1, offset_at(rules, changes, n, change));
}

int64_t zone_next(const struct zone *zone, enum calendar unit, int64_t unix_s)
{
	struct rules rules = unpack(zone);
	int64_t local_s, next;

	unix_s = bounded(unix_s);
	if (unit == CALENDAR_HOUR) {
		next = next_hour(&rules, unix_s);
		return next > unix_s ? next : unix_s + 1;
	}
	local_s = next_local(unit, unix_s + seconds_east(&rules, unix_s));
	next = first_at(&rules, local_s);
	/* The clock was set back to before a day that has begun: its beginning is past. */
	if (next <= unix_s)
		next = first_at(&rules, next_local(unit, local_s));
	return next > unix_s ? next : unix_s + 1;
}

uint64_t zone_longest(const struct zone *zone, enum calendar unit)
{
	static const unsigned days[] = { [CALENDAR_DAY] = 1, [CALENDAR_WEEK] = 7, [CALENDAR_MONTH] = 31 };
	struct rules rules = unpack(zone);
	int64_t apart_s = rules.begin.form == NEVER ? 0 : rules.summer_s - rules.standard_s;

	return (unit == CALENDAR_HOUR ? HOUR_S : days[unit] * (uint64_t)DAY_S) +
	       (uint64_t)(apart_s < 0 ? -apart_s : apart_s);
}
