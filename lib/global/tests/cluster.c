/*
 * cluster: a backend of three nodes. Keys are asked for where they are, learned from
 * what nodes say, also while they are being moved.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "cluster.h"
#include "agent.h"

#define NODES 3
#define KEYS 300
#define ASKED 3

static struct server node[NODES];
static int port[NODES];
static struct shmlimit *l;
static struct reports reports;

static int well(const struct server *s)
{
	redisReply *reply = server_ask(s, "CLUSTER INFO");
	int ok = strstr(reply->str, "cluster_state:ok") != NULL && strstr(reply->str, "cluster_known_nodes:3") != NULL;

	freeReplyObject(reply);
	return ok;
}

static void raise_cluster(struct rng *rng)
{
	time_t end;

	for (int i = 0; i < NODES; i++) {
		char text[16];
		const char *words[] = {
			"--port", text, "--bind", "127.0.0.1", "--cluster-enabled", "yes", "--cluster-node-timeout",
			"60000",  NULL
		};

		port[i] = server_port(rng);
		snprintf(text, sizeof(text), "%d", port[i]);
		server_begin(&node[i], words);
	}
	for (int i = 0; i < NODES; i++) {
		char command[96];

		snprintf(command, sizeof(command), "CLUSTER ADDSLOTSRANGE %d %d", i * CLUSTER_SLOTS / NODES,
		         (i + 1) * CLUSTER_SLOTS / NODES - 1);
		server_tell(&node[i], command);
		snprintf(command, sizeof(command), "CLUSTER MEET 127.0.0.1 %d", port[i]);
		if (i > 0)
			server_tell(&node[0], command);
	}
	end = time(NULL) + WATCHDOG_SECONDS / 2;
	for (int i = 0; i < NODES; i++)
		while (!well(&node[i])) {
			if (time(NULL) > end)
				bail("the cluster does not come about");
			sched_yield();
		}
}

static struct shmlimit_global *handle(const char *url)
{
	return global_open(
		l, url,
		(struct shmlimit_global_options){ .deadline_ns = PATIENT_NS, .report = reports_take, .arg = &reports });
}

static void slots(void)
{
	is(cluster_slot("123456789", 9), 12739, "a key's slot is the specification's");
	is(cluster_slot("a{123456789}b", 13), 12739, "that of what stands in braces");
	for (int i = 0; i < 5; i++) {
		static const char *const keys[] = { "foo", "{user1000}.following", "foo{}{bar}", "foo{{bar}}zap",
			                            "x}y{z" };
		redisReply *reply = server_ask(&node[0], "CLUSTER KEYSLOT %s", keys[i]);

		is(cluster_slot(keys[i], strlen(keys[i])), reply->integer, "%s is in the slot where the server has it",
		   keys[i]);
		freeReplyObject(reply);
	}
}

static long long sized(int i)
{
	redisReply *reply = server_ask(&node[i], "DBSIZE");
	long long n = reply->integer;

	freeReplyObject(reply);
	return n;
}

static void spread(struct shmlimit_global *g, int rule)
{
	struct shmlimit_request q[32];
	char key[32][16];
	int answers[32], allowed = 0, wrong = 0;

	for (int i = 0; i < KEYS; i++) {
		int len = snprintf(key[0], sizeof(key[0]), "key %d", i);

		for (int j = 0; j < 5; j++)
			allowed += shmlimit_global_take(g, rule, key[0], (size_t)len, 1, NULL) == SHMLIMIT_ALLOWED;
	}
	is(allowed, 3 * KEYS, "each key has its capacity, wherever it is %s", reports.last);
	is(sized(0) + sized(1) + sized(2), KEYS, "each key has one funnel");
	ok(sized(0) > 0 && sized(1) > 0 && sized(2) > 0, "on all nodes");
	for (int i = 0; i < 32; i++) {
		int len = snprintf(key[i], sizeof(key[i]), "many %d", i);

		q[i] = (struct shmlimit_request){ .rule = rule, .key = key[i], .key_len = (size_t)len, .cost = 1 };
	}
	shmlimit_global_take_many(g, q, 32, answers, NULL);
	for (int i = 0; i < 32; i++) {
		struct shmlimit_global_funnel funnel = { .struct_size = sizeof(funnel) };

		wrong += answers[i] != SHMLIMIT_ALLOWED;
		shmlimit_global_peek(g, rule, key[i], q[i].key_len, &funnel);
		wrong += funnel.remaining != 2;
	}
	is(wrong, 0, "many at once are taken once each");
}

/* The first time that a process is sent to another node, with others that are not. */
static void first_many(int rule)
{
	struct shmlimit_global *g;
	struct shmlimit_request q[16];
	char key[16][16], url[64];
	int answers[16], wrong = 0;

	snprintf(url, sizeof(url), "redis://127.0.0.1:%d", port[0]);
	g = handle(url);
	for (int i = 0; i < 16; i++) {
		int len = snprintf(key[i], sizeof(key[i]), "first %d", i);

		q[i] = (struct shmlimit_request){ .rule = rule, .key = key[i], .key_len = (size_t)len, .cost = 1 };
	}
	shmlimit_global_take_many(g, q, 16, answers, NULL);
	for (int i = 0; i < 16; i++) {
		struct shmlimit_global_funnel funnel = { .struct_size = sizeof(funnel) };

		wrong += answers[i] != SHMLIMIT_ALLOWED;
		shmlimit_global_peek(g, rule, key[i], q[i].key_len, &funnel);
		wrong += funnel.remaining != 2;
	}
	is(wrong, 0, "requests of a new handle are each taken once");
	shmlimit_global_close(g);
}

