/*
 * limit_text: limits as people write them, most of them from the documentation of other limiters. What is read prints
 * back as a text that reads the same, and what is refused names a limit that is read.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "unit.h"

#define DAY (86400 * SECOND)

/*
 * A text, and what it is, as shmlimit_rule_text() prints it. What is refused has a '?' and the nearest limit, or "!" and a
 * part of what is said. Where a program has several settings for one limit, the text is what a user makes of them.
 */
struct reading {
	const char *text, *reads;
};

struct source {
	const char *name;
	const struct reading *readings;
};

/* nginx.org/en/docs/http/ngx_http_limit_req_module.html, ngx_http_limit_conn_module.html */
static const struct reading nginx[] = {
	{ "1r/s", "1/s" },
	{ "10r/s", "10/s" },
	{ "30r/m", "30/m" },
	{ "5r/s burst=10", "5/s burst 10" },
	{ "1r/s burst=5", "1/s burst 5" },
	{ "10r/s burst=20 nodelay", "?10r/s burst=20" },
	{ "1r/s burst=5 nodelay", "?1r/s burst=5" },
	{ "1r/s burst=0", "?1r/s burst=1" },
	{ "burst=5", "!not a limit" },
	{ "rate=10r/s", "!not a limit" },
	{ "zone=one:10m rate=1r/s", "!not a limit" },
	{ "1r/s burst=10 delay=8", "!at the end" },
	{ "off", "unlimited" },
	{ "10 connections", "?10 at once" },
	{ "1 at once", "1 at once for 1m" },
	{ NULL, NULL },
};

/* haproxy.com/blog/four-examples-of-haproxy-rate-limiting, docs.haproxy.org: stick-table, timer format */
static const struct reading haproxy[] = {
	{ "20/10s", "20/10s" },
	{ "20 per 10s", "20/10s" },
	{ "100 requests per 10 seconds", "100/10s" },
	{ "3/3s", "3/3s" },
	{ "10/1s", "10/s" },
	{ "1000/24h", "1000/d" },
	{ "60/1m", "60/m" },
	{ "50/30s", "50/30s" },
	{ "15/100ms", "15/100ms" },
	{ "1/250us", "1/250us" },
	{ "7/1d", "7/d" },
	{ "http_req_rate(10s)", "!not a limit" },
	{ "gt 20", "!not a limit" },
	{ "20", "?20/s" },
	{ "20 concurrent", "?20 at once" },
	{ "50 concurrent connections", "?50 at once" },
	{ NULL, NULL },
};

/* envoyproxy.io: type/v3/token_bucket.proto (a max_tokens of 0 rejects always), the rate limit service's descriptors */
static const struct reading envoy[] = {
	{ "1000/1s burst 10000", "1000/s burst 10000" },
	{ "5/60s burst 5", "5/m" },
	{ "10/60s burst 100", "10/m burst 100" },
	{ "1/0.5s", "1/500ms" },
	{ "1/1s", "1/s" },
	{ "1/SECOND", "1/s" },
	{ "500/MINUTE", "500/m" },
	{ "60/HOUR", "60/h" },
	{ "2/DAY", "2/d" },
	{ "100/MONTH", "100/30d" },
	{ "5/YEAR", "5/365d" },
	{ "0/s", "block" },
	{ "0", "block" },
	{ "unlimited", "unlimited" },
	{ "requests_per_unit: 5", "!not a limit" },
	{ NULL, NULL },
};

/* limits.readthedocs.io: string notation; flask-limiter.readthedocs.io */
static const struct reading limits[] = {
	{ "10 per hour", "10/h" },
	{ "10/hour", "10/h" },
	{ "10/hour;100/day;2000 per year", "!more than one limit" },
	{ "100/day, 500/7days", "!more than one limit" },
	{ "500/7days", "500/w" },
	{ "100/7 days", "100/w" },
	{ "1 per minute", "1/m" },
	{ "1/minute", "1/m" },
	{ "1/1minute", "1/m" },
	{ "10 per 2 hour", "10/2h" },
	{ "5 per second", "5/s" },
	{ "200 per day", "200/d" },
	{ "50 per hour", "50/h" },
	{ "1 per day", "1/d" },
	{ "100/5minutes", "100/5m" },
	{ "2 per month", "2/30d" },
	{ "3 per 3 hour", "3/3h" },
	{ "1 PER MINUTE", "1/m" },
	{ "10 / minute", "10/m" },
	{ "0/minute", "block" },
	{ "1 per fortnight", "!fortnight is not a unit" },
	{ "10/hour|100/day", "!more than one limit" },
	{ "10 every hour", "?10 per hour" },
	{ "1 per hr", "1/h" },
	{ "", "!not a limit" },
	{ NULL, NULL },
};

