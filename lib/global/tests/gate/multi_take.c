/*
 * multi_take: limits of this host and of a Redis server in one request, all or none; and what becomes of them without the
 * server.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "../server.h"
#include "unit/unit.h"
#include "multi_take.h"
#include "log_once.h"

static struct shmlimit *l;
static struct shmlimit_global *global;
static int local, first, second;
static struct shmlimit_result results[SHMLIMIT_REQUESTS_MAX];
static size_t failed;

static int set(const char *name, uint32_t algorithm, uint64_t capacity, uint32_t mode)
{
	return unit_rule_of(l, name,
	                    (struct shmlimit_rule){ .algorithm = algorithm,
	                                            .mode = mode,
	                                            .capacity = capacity,
	                                            .refill = 1,
	                                            .period_ns = 3600 * SECOND });
}

static int take(int a, int b, int c, const char *key)
{
	int rules[] = { a, b, c };
	struct shmlimit_request requests[3] = { 0 };
	struct multi_take progress = { 0 };
	size_t n = 0;

	for (size_t i = 0; i < 3; i++)
		if (rules[i] >= 0)
			requests[n++] = (struct shmlimit_request){
				.rule = rules[i], .key = key, .key_len = strlen(key), .cost = 1
			};
	memset(results, 0x77, sizeof(results));
	failed = 77;
	return multi_take_begin(&progress, &(struct multi_request){ l, global, requests, n, &failed, results }, 0);
}

static uint64_t here(int rule, const char *key)
{
	struct shmlimit_result r;

	shmlimit_peek(l, rule, key, strlen(key), 1, &r);
	return r.remaining;
}

static uint64_t there(int rule, const char *key)
{
	struct shmlimit_global_funnel funnel = { .struct_size = sizeof(funnel) };

	if (shmlimit_global_peek(global, rule, key, strlen(key), &funnel) != 0)
		bail("peek");
	return funnel.remaining;
}

static void options(struct shmlimit_global **out, const char *url, uint32_t on_failure)
{
	/* No test depends on speed; leases last as long, so that what is given back is still there. */
	struct shmlimit_global_options o = { .struct_size = sizeof(o),
		                             .on_failure = on_failure,
		                             .local_milli = 1000,
		                             .deadline_ns = 5 * SECOND,
		                             .lease_ns = 10 * SECOND,
		                             .open_ns = 3600 * SECOND };

	if (shmlimit_global_open(l, url, &o, out) != 0)
		bail("shmlimit_global_open");
}

static void all_or_none(void)
{
	is(take(first, local, second, "k"), SHMLIMIT_ALLOWED, "limits of both kinds allow");
	ok(results[0].limit == 5 && results[1].limit == 3 && results[2].limit == 2, "each result is its own");
	ok(here(local, "k") == 2 && there(first, "k") == 4 && there(second, "k") == 1,
	   "each of the three limits has taken one token");
	take(first, local, second, "k");
	is(take(first, local, second, "k"), SHMLIMIT_DENIED, "a request is denied when the last of its limits denies");
	is(failed, 2, "the limit that denies is named by its place in the request");
	ok(results[2].limit == 2 && results[2].remaining == 0 && results[2].retry_after_ns > 0, "with its result");
	is(here(local, "k"), 1, "what was taken of this host's limit before is given back");
	is(there(first, "k") + here(first, "k"), 3, "as is what was leased, to the lease");
	is(take(first, -1, -1, "k"), SHMLIMIT_ALLOWED, "from which it is spent");
	is(there(first, "k") + here(first, "k"), 2, "once");

	take(local, -1, -1, "k");
	is(take(first, second, local, "k"), SHMLIMIT_DENIED, "where a limit of this host denies");
	is(failed, 2, "it is named, wherever it stands");
	is(there(first, "k") + here(first, "k"), 2, "the backend was not asked for a limit behind the one that denies");
}

static void dry_runs(void)
{
	int dry = set("dry", SHMLIMIT_LEASE, 1, SHMLIMIT_DRY_RUN);

	is(take(dry, -1, -1, "d"), SHMLIMIT_ALLOWED, "a global rule in a dry run takes");
	is(take(dry, -1, -1, "d"), SHMLIMIT_ALLOWED, "a global rule in a dry run allows when there is nothing");
	ok(results[0].retry_after_ns > 0, "saying so");
	take(second, -1, -1, "d");
	take(second, -1, -1, "d");
	is(take(dry, second, -1, "d"), SHMLIMIT_DENIED, "where another denies");
	is(there(dry, "d") + here(dry, "d"), 0, "what it has not taken is not given back");
}

