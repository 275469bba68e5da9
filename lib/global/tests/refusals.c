/*
 * refusals: a server that is there and refuses, and an agent that asks it: one that has become a replica (READONLY), that
 * lacks replicas (NOREPLICAS), or that runs a script without end (BUSY). on_failure decides until it serves again.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "agent.h"

#define DAY UINT64_C(86400000000000)
#define CAPACITY 10

static struct server server;
static struct shmlimit *l;

/* The processes' deadline is so long that the test would be ended if they waited for it. */
static struct shmlimit_global *open_patient(uint32_t on_failure)
{
	return global_open(l, server.url,
	                   (struct shmlimit_global_options){ .deadline_ns = PATIENT_NS,
	                                                     .lease_ns = PATIENT_NS,
	                                                     .open_ns = 1000000,
	                                                     .on_failure = on_failure });
}

/* A script without end, on a connection that is not waited for. */
static void run_for_ever(redisContext **busy)
{
	int done = 0;

	*busy = redisConnectUnix(server.socket);
	if (*busy == NULL || (*busy)->err != 0)
		bail("no connection");
	redisAppendCommand(*busy, "EVAL %s 0", "while true do end");
	while (!done)
		if (redisBufferWrite(*busy, &done) != REDIS_OK)
			bail("write: %s", (*busy)->errstr);
}

/* While the server refuses, and after. Each key has the whole capacity. */
static void refuses(const char *what, const char *begin, const char *end)
{
	struct shmlimit_global *lax = open_patient(SHMLIMIT_GLOBAL_ALLOW), *strict = open_patient(SHMLIMIT_GLOBAL_DENY);
	int rule = lease_rule(l, what, CAPACITY, 1, DAY), allowed = 0, denied = 0;
	redisContext *busy = NULL;
	uint64_t failed;

	await(agent_status(l).connections == 1 && shmlimit_global_breaker_ns(lax) == 0);
	is(shmlimit_global_take(strict, rule, "before", 6, 1, NULL), SHMLIMIT_ALLOWED, "%s: before, the server answers",
	   what);
	failed = agent_status(l).failed;
	if (begin != NULL)
		server_tell(&server, begin);
	else
		run_for_ever(&busy);
	/* A script is refused only once it has run for a while. */
	for (int key = 0; agent_status(l).failed == failed; key++)
		shmlimit_global_take(lax, rule, &key, sizeof(key), 1, NULL);
	for (int i = 0; i < 2 * CAPACITY; i++) {
		allowed += shmlimit_global_take(lax, rule, "lax", 3, 1, NULL) == SHMLIMIT_ALLOWED;
		denied += shmlimit_global_take(strict, rule, "strict", 6, 1, NULL) == SHMLIMIT_DENIED;
	}
	is(allowed, 2 * CAPACITY, "%s: on_failure allows at once", what);
	is(denied, 2 * CAPACITY, "%s: on_failure denies at once", what);
	server_tell(&server, end);
	if (busy != NULL)
		redisFree(busy);
	await(shmlimit_global_take(strict, rule, "strict", 6, 1, NULL) == SHMLIMIT_ALLOWED);
	for (allowed = 1; shmlimit_global_take(strict, rule, "strict", 6, 1, NULL) == SHMLIMIT_ALLOWED;)
		allowed++;
	is(allowed, CAPACITY, "%s: when the server serves again the limit is in force", what);
	shmlimit_global_close(lax);
	shmlimit_global_close(strict);
}

/* One that may drop keys is warned of, by the agent in a thread of this process. */
static void evicts(void)
{
	static const struct {
		const char *maxmemory, *policy;
		int warns;
	} cases[] = { { "100mb", "allkeys-lru", 1 },
		      { "100mb", "volatile-ttl", 1 },
		      { "100mb", "noeviction", 0 },
		      { "0", "allkeys-random", 0 } };
	int rule = lease_rule(l, "evicts", CAPACITY, 1, DAY);

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct reports reports = { 0 };
		struct shmlimit_global_options options = { .struct_size = sizeof(options),
			                                   .report = reports_take,
			                                   .arg = &reports,
			                                   .deadline_ns = PATIENT_NS,
			                                   .flags = SHMLIMIT_GLOBAL_OPTION_AGENT_THREAD };
		struct shmlimit_global *g;

		freeReplyObject(server_ask(&server, "CONFIG SET maxmemory %s", cases[i].maxmemory));
		freeReplyObject(server_ask(&server, "CONFIG SET maxmemory-policy %s", cases[i].policy));
		if (shmlimit_global_open(l, server.url, &options, &g) != 0)
			bail("open");
		await(agent_status(l).serving);
		is(shmlimit_global_take(g, rule, cases[i].policy, strlen(cases[i].policy), 1, NULL), SHMLIMIT_ALLOWED,
		   "the agent asks the server");
		/* Ends the thread. */
		shmlimit_global_close(g);
		is(reports.n, cases[i].warns, "maxmemory %s, %s: it is reported if keys may be lost",
		   cases[i].maxmemory, cases[i].policy);
		if (cases[i].warns)
			ok(strstr(reports.last, cases[i].policy) != NULL, "the report names the policy: %s",
			   reports.last);
	}
	server_tell(&server, "CONFIG SET maxmemory 0");
}

int main(void)
{
	struct agent_process agent;

	if (server_missing())
		return tap_skip_all("no redis-server");
	stage_begin("global.refusals");
	server_begin(&server, NULL);
	l = stage_create(4096, 0, 0);
	server_tell(&server, "CONFIG SET lua-time-limit 5");
	agent = agent_start(l, server.url, PATIENT_NS);
	agent_await(l);
	refuses("NOREPLICAS", "CONFIG SET min-replicas-to-write 1", "CONFIG SET min-replicas-to-write 0");
	refuses("READONLY", "REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE");
	refuses("BUSY", NULL, "SCRIPT KILL");
	ok(agent_stop(&agent), "the agent ends when it is told to");
	evicts();
	return tap_done();
}