/* django-rest-framework.org/api-guide/throttling */
static const struct reading drf[] = {
	{ "100/day", "100/d" },     { "1000/day", "1000/d" },
	{ "60/min", "60/m" },       { "20/day", "20/d" },
	{ "1000/hour", "1000/h" },  { "10/sec", "10/s" },
	{ "3/s", "3/s" },           { "5/m", "5/m" },
	{ "7/h", "7/h" },           { "9/d", "9/d" },
	{ "0/min", "block" },       { "None", "?unlimited" },
	{ "/min", "!not a limit" }, { "5/M", "!M is a minute to some" },
	{ "5/10min", "5/10m" },     { NULL, NULL },
};

/* What people write between a count and its period. */
static const struct reading counted[] = {
	{ "1 MB/s", "?1M/s" },
	{ "1MB/s", "?1M/s" },
	{ "10 KiB per minute", "?10Ki per minute" },
	{ "5 bytes/s", "?5/s" },
	{ "100k tpm", "?100k/m" },
	{ "100k TPM", "?100k/m" },
	{ "5 attempts per minute", "?5 per minute" },
	{ "5 attempts/minute burst 9", "?5/minute burst 9" },
	{ "5 logins every minute", "?5/minute" },
	{ "5 Mbit/s", "!Mbit is not understood" },
	{ "5 kilobytes per second", "!kilobytes is not understood" },
	{ "3 million per day", "!million is not understood" },
	{ "3 aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa per day", "!aaaaaaaaaaaaaaaaaaaa is not understood" },
	{ "5 attempts", "!a period is missing" },
	{ NULL, NULL },
};

/* api.rubyonrails.org: ActionController::RateLimiting; github.com/rack/rack-attack */
static const struct reading rails[] = {
	{ "10/3 minutes", "10/3m" },
	{ "10 within 3 minutes", "?10 per 3 minutes" },
	{ "10, within: 3.minutes", "!a period is missing" },
	{ "3/2 seconds", "3/2s" },
	{ "100/1 hour", "100/h" },
	{ "5 requests per 2 seconds", "5/2s" },
	{ "300/5.minutes", "!a unit is missing" },
	{ "6/60", "?6/60s" },
	{ "5/20.seconds", "!a unit is missing" },
	{ "1/1 day", "1/d" },
	{ "10 in 1 minute", "?10 per 1 minute" },
	{ "20 by 1 hour", "?20 per 1 hour" },
	{ "nil", "?unlimited" },
	{ NULL, NULL },
};

/* laravel.com/docs/routing (rate limiting, throttle middleware), laravel.com/docs/redis (throttle, funnel) */
static const struct reading laravel[] = {
	{ "60,1", "?60/1m" },
	{ "10,1", "?10/1m" },
	{ "3,10", "?3/10m" },
	{ "10|60,1", "!a period is missing" },
	{ "1000/minute", "1000/m" },
	{ "60 per minute", "60/m" },
	{ "500 per day", "500/d" },
	{ "1 per second", "1/s" },
	{ "1 at once for 60s", "1 at once for 1m" },
	{ "10 every 60", "!must be / or per" },
	{ "10 every 60s", "?10 per 60s" },
	{ "10 per 60 seconds", "10/m" },
	{ "none", "?unlimited" },
	{ "none()", "!not a limit" },
	{ "throttle:uploads", "!not a limit" },
	{ "5 at once for 1 hour", "5 at once for 1h" },
	{ NULL, NULL },
};

/* symfony.com/doc/current/rate_limiter.html: limit, interval, rate */
static const struct reading symfony[] = {
	{ "100/60 minutes", "100/h" },
	{ "500/15 minutes burst 5000", "500/15m burst 5000" },
	{ "5/15 minutes", "5/15m" },
	{ "3/15 minutes", "3/15m" },
	{ "5000/hour", "5000/h" },
	{ "1/15 minutes burst 10", "1/15m burst 10" },
	{ "2/15 minutes", "2/15m" },
	{ "10/1 second", "10/s" },
	{ "1/1 week", "1/w" },
	{ "20/1 month", "20/30d" },
	{ "1/1 year", "1/365d" },
	{ "7/1 day 12 hours", "7/1d12h" },
	{ "5/PT15M", "!PT is not a unit" },
	{ "no_limit", "!not a limit" },
	{ "5/+1 hour", "!a unit is missing" },
	{ NULL, NULL },
};