static void without(struct server *s)
{
	struct shmlimit_global *of = global;

	global = NULL;
	is(take(local, first, -1, "e"), -EDESTADDRREQ, "where there is no backend, a global rule is an error");
	is(failed, 1, "of its own");
	is(here(local, "e"), 3, "a request whose limit fails takes nothing");
	is(take(local, -1, -1, "e"), SHMLIMIT_ALLOWED, "a request without a key is decided");
	for (int i = 0; i < 3; i++)
		take(local, -1, -1, "spent");
	is(take(first, local, -1, "spent"), SHMLIMIT_DENIED,
	   "a limit of this host denies although another one cannot be asked");
	is(failed, 1, "the limit of this host that denies is named although another one cannot be asked");
	global = of;

	server_kill(s);
	is(take(local, first, -1, "e"), SHMLIMIT_DENIED, "where the backend is gone, it denies if so configured");
	is(here(local, "e"), 2, "a limit of this host gives back what a gone backend denies");
	shmlimit_global_close(global);
	options(&global, s->url, SHMLIMIT_GLOBAL_ALLOW);
	is(take(local, first, -1, "e"), SHMLIMIT_ALLOWED, "where the backend is gone, a gate allows if so configured");
	is(here(local, "e"), 1, "where a gone backend allows, the limit of this host counts");
	shmlimit_global_close(global);
	options(&global, s->url, SHMLIMIT_GLOBAL_LOCAL);
	for (int i = 0; i < 5; i++)
		take(first, -1, -1, "e");
	is(take(first, -1, -1, "e"), SHMLIMIT_DENIED,
	   "where the backend is gone, this host enforces its share if so configured");
}

/* What an answer without the backend has not leased is not given back: that would make tokens. */
static void nothing_made(struct server *s)
{
	shmlimit_global_close(global);
	options(&global, s->url, SHMLIMIT_GLOBAL_ALLOW);
	/* A lease of two, a denial that is known, and no backend. */
	shmlimit_lease_deposit(l, first, "m", 1, 2, 0, 0, 3600 * SECOND, NULL);
	is(here(first, "m"), 2, "while a host holds two tokens of one rule");
	shmlimit_lease_deny(l, second, "m", 1, 1, 3600 * SECOND, NULL);
	for (int i = 0; i < 3; i++)
		is(take(first, second, -1, "m"), SHMLIMIT_DENIED,
		   "a request is denied by its second lease while the backend is gone");
	is(here(first, "m"), 2, "a request that its second lease denies takes none of the first, and makes none");
	take(first, -1, -1, "m");
	take(first, -1, -1, "m");
	is(here(first, "m"), 0, "spent, they are gone");
	is(take(first, second, -1, "m"), SHMLIMIT_DENIED,
	   "a request that its first lease let pass is denied by the second");
	is(here(first, "m"), 0, "a denied request gives nothing back that it did not take");
}

static void repeated(void)
{
	struct log_once log_once = { .reported = { 0 } };
	char text[8];

	ok(!log_once_has(&log_once, "gone", 1000), "what is said the first time is new");
	ok(log_once_has(&log_once, "gone", 60999), "a text is not new again within a minute");
	ok(!log_once_has(&log_once, "back", 1000), "other words are");
	ok(!log_once_has(&log_once, "gone", 61000), "a text is new again after a minute");
	ok(log_once_has(&log_once, "back", 60000), "a text that was reported in between is not forgotten");
	for (int i = 0; i < LOG_ONCE_KEPT; i++) {
		snprintf(text, sizeof(text), "%d", i);
		log_once_has(&log_once, text, 62000 + (unsigned)i);
	}
	ok(!log_once_has(&log_once, "gone", 62500), "as many texts as are kept push the oldest out");
	ok(log_once_has(&log_once, "9", 62500), "the newest text is kept");
}

int main(void)
{
	static struct server s;

	repeated();
	if (server_missing())
		return tap_skip("limits of both kinds", "no redis-server"), tap_done();
	server_begin(&s, NULL);
	l = unit_create("take", NULL);
	local = set("local", SHMLIMIT_FUNNEL, 3, SHMLIMIT_ENFORCE);
	first = set("first", SHMLIMIT_LEASE, 5, SHMLIMIT_ENFORCE);
	second = set("second", SHMLIMIT_LEASE, 2, SHMLIMIT_ENFORCE);
	options(&global, s.url, SHMLIMIT_GLOBAL_DENY);
	all_or_none();
	dry_runs();
	without(&s);
	nothing_made(&s);
	shmlimit_global_close(global);
	shmlimit_close(l);
	return tap_done();
}
