/*
 * share: on_failure LOCAL while a backend comes and goes. What a host has leased is charged to its share, by the process
 * that leases or by the agent.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "agent.h"

#define DAY UINT64_C(86400000000000)
#define CAPACITY 100
#define FIRST 10

static struct server server;
static struct shmlimit *l;
static struct shmlimit_global *g;

/* The server refuses writes, or no longer does. */
static void refuse(int refuses)
{
	server_tell(&server, refuses ? "CONFIG SET min-replicas-to-write 1" : "CONFIG SET min-replicas-to-write 0");
}

static int is_local(int rule, const char *key)
{
	struct shmlimit_result r;
	int allowed = shmlimit_global_take(g, rule, key, strlen(key), 1, &r) == SHMLIMIT_ALLOWED;

	return allowed && shmlimit_global_breaker_ns(g) != 0;
}

/* All that can be had of a key now. */
static int drain(int rule, const char *key)
{
	int allowed = 0;

	while (allowed <= 3 * CAPACITY && shmlimit_global_take(g, rule, key, strlen(key), 1, NULL) == SHMLIMIT_ALLOWED)
		allowed++;
	return allowed;
}

static void comes_and_goes(const char *name)
{
	char share[32];
	int rule = lease_rule(l, name, CAPACITY, 1, DAY), allowed = 0;

	/* A part of the limit is leased, then the backend is gone. */
	for (int i = 0; i < FIRST; i++)
		allowed += shmlimit_global_take(g, rule, "part", 4, 1, NULL) == SHMLIMIT_ALLOWED;
	is(allowed, FIRST, "%s: a backend gives what is asked for", name);
	is(drain(rule, "all"), CAPACITY, "%s: a backend gives the whole limit", name);
	refuse(1);
	await(is_local(rule, "other"));
	for (int i = 0; i < 5; i++)
		is(drain(rule, "all"), 0, "%s: a host that has had the whole limit has no share of it, time %d", name,
		   i);
	allowed += drain(rule, "part");
	ok(allowed <= CAPACITY, "%s: the lease and the share together are no more than the limit: %d", name, allowed);
	ok(allowed > CAPACITY / 2, "%s: what was not leased can be had: %d", name, allowed);
	snprintf(share, sizeof(share), "~local:%s", name);
	ok(shmlimit_rule_find(l, share) >= 0, "%s: the share has a rule", name);
	refuse(0);
	await(shmlimit_global_take(g, rule, "new", 3, 1, NULL) == SHMLIMIT_ALLOWED &&
	      shmlimit_global_breaker_ns(g) == 0);
}

int main(void)
{
	struct shmlimit_global_options options = { .struct_size = sizeof(options),
		                                   .deadline_ns = PATIENT_NS,
		                                   .lease_ns = PATIENT_NS,
		                                   .open_ns = 1000000,
		                                   .on_failure = SHMLIMIT_GLOBAL_LOCAL,
		                                   .local_milli = 1000 };
	struct agent_process agent;
	struct reports reports = { 0 };

	if (server_missing())
		return tap_skip_all("no redis-server");
	stage_begin("global.share");
	server_begin(&server, NULL);
	l = stage_create(1024, 0, 0);
	options.local_milli = 0;
	options.report = reports_take;
	options.arg = &reports;
	is(shmlimit_global_open(l, server.url, &options, &g), -EINVAL, "without a share, on_failure local is refused");
	ok(strstr(reports.last, "local_milli") != NULL, "the report names what is missing: %s", reports.last);
	options.local_milli = 1000;
	if (shmlimit_global_open(l, server.url, &options, &g) != 0)
		bail("open");
	comes_and_goes("direct");
	agent = agent_start(l, server.url, PATIENT_NS);
	agent_await(l);
	comes_and_goes("agent");
	ok(agent_stop(&agent), "the agent ends when it is told to");
	shmlimit_global_close(g);
	return tap_done();
}
