/*
 * calendar: COUNTER rules that count by the hour, day, week or month of a time zone: random histories beside a list of what
 * was allowed in each period; summer time; changes of the rule, of the clock and of the host.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <sys/mman.h>

#include "../rng.h"
#include "unit.h"

#include "limiter.h"
#include "zone.h"

#define HOUR (3600 * SECOND)
#define DAY (24 * HOUR)
/* Tuesday 2024-02-20, 00:00 UTC. */
#define T0_S INT64_C(1708387200)
#define HISTORIES 300
#define ASKS 60

static struct shmlimit *l;
static struct shmlimit_result r;
static struct rng rng;

/* The segment's clock is that of the calendar. */
static void begin(void)
{
	l = unit_create("calendar", NULL);
	l->header->unix_ns = 0;
}

static int set_at(const char *limit, uint64_t at_ns)
{
	struct shmlimit_rule rule = { .struct_size = sizeof(rule) };
	struct shmlimit_problem wrong;

	if (shmlimit_rule_parse(limit, &rule, &wrong) != 0)
		bail("%s: %s", limit, wrong.text);
	return unit_id(shmlimit_rule_set(at_time(l, at_ns), "quota", &rule));
}

static int set(const char *limit)
{
	return set_at(limit, (uint64_t)T0_S * SECOND);
}

static int take(int id, const char *key, uint64_t n, uint64_t at_ns)
{
	return shmlimit_take(at_time(l, at_ns), id, key, strlen(key), n, &r);
}

static uint64_t ns(int64_t unix_s)
{
	return (uint64_t)unix_s * SECOND;
}

static void midnight(void)
{
	int id;

	begin();
	id = set("3/day in UTC");
	is(take(id, "a", 3, ns(T0_S) + HOUR), SHMLIMIT_ALLOWED, "a quota is there from midnight");
	is(r.reset_after_ns / SECOND, 23 * 3600, "it is full again at midnight");
	is(take(id, "b", 1, ns(T0_S) + 20 * HOUR), SHMLIMIT_ALLOWED, "another key begins later");
	is(r.reset_after_ns / SECOND, 4 * 3600, "the other key is full again at the same midnight");
	is(take(id, "a", 1, ns(T0_S) + DAY - 1), SHMLIMIT_DENIED, "a nanosecond before midnight the quota is used");
	ok(r.retry_after_ns >= 1 && r.retry_after_ns < SECOND / 1000, "a retry fits at midnight, to a tick");
	is(take(id, "a", 1, ns(T0_S) + DAY - 1 + r.retry_after_ns), SHMLIMIT_ALLOWED,
	   "a retry at that time is allowed");
	is(r.remaining, 2, "the retry has the whole quota");
	ok(r.reset_after_ns > DAY - SECOND && r.reset_after_ns <= DAY + SECOND, "the quota is for the whole day");
	is(shmlimit_refund(at_time(l, ns(T0_S) + DAY + HOUR), id, "a", 1, 1, &r), SHMLIMIT_ALLOWED,
	   "a token can come back");
	is(r.remaining, 3, "a token that came back is there again on the same day");
	shmlimit_close(l);
}

/* What summer time makes of days in Berlin: 2024-03-31 has 23 hours, 2024-10-27 has 25. */
static void summer(void)
{
	const int64_t spring_s = 1711839600, autumn_s = 1729980000;
	struct shmlimit_rule probe = { .struct_size = sizeof(probe) };
	int id;

	if (shmlimit_rule_parse("1/day in Europe/Berlin", &probe, NULL) != 0) {
		tap_skip("days of summer time", "no zone data");
		return;
	}
	begin();
	id = set("1/day in Europe/Berlin");
	is(take(id, "a", 1, ns(spring_s)), SHMLIMIT_ALLOWED, "the day on which summer time begins has a quota");
	is(r.reset_after_ns / HOUR, 23, "the day on which summer time begins has 23 hours");
	is(take(id, "a", 1, ns(spring_s) + 22 * HOUR), SHMLIMIT_DENIED, "the 23rd hour belongs to the day");
	is(take(id, "a", 1, ns(spring_s) + 23 * HOUR + SECOND), SHMLIMIT_ALLOWED,
	   "the day after the beginning of summer time is another");
	is(take(id, "b", 1, ns(autumn_s)), SHMLIMIT_ALLOWED, "the day on which summer time ends has a quota");
	is(r.reset_after_ns / HOUR, 25, "the day on which summer time ends has 25 hours");
	is(take(id, "b", 1, ns(autumn_s) + 24 * HOUR + SECOND), SHMLIMIT_DENIED, "the 25th hour belongs to the day");
	is(take(id, "b", 1, ns(autumn_s) + 25 * HOUR + SECOND), SHMLIMIT_ALLOWED,
	   "the day after the end of summer time is another");
	id = set("1/month in Europe/Berlin");
	is(take(id, "c", 1, 1709250000 * SECOND), SHMLIMIT_ALLOWED, "the first hour of March in Berlin has a quota");
	is(r.reset_after_ns / SECOND, 1709247600 + 31 * 86400 - 3600 - 1709250000,
	   "that quota ends with March in Berlin");
	shmlimit_close(l);
}

