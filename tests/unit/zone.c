/*
 * zone: when the hours, days, weeks and months of time zones end, for ten years, beside the C library's localtime_r(),
 * asked for each quarter of an hour; and what any bytes of zone data, and any words, give.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <stdlib.h>
#include <time.h>

#include "../rng.h"
#include "unit.h"

#include "zone_data.h"
#include "zone_file.h"

#define QUARTER 900
#define DAY_S ((int64_t)86400)
#define YEARS 10
#define QUARTERS (YEARS * 366 * DAY_S / QUARTER)
#define ASKS 20000

/* Two that most people know; half an hour of summer time; its beginning, and its end, at midnight; two hours of it. */
static const char *const names[] = {
	"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Cairo", "America/Havana",
	"America/Santiago", "Antarctica/Troll", "Asia/Kathmandu", "UTC",
	/* midnight twice in a night, as in Newfoundland until 2011; summer time in winter */
	"NST3:30NDT,M3.2.0/0:01,M11.1.0/0:01", "IST-1GMT0,M10.5.0,M3.5.0/1",
	/* midnight in the middle of the hour that is left out */
	"AAA3BBB,M9.1.6/23:30,M3.4.6/23:45"
};

static struct rng rng;

/* For each quarter of an hour: how many periods have begun, and the time at which the last one did. */
struct begun {
	uint32_t n[CALENDAR_MONTH + 1];
};

static int64_t begins[CALENDAR_MONTH + 1][YEARS * 366 * 24 + 1];
static struct begun quarters[QUARTERS];

/* What the C library says. A period whose beginning the clock shows twice began the first time. */
static void ask_library(int64_t from_s)
{
	int64_t latest[CALENDAR_MONTH + 1] = { 0 };
	struct begun begun = { { 0 } };

	for (int64_t i = 0; i < (int64_t)QUARTERS; i++) {
		time_t at_s = (time_t)(from_s + i * QUARTER);
		struct tm tm;
		int64_t days, now[CALENDAR_MONTH + 1] = { 0 };

		localtime_r(&at_s, &tm);
		days = (at_s + tm.tm_gmtoff) / DAY_S;
		now[CALENDAR_HOUR] = tm.tm_min == 0 ? latest[CALENDAR_HOUR] + 1 : 0;
		now[CALENDAR_DAY] = days;
		now[CALENDAR_WEEK] = (days + 3) / 7;
		now[CALENDAR_MONTH] = tm.tm_year * (int64_t)12 + tm.tm_mon;
		for (int unit = CALENDAR_HOUR; unit <= CALENDAR_MONTH; unit++) {
			if (now[unit] <= latest[unit])
				continue;
			latest[unit] = now[unit];
			begins[unit][begun.n[unit]++] = at_s;
		}
		quarters[i] = begun;
	}
}

static void ten_years(const char *name)
{
	struct shmlimit_rule rule = { .struct_size = sizeof(rule) };
	int64_t from_s = (time(NULL) / DAY_S + 1) * DAY_S;
	char text[64];
	unsigned wrong = 0;
	struct zone zone;

	if (strchr(name, ',') != NULL) {
		is(zone_parse(name, strlen(name), &zone), 0, "%s: is a time zone", name);
	} else {
		snprintf(rule.zone, sizeof(rule.zone), "%s", name);
		if (zone_file_fill(&rule) != 0) {
			tap_skip(name, "no zone data");
			return;
		}
		memcpy(zone.words, rule.zone_offsets, sizeof(zone.words));
	}
	snprintf(text, sizeof(text), "%s%s", strchr(name, ',') != NULL ? "" : ":", name);
	setenv("TZ", text, 1);
	tzset();
	ask_library(from_s);
	for (int i = 0; i < ASKS; i++) {
		int unit = (int)(1 + rng_below(&rng, CALENDAR_MONTH));
		/* Behind the last beginning of a period there is none to compare with. */
		uint64_t q = rng_below(&rng, QUARTERS - 32 * DAY_S / QUARTER);
		int64_t at_s, want_s, got_s;
		struct tm tm;
		time_t t;

		/* Half of them are about a beginning. */
		if (rng_below(&rng, 2) == 0 && quarters[q].n[unit] > 1)
			q = (uint64_t)(begins[unit][quarters[q].n[unit] - 1] - from_s) / QUARTER - rng_below(&rng, 2);
		at_s = from_s + (int64_t)q * QUARTER + (int64_t)rng_below(&rng, QUARTER) * (int64_t)rng_below(&rng, 2);
		t = (time_t)at_s;
		localtime_r(&t, &tm);
		want_s = begins[unit][quarters[q].n[unit]];
		got_s = zone_next(&zone, (enum calendar)unit, at_s);
		if ((got_s != want_s || zone_offset(&zone, at_s) != tm.tm_gmtoff ||
		     got_s - at_s > (int64_t)zone_longest(&zone, (enum calendar)unit)) &&
		    wrong++ < 3)
			diag("%s: unit %d at %lld: %lld, not %lld", name, unit, (long long)at_s, (long long)got_s,
			     (long long)want_s);
	}
	is(wrong, 0, "%s: hours, days, weeks and months of ten years end when the C library says", name);
}