/* express-rate-limit.mintlify.app/reference/configuration (a limit of 0 blocks); github.com/animir/node-rate-limiter-flexible */
static const struct reading express[] = {
	{ "100/15 minutes", "100/15m" },
	{ "100/900000ms", "100/15m" },
	{ "5/60000 ms", "5/m" },
	{ "100 / 15m", "100/15m" },
	{ "0/15m", "block" },
	{ "1_000/h", "?1000/h" },
	{ "100/900000", "?100/900000s" },
	{ "15 * 60 * 1000", "!a period is missing" },
	{ "Infinity", "?unlimited" },
	{ "false", "?off" },
	{ "6 points per 1 second", "?6 per 1 second" },
	{ "-1", "?unlimited" },
	{ "-5/s", "?5/s" },
	{ "null", "?unlimited" },
	{ NULL, NULL },
};

/* github.com/fastify/fastify-rate-limit: max, timeWindow (in the words of the package ms) */
static const struct reading fastify[] = {
	{ "100/1 minute", "100/m" }, { "3/1000 ms", "3/s" },  { "10000/1 minute", "10000/m" },
	{ "2/2m", "2/2m" },          { "5/1.5h", "5/1h30m" }, { "1/2 days", "1/2d" },
	{ "8/10h", "8/10h" },        { "1/1 yr", "1/365d" },  { "1/100 milliseconds", "1/100ms" },
	{ "10/5 msecs", "10/5ms" },  { "1/1w", "1/w" },       { "2/3 Hrs", "2/3h" },
	{ "4/5 Minutes", "4/5m" },   { NULL, NULL },
};

/* github.com/brandur/redis-cell: CL.THROTTLE's arguments; redis.io */
static const struct reading redis_cell[] = {
	{ "15 30 60", "?30/60s burst 16" },
	{ "15 30 60 1", "!not a limit" },
	{ "30/60s burst 16", "30/m burst 16" },
	{ "30/60", "?30/60s" },
	{ "0 1 10", "?1/10s burst 1" },
	{ "100 60", "!a period is missing" },
	{ "30 per 60s burst: 16", "30/m burst 16" },
	{ NULL, NULL },
};