/* ---- Beside a list ---- */

static const char *const limits[] = { "hour", "day", "week", "month" };

static void histories(void)
{
	unsigned wrong = 0;

	begin();
	for (uint64_t h = 0; h < scaled(HISTORIES) && wrong == 0; h++) {
		enum calendar unit = (enum calendar)(1 + rng_below(&rng, 4));
		const struct zone utc = { { 0, 0 } };
		uint64_t capacity = 1 + rng_below(&rng, 9), used = 0, at_ns = ns(T0_S) + rng_below(&rng, 300 * DAY);
		uint64_t tick_ns = SECOND / 1000;
		int64_t end_s = 0;
		char text[64], key[32];
		int id;

		snprintf(text, sizeof(text), "%llu/%s in UTC", (unsigned long long)capacity, limits[unit - 1]);
		id = set(text);
		snprintf(key, sizeof(key), "h%llu", (unsigned long long)h);
		for (int i = 0; i < ASKS; i++) {
			uint64_t n = rng_below(&rng, capacity + 2), left_ns;
			int answer, want;

			/* Often some nanoseconds before the end, or a tick behind it. */
			at_ns += rng_below(&rng, zone_longest(&utc, unit) * SECOND / 8);
			if (rng_below(&rng, 4) == 0 && ns(end_s) > at_ns)
				at_ns = ns(end_s) - 1 - rng_below(&rng, 3);
			else if (ns(end_s) <= at_ns && at_ns < ns(end_s) + tick_ns)
				at_ns = ns(end_s) + tick_ns;
			if (at_ns >= ns(end_s)) {
				used = 0;
				end_s = zone_next(&utc, unit, (int64_t)(at_ns / SECOND));
			}
			left_ns = ns(end_s) - at_ns;
			want = n <= capacity - used ? SHMLIMIT_ALLOWED : SHMLIMIT_DENIED;
			answer = take(id, key, n, at_ns);
			used += want == SHMLIMIT_ALLOWED ? n : 0;
			if (answer != want || r.remaining != capacity - used ||
			    (used != 0 && (r.reset_after_ns < left_ns || r.reset_after_ns - left_ns > tick_ns)) ||
			    (want == SHMLIMIT_DENIED && n <= capacity && r.retry_after_ns - left_ns > tick_ns))
				wrong++;
		}
	}
	is(wrong, 0, "what is allowed is what a list of the period's takes allows");
	shmlimit_close(l);
}

/* ---- Changes ---- */

