/*
 * errors: the texts of errors, each of which ping returns with words of its own. And what is missing in a call: each
 * argument in turn.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <string.h>

#include "errors.h"
#include "server.h"

/* The first words of a backend error's text, up to its colon. */
static size_t words_of(enum backend_error_kind kind, char text[BACKEND_ERROR_TEXT_MAX])
{
	struct backend_error failure = { .kind = kind };

	return strcspn(backend_error_text(&failure, text), ":");
}

/* Of a URL and options alone. */
static void check_only(struct shmlimit *l)
{
	static const char *const wrong[] = {
		"",          "redis:",        "redis://h:0",          "redis://h:99999", "redis://h/first",
		"unix://no", "redis://u:%@h", "redis://h/9999999999", "http://h"
	};
	struct shmlimit_global_options options = { .struct_size = sizeof(options) };
	struct shmlimit_global *g = NULL;

	is(shmlimit_global_open(NULL, "redis://127.0.0.1:1/3", NULL, NULL), 0,
	   "a right URL is right without a limiter");
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		is(shmlimit_global_open(NULL, wrong[i], NULL, NULL), -EINVAL, "\"%s\" is wrong without a limiter",
		   wrong[i]);
		is(shmlimit_global_open(l, wrong[i], NULL, &g), -EINVAL, "\"%s\" is wrong with one", wrong[i]);
	}
	options.local_milli = 1001;
	is(shmlimit_global_open(NULL, "redis://h", &options, NULL), -EINVAL, "options are checked, too");
	is(shmlimit_global_open(l, "redis://h", NULL, NULL), -EINVAL, "a handle needs room");
	is(shmlimit_global_open(NULL, "redis://h", NULL, &g), -EINVAL, "a handle needs a limiter");
	ok(g == NULL, "none was made");
}

static int never(void *arg, int serving)
{
	(void)arg;
	(void)serving;
	return 0;
}