/* What this project's own texts have, and what is easily mistyped. */
static const struct reading own[] = {
	{ "5/minute", "5/m" },
	{ "100 per hour", "100/h" },
	{ "10/s burst 20", "10/s burst 20" },
	{ "10/s burst=20", "10/s burst 20" },
	{ "1000/day", "1000/d" },
	{ "3/month", "3/30d" },
	{ "1k/s", "1000/s" },
	{ "10Mi/s", "10485760/s" },
	{ "1.5k/s", "1500/s" },
	{ "10M/s burst 50M", "10000000/s burst 50000000" },
	{ "2Ki/s", "2048/s" },
	{ "1/1.5s", "1/1.5s" },
	{ "5/1m30s", "5/1m30s" },
	{ "5/1m 30s", "5/1m30s" },
	{ "2 per 5 seconds", "2/5s" },
	{ "20 at once", "20 at once for 1m" },
	{ "20 at once for 10 minutes", "20 at once for 10m" },
	{ "20 AT ONCE FOR 10 MINUTES", "20 at once for 10m" },
	{ "20 requests at once", "20 at once for 1m" },
	{ "20 at once at most 5 minutes each", "20 at once at most 5m each" },
	{ "20 at once at most 5m", "20 at once at most 5m each" },
	{ "0 at once", "block" },
	{ "auto at once", "auto 4 to 200 at once for 1m" },
	{ "auto 8 to 64 at once", "auto 8 to 64 at once for 1m" },
	{ "Auto 1 to 1k At Once By AIMD for 5 minutes", "auto 1 to 1000 at once by aimd for 5m" },
	{ "auto at once by gradient2 at most 30s each", "auto 4 to 200 at once by gradient2 at most 30s each" },
	{ "auto at once by vegas", "auto 4 to 200 at once for 1m" },
	{ "auto 65000 to 65534 at once by gradient2 at most 208d each",
	  "auto 65000 to 65534 at once by gradient2 at most 208d each" },
	{ "auto", "!must be \"at once\"" },
	{ "auto 8 at once", "!must be such as \"auto 4 to 200 at once\"" },
	{ "auto 8 to 4 at once", "!from 1 or more to as many or more" },
	{ "auto 0 to 4 at once", "!from 1 or more to as many or more" },
	{ "auto at once by reno", "!must be vegas, gradient2 or aimd" },
	{ "20 at once by aimd", "!at the end" },
	{ "block", "block" },
	{ "BLOCK", "block" },
	{ " block ", "block" },
	{ "0/s strict", "block" },
	{ "0/s window", "block" },
	{ "0/s burst 5", "!a limit of 0 has no burst" },
	{ "1000/hour strict", "500/h" },
	{ "1001/hour strict", "500/h burst 501" },
	{ "2/s strict", "1/s" },
	{ "1/s strict", "1/1.001s" },
	{ "1/500ms strict", "1/500.000001ms" },
	{ "1/y strict", "1/365d0.001s" },
	{ "100/h window", "100/h window" },
	{ "100/h window strict", "100/h window" },
	{ "100/h strict burst 5", "!a strict limit has no burst" },
	{ "100/h burst 5 strict", "!a strict limit has no burst" },
	{ "100/h window burst 5", "!a window has no burst" },
	{ "5/s burst 6 burst 7", "!burst appears more than once" },
	{ "5/s strict strict", "!appears more than once" },
	{ "  5 / Day  ", "5/d" },
	{ "30/60s", "30/m" },
	{ "007/060s", "7/m" },
	{ "1/1s1ns", "1/1.000000001s" },
	{ "18446744073709551615/ns", "18446744073709551615/ns" },
	{ "18446744073709551616/s", "!the number is too large" },
	{ "20000000000G/s", "!the number is too large" },
	{ "1/99999999999999999999w", "!the period is too long" },
	{ "1/30501w", "!the period is too long" },
	{ "1/0s", "!a period of 0" },
	{ "1/1.5ns", "!finer than a nanosecond" },
	{ "5/30m1h", "!shorter than the one before it" },
	{ "1/1s1s", "!shorter than the one before it" },
	{ "5", "?5/s" },
	{ "5/", "!a unit is missing" },
	{ "5 per", "!a unit is missing" },
	{ "5pers", "!a period is missing" },
	{ "5/60", "?5/60s" },
	{ "5/minut", "?5/minute" },
	{ "5/mintues burst 9", "?5/minutes burst 9" },
	{ "5/secnd", "?5/second" },
	{ "5/se", "?5/sec" },
	{ "10/s brust 20", "?10/s burst 20" },
	{ "10/s strickt", "?10/s strict" },
	{ "10/s burst", "!a number is missing" },
	{ "10/s burst 0", "?10/s burst 1" },
	{ "10/s burst 1.5", "?10/s burst 2" },
	{ "10 rps", "?10/s" },
	{ "300rpm", "?300/m" },
	{ "10 a minute", "?10 per minute" },
	{ "1,000/day", "?1000/day" },
	{ "1,000,000/day", "?1000000/day" },
	{ "0.5/s", "1/2s" },
	{ "5.5/s", "11/2s burst 6" },
	{ "0.5/10s", "1/20s" },
	{ "0.1/s burst 10", "1/10s burst 10" },
	{ "2.5/min", "5/2m burst 3" },
	{ "2.5 per minute burst 5", "5/2m" },
	{ "2.50 requests per minute", "5/2m burst 3" },
	{ "0.10000000000000000000000000000/s", "1/10s" },
	{ "0.0005k/s", "1/2s" },
	{ "0.0009765625Ki/s", "1/s" },
	{ "0.5/s window", "1/2s window" },
	{ "2.5/m window", "5/2m window" },
	{ "0.5/s strict", "1/2.001s" },
	{ "2.5/m strict", "2/2m burst 3" },
	{ "0.0/s", "block" },
	{ "0.5", "?0.5/s" },
	{ "1e-05/s", "1/1d3h46m40s" },
	{ "2.5E+1/s", "25/s" },
	{ "1.0E-5 per second", "1/1d3h46m40s" },
	{ "1e-9/s", "1/11574d1h46m40s" },
	{ "1e30/s", "!the number is too large" },
	{ "1e-30/s", "!the number is too small" },
	{ "0.000000000000000000000000000000001/s", "!the number is too small" },
	{ "1e/s", "!a period is missing" },
	{ "0.333/y", "?0.33/y" },
	{ "0.01/y", "?1/36500d" },
	{ "0.001/y", "!the period is too long" },
	{ "0.12345678949/s", "?0.123456789/s" },
	{ "0.99999999999/s", "?1/s" },
	{ "9.99999999999/s burst 20", "?10/s burst 20" },
	{ "18446744073709551615.5/s", "!the number is too large" },
	{ "12345678901234567.25/s", "49382715604938269/4s burst 12345678901234568" },
	{ "2.5 at once", "?2 at once" },
	{ "0.5 at once", "?1 at once" },
	{ "deny", "?block" },
	{ "blok", "?block" },
	{ "unlimitd", "?unlimited" },
	{ "of", "?off" },
	{ "off 5", "!must be nothing at the end" },
	{ "20 at least", "!must be \"at once\"" },
	{ "20 at once for ever", "!ever is not a unit" },
	{ "20 at once at 5m", "?20 at once at most 5m" },
	{ "20 at once at most", "!a unit is missing" },
	{ "20 at once at most 5m of all", "!at the end" },
	{ "20 at once for 5m each", "!at the end" },
	{ "20 at once burst 5", "!at the end" },
	{ "5/minute/user", "!at the end" },
	{ "5 per minute per user", "!at the end" },
	{ "5/s 6", "!a unit is missing" },
	{ "5K K/s", "!a period is missing" },
	{ "1e3/s", "1000/s" },
	{ "+5/s", "?5/s" },
	{ "\xef\xbc\x95/s", "!not a limit" },
	{ "5\n/s", "!a period is missing" },
	{ NULL, NULL },
};