/* Move a slot to another node, and look in the middle of it. */
static void moving(struct shmlimit_global *g, int rule, const char *key)
{
	char text[64];
	int len = snprintf(text, sizeof(text), "shmlimit:{cluster/%s}", key);
	unsigned slot = cluster_slot(text, (size_t)len);
	int from = (int)(slot * NODES / CLUSTER_SLOTS), to = (from + 1) % NODES;
	struct shmlimit_global_funnel funnel = { .struct_size = sizeof(funnel) };
	struct shmlimit_result here = { 0 };
	redisReply *from_id = server_ask(&node[from], "CLUSTER MYID"), *to_id = server_ask(&node[to], "CLUSTER MYID");

	shmlimit_reset(l, rule, key, 5);
	shmlimit_global_reset(g, rule, key, 5);
	is(shmlimit_global_take(g, rule, key, 5, 1, NULL), SHMLIMIT_ALLOWED,
	   "a single key can be reset, wherever it is");
	freeReplyObject(server_ask(&node[to], "CLUSTER SETSLOT %u IMPORTING %s", slot, from_id->str));
	freeReplyObject(server_ask(&node[from], "CLUSTER SETSLOT %u MIGRATING %s", slot, to_id->str));
	freeReplyObject(server_ask(&node[from], "MIGRATE 127.0.0.1 %d %s 0 5000", port[to], text));
	is(shmlimit_global_peek(g, rule, key, 5, &funnel), 0, "a key that is being moved is found");
	is(funnel.remaining, 2, "with what it had");
	is(shmlimit_global_take(g, rule, key, 5, 1, NULL), SHMLIMIT_ALLOWED, "a key that was moved can be taken from");
	for (int i = 0; i < NODES; i++)
		freeReplyObject(server_ask(&node[i], "CLUSTER SETSLOT %u NODE %s", slot, to_id->str));
	is(shmlimit_global_peek(g, rule, key, 5, &funnel), 0, "a key whose slot was given to another node is found");
	shmlimit_peek(l, rule, key, 5, 1, &here);
	is(funnel.remaining + here.remaining, 1, "with what it has, but for what is leased");
	freeReplyObject(from_id);
	freeReplyObject(to_id);
}

/* Returns how many keys cannot be read that are not the first node's. None of them was moved. */
static int unknown(struct shmlimit_global *g, int rule)
{
	struct shmlimit_global_funnel funnel = { .struct_size = sizeof(funnel) };
	int n = 0;

	for (int i = 10; i < 30; i++) {
		char key[16], text[64];
		int len = snprintf(key, sizeof(key), "key %d", i);
		size_t text_len = (size_t)snprintf(text, sizeof(text), "shmlimit:{cluster/%s}", key);

		if (cluster_slot(text, text_len) * NODES / CLUSTER_SLOTS != 0)
			n += shmlimit_global_peek(g, rule, key, (size_t)len, &funnel) != 0;
	}
	return n;
}

/* The first node is gone. */
static void without_first(int rule)
{
	struct shmlimit_global *g;
	char url[64];

	server_kill(&node[0]);
	snprintf(url, sizeof(url), "redis://127.0.0.1:%d", port[0]);
	g = handle(url);
	ok(unknown(g, rule) > 0, "without the only node of the URL the others are not found");
	shmlimit_global_close(g);
	snprintf(url, sizeof(url), "redis://127.0.0.1:%d,127.0.0.1:%d", port[0], port[1]);
	g = handle(url);
	is(unknown(g, rule), 0, "another node of the URL knows the cluster: %s", reports.last);
	shmlimit_global_close(g);
}