static void changes(void)
{
	struct shmlimit_rule rule = { .struct_size = sizeof(rule) };
	char text[SHMLIMIT_RULE_TEXT_MAX];
	int id;

	begin();
	rule = (struct shmlimit_rule){
		.struct_size = sizeof(rule), .algorithm = SHMLIMIT_COUNTER, .capacity = 2, .period_ns = DAY
	};
	id = unit_id(shmlimit_rule_set(at_time(l, ns(T0_S)), "quota", &rule));
	(void)take(id, "a", 2, ns(T0_S) + 20 * HOUR);
	is(r.reset_after_ns / SECOND, 86400, "without a zone a count lives for the period");
	id = set_at("2/day in UTC", ns(T0_S) + 20 * HOUR);
	is(take(id, "a", 1, ns(T0_S) + 20 * HOUR + SECOND), SHMLIMIT_DENIED,
	   "a rule that gets a zone keeps its counts");
	is(r.retry_after_ns / SECOND, 4 * 3600 - 1, "counts end at midnight once their rule has a zone");
	is(take(id, "a", 1, ns(T0_S) + DAY + SECOND), SHMLIMIT_ALLOWED, "the quota is whole after midnight");
	id = set("2/month in UTC");
	(void)take(id, "b", 2, ns(T0_S) + 2 * DAY);
	is(r.reset_after_ns / SECOND, 8 * 86400, "a month ends with the month");
	is(shmlimit_rule_get(l, id, &rule), 0, "the rule is read");
	is_str(rule.zone, "UTC", "a rule that is read has its zone");
	is(rule.period_ns / DAY, 30, "a period of 30 days stands for a month");
	is(shmlimit_rule_text(&rule, text), 0, "a rule with a zone can be written");
	is_str(text, "2/month in UTC", "a rule with a zone is written as it was read");
	id = set_at("2/day in UTC", ns(T0_S) + 2 * DAY);
	is(take(id, "b", 1, ns(T0_S) + 2 * DAY + HOUR), SHMLIMIT_DENIED,
	   "a rule that gets a shorter period keeps its counts");
	is(r.retry_after_ns / SECOND, 23 * 3600, "a count ends with the shorter period");
	rule.zone[0] = '\0';
	is(shmlimit_rule_set(at_time(l, ns(T0_S)), "quota", &rule), id, "a rule loses its zone");
	is(take(id, "c", 1, ns(T0_S) + 3 * DAY), SHMLIMIT_ALLOWED, "a rule without a zone counts");
	is(r.reset_after_ns / SECOND, 30 * 86400, "a rule without a zone counts for the period, from the first token");
	shmlimit_close(l);
}

static int count(int id, const char *key, int64_t n, uint32_t flags, uint64_t ttl_ns, uint64_t at_ns)
{
	struct shmlimit_count_request request = {
		.struct_size = sizeof(request), .flags = flags, .n = n, .bound = INT64_MAX, .ttl_ns = ttl_ns
	};
	struct shmlimit_count out = { .struct_size = sizeof(out) };
	int answer = shmlimit_count(at_time(l, at_ns), id, key, strlen(key), &request, &out);

	r.remaining = (uint64_t)out.count;
	r.reset_after_ns = out.ttl_ns;
	return answer;
}

static void counts(void)
{
	int id;

	begin();
	id = set("9/day in UTC");
	is(count(id, "a", 4, 0, 0, ns(T0_S) + 20 * HOUR), SHMLIMIT_ALLOWED, "an addition begins a count");
	is(r.reset_after_ns / SECOND, 4 * 3600, "a count that an addition began ends at midnight");
	is(count(id, "a", 1, SHMLIMIT_COUNT_RESTART, 0, ns(T0_S) + 21 * HOUR), SHMLIMIT_ALLOWED,
	   "a count can begin again");
	is(r.reset_after_ns / SECOND, 3 * 3600, "a count that began again ends at the same midnight");
	is(count(id, "a", 6, 0, 0, ns(T0_S) + DAY + 8 * HOUR), SHMLIMIT_ALLOWED,
	   "an addition on the next day is allowed");
	is(r.remaining, 6, "the next day's count begins at 0");
	is(r.reset_after_ns / SECOND, 16 * 3600, "the next day's count ends at the next midnight");
	is(count(id, "b", 1, 0, HOUR, ns(T0_S) + 23 * HOUR + HOUR / 2), SHMLIMIT_ALLOWED,
	   "a call can say how long its count lives");
	is(r.reset_after_ns / SECOND, 3600, "a count lives as long as its call says");
	shmlimit_close(l);
}

