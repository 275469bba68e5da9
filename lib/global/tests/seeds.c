/*
 * seeds: a URL with several hosts. The first one that is a primary and answers is used, by each process and by an
 * agent, and another one when that is no longer so.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "agent.h"

#define DAY UINT64_C(86400000000000)

static struct server server[2];
static int port[2];
static struct shmlimit *l;
static struct reports reports;

static struct shmlimit_global *handle(const char *url)
{
	return patient_open(l, url, NULL, &reports);
}

/* Make `primary` the primary and the other one its replica, as a failover does. */
static void fail_over(int primary)
{
	char command[64];

	server_tell(&server[primary], "REPLICAOF NO ONE");
	snprintf(command, sizeof(command), "REPLICAOF 127.0.0.1 %d", port[primary]);
	server_tell(&server[!primary], command);
}

static int has_funnel(int i, const char *key)
{
	redisReply *reply = server_ask(&server[i], "EXISTS shmlimit:{login/%s}", key);
	int there = reply->integer == 1;

	freeReplyObject(reply);
	return there;
}

/* Take a token of a new key: it is the server's to say. Until it is allowed, since a failover makes some calls fail. */
static void take_new(struct shmlimit_global *g, int rule, const char *key)
{
	await(shmlimit_global_take(g, rule, key, strlen(key), 1, NULL) == SHMLIMIT_ALLOWED);
}

/* Who asks: each process by itself, or an agent. */
static void follow(const char *who, const char *url, int rule)
{
	struct shmlimit_global *g = handle(url);
	char key[32];

	fail_over(1);
	snprintf(key, sizeof(key), "%s one", who);
	take_new(g, rule, key);
	ok(has_funnel(1, key), "%s passes over a host that is gone, and one that is a replica", who);
	fail_over(0);
	snprintf(key, sizeof(key), "%s two", who);
	take_new(g, rule, key);
	ok(has_funnel(0, key), "%s finds the new primary after a failover", who);
	server_kill(&server[0]);
	server_tell(&server[1], "REPLICAOF NO ONE");
	snprintf(key, sizeof(key), "%s three", who);
	take_new(g, rule, key);
	ok(has_funnel(1, key), "%s goes on with another host when one is killed", who);
	server_start(&server[0]);
	shmlimit_global_close(g);
}

static void replicas_only(const char *url)
{
	struct shmlimit_global *g;

	server_tell(&server[0], "REPLICAOF 127.0.0.1 1");
	server_tell(&server[1], "REPLICAOF 127.0.0.1 1");
	g = handle(url);
	is(shmlimit_global_ping(g, NULL), -EBUSY, "a URL of replicas has no server to ask");
	ok(strstr(reports.last, "is a replica") != NULL, "it is reported that it is a replica: %s", reports.last);
	shmlimit_global_close(g);
}

static void nobody(void)
{
	struct shmlimit_global *g = handle("redis://127.0.0.1:1,localhost:1");

	is(shmlimit_global_ping(g, NULL), -ECONNREFUSED, "a URL of hosts that refuse is refused");
	ok(strncmp(reports.last, "backend 127.0.0.1:1,localhost:1/0: no connection", 48) == 0,
	   "the report has all hosts of the URL: %s", reports.last);
	shmlimit_global_close(g);
}

int main(void)
{
	struct agent_process agent;
	struct rng rng;
	char url[96];
	int rule;

	if (server_missing())
		return tap_skip_all("no redis-server");
	stage_begin("global.seeds");
	rng.state = rng_seed();
	for (int i = 0; i < 2; i++) {
		char text[16];
		const char *words[] = { "--port", text, "--bind", "127.0.0.1", NULL };

		port[i] = server_port(&rng);
		snprintf(text, sizeof(text), "%d", port[i]);
		server_begin(&server[i], words);
	}
	l = stage_create(256, 0, 0);
	rule = lease_rule(l, "login", 3, 1, DAY);
	/* Port 1 of loopback: no process listens there. */
	snprintf(url, sizeof(url), "redis://127.0.0.1:1,127.0.0.1:%d,localhost:%d", port[0], port[1]);
	follow("a process", url, rule);
	agent = agent_start(l, url, PATIENT_NS);
	await(agent_status(l).serving);
	follow("an agent", url, rule);
	ok(agent_stop(&agent), "the agent ends well");
	replicas_only(url);
	nobody();
	return tap_done();
}