/* The first node is still gone, and no agent is there: each key of the others is decided by its node. */
static void alone_without_first(void)
{
	int rule = lease_rule(l, "alone", 3, 1, 86400000000000), wrong = 0, lost = 0;
	struct shmlimit_lease_counters before = { .struct_size = sizeof(before) }, after = before;
	struct shmlimit_global *g;
	char url[64];

	snprintf(url, sizeof(url), "redis://127.0.0.1:%d", port[1]);
	g = handle(url);
	shmlimit_lease_counters(l, &before);
	reports.n = 0;
	for (int i = 0; i < KEYS; i++) {
		char key[16], text[64];
		int len = snprintf(key, sizeof(key), "key %d", i),
		    size = snprintf(text, sizeof(text), "shmlimit:{alone/%s}", key);
		int is_lost = cluster_slot(text, (size_t)size) < CLUSTER_SLOTS / NODES;
		int answer = shmlimit_global_take(g, rule, key, (size_t)len, 1, NULL);

		lost += is_lost;
		wrong += answer != (is_lost ? SHMLIMIT_DENIED : SHMLIMIT_ALLOWED);
	}
	shmlimit_lease_counters(l, &after);
	ok(lost > KEYS / NODES / 2, "without an agent a third of the keys is on the node that is gone");
	is(wrong, 0, "a process that lacks a node decides the keys of the others");
	is(after.breaker_openings, before.breaker_openings, "a node that is gone does not open the cluster's breaker");
	is(reports.n, 1, "the node is reported once: %s", reports.last);
	shmlimit_global_close(g);
}

/* The first node is still gone. The processes' deadline is so long that the test would be ended if they waited for it. */
static void agent_without_first(void)
{
	int rule = lease_rule(l, "shard", 3, 1, 86400000000000), wrong = 0, lost = 0;
	struct agent_process agent;
	struct shmlimit_global *g;
	char url[64];

	snprintf(url, sizeof(url), "redis://127.0.0.1:%d", port[1]);
	agent = agent_start(l, url, PATIENT_NS);
	g = handle(url);
	agent_await(l);
	for (int i = 0; i < KEYS; i++) {
		char key[16], text[64];
		int len = snprintf(key, sizeof(key), "key %d", i),
		    size = snprintf(text, sizeof(text), "shmlimit:{shard/%s}", key);
		int is_lost = cluster_slot(text, (size_t)size) < CLUSTER_SLOTS / NODES;
		int answer = shmlimit_global_take(g, rule, key, (size_t)len, 1, NULL);

		lost += is_lost;
		wrong += answer != (is_lost ? SHMLIMIT_DENIED : SHMLIMIT_ALLOWED);
	}
	ok(lost > KEYS / NODES / 2, "a third of the keys is on the node that is gone");
	is(wrong, 0,
	   "an agent that lacks a node decides the keys of the others, and on_failure at once those of the node");
	ok(agent_stop(&agent), "an agent that lacks a node ends well");
	shmlimit_global_close(g);
}

/*
 * The first node is still gone, while keys of all are asked for. What a handle of the process that asks has reported is
 * in the number, too.
 */
static void reports_of_one_node(void)
{
	int rule = lease_rule(l, "reports", 3, 1, 86400000000000);
	struct shmlimit_lease_counters c = { .struct_size = sizeof(c) };
	uint64_t before;
	struct shmlimit_global *g;
	char url[64];

	snprintf(url, sizeof(url), "redis://127.0.0.1:%d", port[1]);
	shmlimit_lease_counters(l, &c);
	before = c.breaker_openings;
	reports.n = 0;
	g = global_open(l, url,
	                (struct shmlimit_global_options){ .deadline_ns = PATIENT_NS,
	                                                  .open_ns = 1000000,
	                                                  .flags = SHMLIMIT_GLOBAL_OPTION_AGENT_THREAD,
	                                                  .report = reports_take,
	                                                  .arg = &reports });
	agent_await(l);
	for (int key = 0; c.breaker_openings < before + 20; key++) {
		shmlimit_global_take(g, rule, &key, sizeof(key), 1, NULL);
		shmlimit_lease_counters(l, &c);
	}
	shmlimit_global_close(g);
	ok(reports.n >= 1 && reports.n <= 3,
	   "a node that is gone is reported once, not with each of its %d failures: %d, %s",
	   (int)(c.breaker_openings - before), reports.n, reports.last);
}