/* The handle's server is not asked. */
static void missing(void)
{
	struct shmlimit *l = stage_create(64, 0, 0);
	int rule = lease_rule(l, "login", 8, 1, 1000000000), answer;
	struct shmlimit_request request = { .rule = rule, .key = "key", .key_len = 3, .cost = 1 }, reserved = request;
	struct shmlimit_global_ticket ticket = { .struct_size = sizeof(ticket) };
	struct shmlimit_global_funnel funnel = { .struct_size = sizeof(funnel) };
	struct shmlimit_global_status status = { .struct_size = sizeof(status) };
	struct shmlimit_global_server server = { .struct_size = sizeof(server) };
	struct shmlimit_limit limit = { .struct_size = sizeof(limit), .capacity = 1, .refill = 1, .period_ns = 1 };
	struct shmlimit_place place = { .struct_size = sizeof(place) };
	struct shmlimit_count_request count = { .struct_size = sizeof(count), .n = 1, .bound = 1 };
	struct shmlimit_rule counts = { .struct_size = sizeof(counts), .algorithm = SHMLIMIT_COUNTER };
	int counter = shmlimit_rule_set(l, "count", &counts);
	struct shmlimit_global *g;

	check_only(l);
	if (shmlimit_global_open(l, "redis://127.0.0.1:1", NULL, &g) != 0)
		bail("open");
	reserved.share = 1;
	is(shmlimit_global_take(NULL, rule, "key", 3, 1, NULL), -EINVAL, "take needs a handle");
	is(shmlimit_global_take(g, rule, NULL, 3, 1, NULL), -EINVAL, "take needs a key");
	is(shmlimit_global_begin(NULL, &request, &ticket, NULL), -EINVAL, "begin needs a handle");
	is(shmlimit_global_begin(g, NULL, &ticket, NULL), -EINVAL, "begin needs a request");
	is(shmlimit_global_begin(g, &request, NULL, NULL), -EINVAL, "begin needs a ticket");
	is(shmlimit_global_begin(g, &reserved, &ticket, NULL), -EOPNOTSUPP, "begin has no shares");
	request.place = &place;
	is(shmlimit_global_begin(g, &request, &ticket, NULL), -EOPNOTSUPP, "begin has no places of requests");
	is(shmlimit_global_take_many(g, &request, 1, &answer, NULL), -EOPNOTSUPP, "a batch has no places either");
	is(shmlimit_global_take_all(g, &request, 1, NULL, NULL), -EOPNOTSUPP, "all or none have no places either");
	request.place = NULL;
	request.limit = &limit;
	is(shmlimit_global_begin(g, &request, &ticket, NULL), -EOPNOTSUPP, "begin has no limits of requests");
	is(shmlimit_global_take_many(g, &request, 1, &answer, NULL), -EOPNOTSUPP, "a batch has none either");
	is(shmlimit_global_take_all(g, &request, 1, NULL, NULL), -EOPNOTSUPP, "take_all has none either");
	request.limit = NULL;
	is(shmlimit_global_poll(NULL, &ticket, NULL), -EINVAL, "poll needs a handle");
	is(shmlimit_global_poll(g, NULL, NULL), -EINVAL, "poll needs a ticket");
	is(shmlimit_global_take_many(NULL, &request, 1, &answer, NULL), -EINVAL, "take_many needs a handle");
	is(shmlimit_global_take_many(g, NULL, 1, &answer, NULL), -EINVAL, "take_many needs requests");
	is(shmlimit_global_take_many(g, &request, 1, NULL, NULL), -EINVAL, "take_many needs room for answers");
	is(shmlimit_global_take_all(NULL, &request, 1, NULL, NULL), -EINVAL, "take_all needs a handle");
	is(shmlimit_global_take_all(g, NULL, 1, NULL, NULL), -EINVAL, "take_all needs requests");
	is(shmlimit_global_begin_all(NULL, &request, 1, &ticket, NULL, NULL), -EINVAL, "begin_all needs a handle");
	is(shmlimit_global_begin_all(g, NULL, 1, &ticket, NULL, NULL), -EINVAL, "begin_all needs requests");
	is(shmlimit_global_begin_all(g, &request, 1, NULL, NULL, NULL), -EINVAL, "begin_all needs tickets");
	is(shmlimit_global_poll_all(NULL, &ticket, 1, NULL, NULL), -EINVAL, "poll_all needs a handle");
	is(shmlimit_global_poll_all(g, NULL, 1, NULL, NULL), -EINVAL, "poll_all needs tickets");
	is(shmlimit_global_ping(NULL, NULL), -EINVAL, "ping needs a handle");
	is(shmlimit_global_count(NULL, rule, "key", 3, &count, NULL), -EINVAL, "count needs a handle");
	is(shmlimit_global_count(g, counter, NULL, 3, &count, NULL), -EINVAL, "count needs a key");
	is(shmlimit_global_count(g, counter, "key", 3, NULL, NULL), -EINVAL, "count needs a request");
	is(shmlimit_global_peek(NULL, rule, "key", 3, &funnel), -EINVAL, "peek needs a handle");
	is(shmlimit_global_peek(g, rule, NULL, 3, &funnel), -EINVAL, "peek needs a key");
	is(shmlimit_global_peek(g, rule, "key", 3, NULL), -EINVAL, "peek needs room for what it finds");
	is(shmlimit_global_reset(NULL, rule, "key", 3), -EINVAL, "reset needs a handle");
	is(shmlimit_global_serve(NULL, never, NULL), -EINVAL, "serve needs a handle");
	is(shmlimit_global_serve(g, NULL, NULL), -EINVAL, "serve needs a function");
	is(shmlimit_global_status(NULL, &status), -EINVAL, "status needs a limiter");
	is(shmlimit_global_status(l, NULL), -EINVAL, "status needs room for what it finds");
	is(shmlimit_global_server(NULL, 0, &server), -EINVAL, "server needs a limiter");
	is(shmlimit_global_server(l, 0, NULL), -EINVAL, "server needs room for what it finds");
	is(shmlimit_global_failures(NULL, rule), 0, "no limiter has no failures");
	is(shmlimit_global_breaker_ns(NULL), 0, "no handle has no breaker");
	shmlimit_global_cancel(NULL, &ticket);
	shmlimit_global_cancel(g, NULL);
	shmlimit_global_cancel_all(NULL, &ticket, 1);
	shmlimit_global_cancel_all(g, NULL, 1);
	shmlimit_global_close(NULL);
	is(shmlimit_peek(l, rule, "key", 3, 1, NULL), SHMLIMIT_DENIED, "a call that is refused leases nothing");
	shmlimit_global_close(g);
	shmlimit_close(l);
}

int main(void)
{
	char text[BACKEND_ERROR_TEXT_MAX];

	for (enum backend_error_kind kind = ERROR_LATE; kind < ERROR_KINDS; kind++) {
		struct backend_error failure = { .kind = kind };
		int error = backend_error_errno(&failure), found = 0;
		const char *said = shmlimit_global_strerror(error);

		if (error == 0)
			continue;
		/* Several kinds may share an error. */
		for (enum backend_error_kind of = ERROR_LATE; of < ERROR_KINDS; of++) {
			struct backend_error other = { .kind = of };
			size_t len = words_of(of, text);

			found |= backend_error_errno(&other) == error && strlen(said) == len &&
			         memcmp(said, text, len) == 0;
		}
		text[words_of(kind, text)] = '\0';
		ok(found, "error %d has the words of the backend error that it means: %s; the report says %s", error,
		   said, text);
		is_str(shmlimit_global_strerror(-error), said, "error %d has the same text without its sign", error);
	}
	is_str(shmlimit_global_strerror(-ECONNREFUSED), "Connection refused",
	       "a refused connection has the system's words");
	is_str(shmlimit_global_strerror(-ENOTTY), "Inappropriate ioctl for device",
	       "an error that no backend causes has the system's words");
	stage_begin("global.errors");
	missing();
	return tap_done();
}