static void errors(void)
{
	struct shmlimit_rule rule = { .struct_size = sizeof(rule),
		                      .algorithm = SHMLIMIT_COUNTER,
		                      .capacity = 2,
		                      .period_ns = DAY,
		                      .zone = "Nowhere/Land" };
	struct shmlimit_problem wrong;

	begin();
	is(shmlimit_rule_set(l, "bad", &rule), -ENOPKG, "a zone without data is refused");
	strcpy(rule.zone, "../etc/passwd");
	is(shmlimit_rule_set(l, "bad", &rule), -EINVAL, "a path that is no zone's name is refused");
	memset(rule.zone, 'x', sizeof(rule.zone));
	is(shmlimit_rule_set(l, "bad", &rule), -EINVAL, "a name that does not end is refused");
	memset(rule.zone, 0, sizeof(rule.zone));
	strcpy(rule.zone, "UTC");
	rule.period_ns = 2 * DAY;
	is(shmlimit_rule_set(l, "bad", &rule), -EINVAL, "a period that no calendar has is refused");
	rule.period_ns = DAY;
	rule.zone_offsets[0] = 1;
	is(shmlimit_rule_set(l, "bad", &rule), -EINVAL, "offsets that no zone has are refused");
	rule.zone_offsets[0] = 0;
	rule.algorithm = SHMLIMIT_WINDOW;
	is(shmlimit_rule_set(l, "bad", &rule), -EINVAL, "only a counter has a zone");
	rule.algorithm = SHMLIMIT_FUNNEL;
	is(shmlimit_rule_parse("5/day in Nowhere/Land", &rule, &wrong), -EINVAL, "a limit in such a zone is no limit");
	if (access("/usr/share/zoneinfo/Africa/Casablanca", R_OK) == 0)
		is(shmlimit_rule_parse("5/day in Africa/Casablanca", &rule, &wrong), -EINVAL,
		   "a zone whose offset follows the moon is refused");
	shmlimit_close(l);
}

/* ---- Clocks ---- */

static void clocks(void)
{
	uint64_t right_ns;
	int id;

	begin();
	id = set("5/hour in UTC");
	/* The clock was set by hours since the segment was made. */
	l->header->unix_ns = 12345 * HOUR;
	(void)shmlimit_take(at_clock(l), id, "a", 1, 1, &r);
	right_ns = l->header->unix_ns;
	ok(right_ns - 12345 * HOUR > HOUR, "a count that begins finds that the clock was set");
	is(r.reset_after_ns > HOUR + SECOND, 0, "that count ends with the hour of the clock as it is");
	l->header->unix_ns = right_ns + SECOND / 2;
	(void)shmlimit_take(at_clock(l), id, "b", 1, 1, &r);
	is(l->header->unix_ns, right_ns + SECOND / 2, "less than a second is no step");
	(void)shmlimit_take(at_time(l, 5 * HOUR), id, "c", 1, 1, &r);
	is(l->header->unix_ns, right_ns + SECOND / 2, "a time that is given sets no clock");
	shmlimit_close(l);
}

static void saved(void)
{
	struct shmlimit *other = NULL;
	struct shmlimit_rule rule = { .struct_size = sizeof(rule) };
	char name[80];
	uint64_t left_ns;
	int fd = memfd_create("saved", MFD_CLOEXEC), id;

	l = unit_create("calendar", NULL);
	id = unit_id(shmlimit_rule_parse("5/day in UTC", &rule, NULL));
	id = unit_id(shmlimit_rule_set(l, "quota", &rule));
	(void)shmlimit_take(l, id, "a", 1, 2, &r);
	left_ns = r.reset_after_ns;
	is(shmlimit_save(l, fd), 0, "a rule with a zone is saved");
	snprintf(name, sizeof(name), "%s.2", unit_name);
	lseek(fd, 0, SEEK_SET);
	is(shmlimit_load(name, fd, 0, &other), 0, "a rule with a zone is loaded");
	if (other != NULL) {
		id = shmlimit_rule_find(other, "quota");
		is(shmlimit_rule_get(other, id, &rule), 0, "a loaded rule can be read");
		is_str(rule.zone, "UTC", "a loaded rule has its zone");
		(void)shmlimit_peek(other, id, "a", 1, 0, &r);
		is(r.remaining, 3, "a loaded key has what it had");
		ok(r.reset_after_ns <= left_ns && left_ns - r.reset_after_ns < HOUR,
		   "a loaded key is full at the same midnight");
		is(shmlimit_verify(name, NULL, 0), 0, "a loaded segment with a zone is sound");
		shmlimit_destroy(name);
		shmlimit_close(other);
	}
	close(fd);
	shmlimit_close(l);
}

int main(void)
{
	rng = (struct rng){ rng_seed() };
	midnight();
	summer();
	histories();
	changes();
	counts();
	errors();
	clocks();
	saved();
	return tap_done();
}