static int parses(const char *text)
{
	struct zone zone;

	return zone_parse(text, strlen(text), &zone) == 0 && zone_is_sound(&zone);
}

static void strings(void)
{
	static const char *const good[] = { "UTC0",
		                            "CET-1CEST,M3.5.0,M10.5.0/3",
		                            "<+1030>-10:30<+11>-11,M10.1.0,M4.1.0",
		                            "EST5EDT,0/0,J365/25",
		                            "<-02>2<-01>,M3.5.0/-1,M10.5.0/0",
		                            "IST-2IDT,M3.4.4/26,M10.5.0",
		                            "<+14>-14",
		                            "AAA-1:02:03" };
	static const char *const bad[] = { "",
		                           "U0",
		                           "UTC",
		                           "CET-1CEST",
		                           "CET-1CEST,M3.5.0",
		                           "CET-25",
		                           "UTC0 ",
		                           "A1B0",
		                           "CET-1CEST,M13.5.0,M10.5.0",
		                           "<+1",
		                           "UTC0:60",
		                           "CET-1CEST,M3.0.0,M10.5.0",
		                           "CET-1CEST,J0,J5",
		                           "CET-1CEST,366,5",
		                           "CET-1CEST,1/168,5",
		                           "AAA-12BBB12,1,2",
		                           "CET-1CEST,M3.5.7,M10.5.0",
		                           "99999999999999999999" };

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		ok(parses(good[i]), "%s is a time zone", good[i]);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ok(!parses(bad[i]), "\"%s\" is no time zone", bad[i]);
	struct zone zone;

	/* Summer time all year: the end of each is the beginning of the next. */
	zone_parse("EST5EDT,0/0,J365/25", 19, &zone);
	unsigned wrong = 0;

	for (int64_t at_s = 0; at_s < 20 * 366 * DAY_S; at_s += 1800)
		wrong += zone_offset(&zone, at_s) != -4 * 3600;
	is(wrong, 0, "summer time can last all year");
}

static const struct {
	const char *name;
	int is;
} written[] = { { "UTC", 1 },
	        { "Europe/Berlin", 1 },
	        { "America/Argentina/Buenos_Aires", 1 },
	        { "Etc/GMT+1", 1 },
	        { "", 0 },
	        { "/etc/localtime", 0 },
	        { "../../etc/x", 0 },
	        { "Europe/", 0 },
	        { "Europe//Berlin", 0 },
	        { "Europe/Ber lin", 0 },
	        { ".", 0 } };

/* Any words: a period ends after now, and in no more than a month and a day. */
static void any_words(void)
{
	unsigned wrong = 0;

	for (int i = 0; i < 200000; i++) {
		struct zone zone = { { rng_draw(&rng), rng_draw(&rng) } };
		int64_t at_s = (int64_t)(rng_draw(&rng) >> (1 + rng_below(&rng, 63)));
		int64_t bound_s = at_s > (int64_t)1 << 40 ? (int64_t)1 << 40 : at_s;
		int64_t next_s = zone_next(&zone, (enum calendar)(1 + rng_below(&rng, 4)), at_s);

		wrong += next_s <= bound_s || next_s - bound_s > 40 * DAY_S;
	}
	is(wrong, 0, "whatever the words, a period ends after now and within 40 days");
}

/* A file of zone data, cut off and changed in places. */
static void any_bytes(void)
{
	static unsigned char bytes[16384], copy[16384];
	FILE *file = fopen("/usr/share/zoneinfo/Europe/Berlin", "r");
	size_t len = file == NULL ? 0 : fread(bytes, 1, sizeof(bytes), file);
	struct zone zone;
	unsigned wrong = 0;

	if (len == 0) {
		tap_skip("zone data that is cut off or damaged", "no zone data");
		return;
	}
	fclose(file);
	for (size_t n = 0; n < len; n++) {
		/* In memory of its own, so that a sanitizer sees a read behind it. */
		unsigned char *part = malloc(n + 1);

		memcpy(part, bytes, n);
		wrong += zone_data_read(part, n, (int64_t)time(NULL), &zone) == 0;
		free(part);
	}
	is(wrong, 0, "zone data that is cut off is refused");
	for (int i = 0; i < 20000; i++) {
		memcpy(copy, bytes, len);
		for (uint64_t n = 1 + rng_below(&rng, 4); n > 0; n--)
			copy[rng_below(&rng, len)] = (unsigned char)rng_draw(&rng);
		wrong += zone_data_read(copy, len, (int64_t)time(NULL), &zone) == 0 && !zone_is_sound(&zone);
	}
	is(wrong, 0, "zone data that is damaged gives a sound zone or none");
}

int main(void)
{
	rng = (struct rng){ rng_seed() };
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		ten_years(names[i]);
	strings();
	for (size_t i = 0; i < sizeof(written) / sizeof(written[0]); i++)
		is(zone_data_is_name(written[i].name), written[i].is, "\"%s\" is%s a name of a time zone",
		   written[i].name, written[i].is ? "" : " not");
	any_words();
	any_bytes();
	return tap_done();
}