/* By the calendar of a time zone. */
static const struct reading calendar[] = {
	{ "10000/day in UTC", "10000/day in UTC" },
	{ "10000 requests per month in utc", "10000/month in UTC" },
	{ "5/hour in UTC", "5/hour in UTC" },
	{ "5/24h in UTC", "5/day in UTC" },
	{ "70 per week in UTC", "70/week in UTC" },
	{ "10000/day at midnight UTC", "?10000/day in UTC" },
	{ "10000/day at midnight", "?10000/day in UTC" },
	{ "10/day in", "?10/day in UTC" },
	{ "10/minute in UTC", "!has hours, days, weeks and months" },
	{ "2.5/day in UTC", "!has hours, days, weeks and months" },
	{ "10/day in UTC burst 5", "!neither burst nor window" },
	{ "10/day window in UTC", "!neither burst nor window" },
	{ "10/day in UTC in UTC", "!more than once" },
	{ "10/day in Nowhere/Land", "!no data of this time zone" },
	{ "10/day in ../../etc/passwd", "!not a time zone" },
	{ "10/day in an-island-that-has-a-rather-long-name-indeed", "!too long" },
	{ "10 at once in UTC", "!" },
	{ NULL, NULL },
};

static const struct source sources[] = {
	{ "nginx", nginx },     { "HAProxy", haproxy },         { "Envoy", envoy },     { "limits", limits },
	{ "DRF", drf },         { "What is counted", counted }, { "Rails", rails },     { "Laravel", laravel },
	{ "Symfony", symfony }, { "express", express },         { "fastify", fastify }, { "redis-cell", redis_cell },
	{ "own", own },         { "A calendar", calendar },
};

static int same(const struct shmlimit_rule *a, const struct shmlimit_rule *b)
{
	return a->algorithm == b->algorithm && a->mode == b->mode && a->capacity == b->capacity &&
	       a->refill == b->refill && a->period_ns == b->period_ns && strcmp(a->zone, b->zone) == 0;
}

static void accepted(const char *from, const struct reading *reading)
{
	struct shmlimit_rule rule = { .struct_size = sizeof(rule), .max_wait_ns = 77 }, again = rule;
	struct shmlimit_problem wrong = { 0 };
	char text[SHMLIMIT_RULE_TEXT_MAX];

	if (!ok(shmlimit_rule_parse(reading->text, &rule, &wrong) == 0 && rule.max_wait_ns == 77,
	        "%s: \"%s\" is a limit", from, reading->text)) {
		diag("%s", wrong.text);
		return;
	}
	shmlimit_rule_text(&rule, text);
	is_str(text, reading->reads, "\"%s\" is printed as \"%s\"", reading->text, reading->reads);
	again.algorithm = rule.algorithm;
	ok(shmlimit_rule_parse(text, &again, NULL) == 0 && same(&rule, &again), "\"%s\" reads the same", text);
}