/* What the agent says of each node. The first one is called by the URL. */
static void servers(void)
{
	struct shmlimit_global_server server = { .struct_size = sizeof(server) };
	char text[64];
	int named = 0, failing = 0;

	for (unsigned place = 0; place < NODES; place++) {
		await(shmlimit_global_server(l, place, &server) == 0);
		for (int i = 0; i < NODES; i++) {
			snprintf(text, sizeof(text), "%s:%d/0", place == 0 ? "localhost" : "127.0.0.1", port[i]);
			named += strcmp(server.name, text) == 0;
		}
		failing += (int)server.failing;
	}
	is(named, NODES, "each server has the name of a node");
	is(failing, 0, "no server of the agent fails");
	is(shmlimit_global_server(l, NODES, &server), -ESRCH, "the agent has no more servers than nodes");
	is(shmlimit_global_server(l, 4096, &server), -ESRCH, "a place out of range has no server");
	is(shmlimit_global_server(NULL, 0, &server), -EINVAL, "no limiter has servers");
}

/* Of an array of questions as many are asked as the caller says, and the rest is left as it was. */
static void as_many(const char *url_text)
{
	const char *ping[] = { "PING" };
	const size_t ping_len = 4;
	struct backend_error failure;
	struct script_params params;
	struct backend backend;
	redisReply *reply = NULL;
	char why[URL_WHY_MAX];
	struct url url;

	if (url_parse(url_text, &url, why) != 0 || script_params(&params, 3, 1, 86400000000000, 1000000) != 0)
		bail("%s", why);
	backend_begin(&backend, &url);
	for (size_t n = 0; n <= ASKED; n++) {
		struct backend_question asked[ASKED + 1], before[ASKED + 1];
		int answered = 0;

		memset(asked, 0, sizeof(asked));
		for (size_t i = 0; i <= ASKED; i++)
			asked[i] = (struct backend_question){ .params = &params,
				                              .key = "{asked}",
				                              .key_len = 7,
				                              .failure.kind = i % 2 ? ERROR_WAITED : ERROR_SCRIPT };
		memcpy(before, asked, sizeof(asked));
		backend_lease(&backend, asked, n, monotonic_now_ns() + PATIENT_NS);
		for (size_t i = 0; i < n; i++)
			answered += asked[i].failure.kind != ERROR_WAITED && asked[i].failure.kind != ERROR_SCRIPT;
		is(answered, (int)n, "of %d questions %zu are answered if the caller says so", ASKED + 1, n);
		ok(backend_command(&backend, &(struct backend_words){ 1, ping, &ping_len },
		                   monotonic_now_ns() + PATIENT_NS, &reply, &failure) == 0 &&
		           reply->type == REDIS_REPLY_STATUS,
		   "a call for %zu questions asks the server no more", n);
		freeReplyObject(reply);
		ok(memcmp(asked + n, before + n, sizeof(asked) - n * sizeof(asked[0])) == 0,
		   "the questions after the first %zu stay as they were", n);
	}
	backend_end(&backend);
}

int main(void)
{
	struct rng rng;
	struct shmlimit_global_info info = { .struct_size = sizeof(info) };
	struct agent_process agent;
	struct shmlimit_global *g;
	char url[64];
	int rule;

	if (server_missing())
		return tap_skip_all("no redis-server");
	stage_begin("global.cluster");
	rng.state = rng_seed();
	raise_cluster(&rng);
	slots();
	l = stage_create(4096, 0, 0);
	rule = lease_rule(l, "cluster", 3, 1, 86400000000000);
	snprintf(url, sizeof(url), "redis://localhost:%d", port[0]);
	as_many(url);
	g = handle(url);
	is(shmlimit_global_ping(g, &info), 0, "a node answers %s", reports.last);
	is_str(info.mode, "cluster", "a node says that it is one of a cluster");
	spread(g, rule);
	first_many(rule);
	moving(g, rule, "key 7");
	is(reports.n, 0, "nothing was wrong %s", reports.last);
	for (int i = 0; i < NODES; i++)
		server_tell(&node[i], "FLUSHALL");
	shmlimit_reset(l, rule, NULL, 0);
	agent = agent_start(l, url, PATIENT_NS);
	agent_await(l);
	spread(g, rule);
	is(agent_status(l).connections, NODES, "an agent has one connection to each node");
	servers();
	moving(g, rule, "key 8");
	is(reports.n, 0, "nothing was wrong with an agent %s", reports.last);
	is(agent_status(l).failed, 0, "the agent asked for all");
	ok(agent_stop(&agent), "it ended well");
	shmlimit_global_close(g);
	without_first(rule);
	alone_without_first();
	agent_without_first();
	reports_of_one_node();
	return tap_done();
}
