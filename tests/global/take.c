/*
 * take: one host and one engine: what is answered.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "server.h"

static struct server server;
static struct shmlimit *l;
static struct reports reports;

static struct shmlimit_global *open_global(struct shmlimit_global_options options)
{
	struct shmlimit_global *g;
	int error;

	options.struct_size = sizeof(options);
	options.report = reports_take;
	options.arg = &reports;
	/* Tests do not depend on speed. */
	if (options.deadline_ns == 0)
		options.deadline_ns = 2000000000;
	error = shmlimit_global_open(l, server.url, &options, &g);
	if (error != 0)
		bail("open: %s", shmlimit_strerror(error));
	return g;
}

static void one_funnel(void)
{
	struct shmlimit_global *g = open_global((struct shmlimit_global_options){ 0 });
	int rule = lease_rule(l, "login", 15, 1, 86400000000000);
	struct shmlimit_result r;
	int allowed = 0;

	is(shmlimit_global_take(g, rule, "key", 3, 1, &r), SHMLIMIT_ALLOWED, "a key never seen is allowed");
	is(r.limit, 15, "the limit is the rule's");
	is(r.remaining, 14, "what the engine has left is said");
	for (int i = 0; i < 30; i++)
		allowed += shmlimit_global_take(g, rule, "key", 3, 1, &r) == SHMLIMIT_ALLOWED;
	is(allowed, 14, "a funnel is given out to the token");
	ok(r.retry_after_ns > UINT64_C(86000000000000) && r.retry_after_ns <= UINT64_C(86400000000000),
	   "a denial says when a token is there");
	is(shmlimit_global_take(g, rule, "key", 3, 16, &r), SHMLIMIT_DENIED, "more than the capacity is denied");
	is(r.retry_after_ns, UINT64_MAX, "for ever");
	is(shmlimit_global_take(g, rule, "other", 5, 15, &r), SHMLIMIT_ALLOWED, "a cost of the whole capacity is allowed");
	is(reports.n, 0, "nothing is reported: %s", reports.last);
	shmlimit_global_close(g);
}

int main(void)
{
	if (server_missing())
		return tap_skip_all("no redis-server");
	stage_begin("global.take");
	server_begin(&server, NULL);
	l = stage_create(1024, 0, 0);
	one_funnel();
	return tap_done();
}