static void refused(const char *from, const struct reading *reading)
{
	struct shmlimit_rule rule = { .struct_size = sizeof(rule), .capacity = 77 };
	struct shmlimit_problem wrong = { 0 };
	const char *nearest;
	char meant[SHMLIMIT_RULE_TEXT_MAX] = "";

	if (!ok(shmlimit_rule_parse(reading->text, &rule, &wrong) == -EINVAL && rule.capacity == 77,
	        "%s: \"%s\" is no limit", from, reading->text))
		return;
	ok(wrong.offset <= strlen(reading->text) && strlen(wrong.text) < sizeof(wrong.text) - 1, "\"%s\": %s",
	   reading->text, wrong.text);
	nearest = strstr(wrong.text, "did you mean \"");
	if (reading->reads[0] == '!') {
		ok(strstr(wrong.text, reading->reads + 1) != NULL && nearest == NULL,
		   "\"%s\" is not guessed at, but told why", reading->text);
		return;
	}
	if (nearest != NULL)
		snprintf(meant, sizeof(meant), "%.*s", (int)strcspn(nearest + 14, "\""), nearest + 14);
	is_str(meant, reading->reads + 1, "\"%s\" is probably \"%s\"", reading->text, reading->reads + 1);
	is(shmlimit_rule_parse(meant, &rule, NULL), 0, "\"%s\" is a limit", meant);
}

static void sources_are_read(void)
{
	int texts = 0;

	for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++)
		for (const struct reading *r = sources[i].readings; r->text != NULL; r++, texts++)
			(r->reads[0] == '!' || r->reads[0] == '?' ? refused : accepted)(sources[i].name, r);
	ok(texts >= 150, "%d texts are read", texts);
}

/* The numbers, once. */
static void numbers(void)
{
	static const struct {
		const char *text;
		uint32_t algorithm, mode;
		uint64_t capacity, refill, period_ns;
	} want[] = {
		{ "5/minute", SHMLIMIT_FUNNEL, SHMLIMIT_ENFORCE, 5, 5, 60 * SECOND },
		{ "10/s burst 20", SHMLIMIT_FUNNEL, SHMLIMIT_ENFORCE, 20, 10, SECOND },
		{ "3/month", SHMLIMIT_FUNNEL, SHMLIMIT_ENFORCE, 3, 3, 30 * DAY },
		{ "1/year", SHMLIMIT_FUNNEL, SHMLIMIT_ENFORCE, 1, 1, 365 * DAY },
		{ "5/h strict", SHMLIMIT_FUNNEL, SHMLIMIT_ENFORCE, 3, 2, 3600 * SECOND },
		{ "5/h window", SHMLIMIT_WINDOW, SHMLIMIT_ENFORCE, 5, 0, 3600 * SECOND },
		{ "5 at once", SHMLIMIT_HOLD, SHMLIMIT_ENFORCE, 5, 0, 60 * SECOND },
		{ "0 at once", SHMLIMIT_HOLD, SHMLIMIT_BLOCK, 1, 0, SECOND },
		{ "block", SHMLIMIT_FUNNEL, SHMLIMIT_BLOCK, 1, 1, SECOND },
		{ "unlimited", SHMLIMIT_FUNNEL, SHMLIMIT_OFF, SHMLIMIT_CAPACITY_MAX, SECOND, SECOND },
	};

	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		struct shmlimit_rule rule = { .struct_size = sizeof(rule) };

		ok(shmlimit_rule_parse(want[i].text, &rule, NULL) == 0 && rule.algorithm == want[i].algorithm &&
		           rule.mode == want[i].mode && rule.capacity == want[i].capacity &&
		           rule.refill == want[i].refill && rule.period_ns == want[i].period_ns,
		   "\"%s\" has its numbers", want[i].text);
	}
}

/* What each algorithm has, and that a rule with it can be set. */
static void algorithms(void)
{
	static const struct {
		const char *text;
		unsigned accepted; /* 1 << SHMLIMIT_... */
	} want[] = {
		{ "5/m", ~(1u << SHMLIMIT_HOLD) },
		{ "5/m burst 10", 1u << SHMLIMIT_FUNNEL | 1u << SHMLIMIT_LEASE | 1u << SHMLIMIT_GCRA },
		{ "4/m strict", 1u << SHMLIMIT_FUNNEL | 1u << SHMLIMIT_WINDOW | 1u << SHMLIMIT_GCRA },
		{ "4/m window", 1u << SHMLIMIT_FUNNEL | 1u << SHMLIMIT_WINDOW },
		{ "4 at once", 1u << SHMLIMIT_FUNNEL | 1u << SHMLIMIT_HOLD },
		{ "auto at once", 1u << SHMLIMIT_FUNNEL | 1u << SHMLIMIT_HOLD },
		{ "auto 4 to 8 at once by aimd", 1u << SHMLIMIT_FUNNEL | 1u << SHMLIMIT_HOLD },
		{ "block", ~0u },
		{ "unlimited", ~0u },
		{ "0/s", ~0u },
	};
	struct shmlimit_options options = { .struct_size = sizeof(options) };
	struct shmlimit *l = unit_create("limit_text", &options);

	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++)
		for (uint32_t algorithm = 0; algorithm <= LAST_ALGORITHM; algorithm++) {
			struct shmlimit_rule rule = { .struct_size = sizeof(rule), .algorithm = algorithm };
			struct shmlimit_rule again;
			char text[SHMLIMIT_RULE_TEXT_MAX];
			int accepts = want[i].accepted >> algorithm & 1;

			is(shmlimit_rule_parse(want[i].text, &rule, NULL), accepts ? 0 : -EINVAL,
			   "algorithm %u %s \"%s\"", algorithm, accepts ? "has" : "refuses", want[i].text);
			if (!accepts)
				continue;
			if (algorithm == SHMLIMIT_WARMUP)
				rule.warmup_ns = 100 * SECOND;
			ok(shmlimit_rule_set(l, "r", &rule) >= 0, "it can be set");
			again = rule;
			ok(shmlimit_rule_text(&rule, text) == 0 && shmlimit_rule_parse(text, &again, NULL) == 0 &&
			           again.capacity == rule.capacity && again.refill == rule.refill &&
			           again.period_ns == rule.period_ns && again.mode == rule.mode &&
			           again.law == rule.law && again.least == rule.least,
			   "its text reads back the same: %s", text);
			shmlimit_rule_remove(l, "r");
		}
	shmlimit_close(l);
}

static void arguments(void)
{
	struct shmlimit_rule rule = { .struct_size = sizeof(rule) }, small = { .struct_size = 16 }, none = { 0 };
	struct shmlimit_problem wrong = { 0 };
	char text[SHMLIMIT_RULE_TEXT_MAX];

	is(shmlimit_rule_parse(NULL, &rule, &wrong), -EINVAL, "no text is no limit");
	ok(wrong.text[0] != '\0', "an argument that is missing is reported too");
	is(shmlimit_rule_parse("5/s", NULL, NULL), -EINVAL, "a rule must be given");
	is(shmlimit_rule_parse("5/s", &none, NULL), -EINVAL, "a rule must have a size");
	is(shmlimit_rule_parse("5/s", &small, NULL), -EINVAL, "a rule must have room for a period");
	rule.algorithm = SHMLIMIT_GCRA + 1;
	is(shmlimit_rule_parse("5/s", &rule, NULL), -EINVAL, "the algorithm must be one");
	is(shmlimit_rule_text(&rule, text), -EINVAL, "an unknown algorithm has no text");
	rule = (struct shmlimit_rule){ .struct_size = sizeof(rule), .algorithm = SHMLIMIT_GCRA };
	is(shmlimit_rule_text(&rule, text), -EINVAL, "a rule whose calls bring their limits has no text");
	rule.algorithm = SHMLIMIT_COUNTER;
	rule.capacity = 5;
	is(shmlimit_rule_text(&rule, text), -EINVAL, "a counter whose calls say how long it lives has no text");
	rule = (struct shmlimit_rule){ .struct_size = sizeof(rule),
		                       .capacity = UINT64_MAX,
		                       .refill = UINT64_MAX - 1,
		                       .period_ns = UINT64_MAX - 1 };
	is(shmlimit_rule_text(&rule, text), 0, "the largest numbers have a text");
	ok(strlen(text) < sizeof(text) - 1, "it fits: %s", text);
}

int main(void)
{
	sources_are_read();
	numbers();
	algorithms();
	arguments();
	return tap_done();
}
