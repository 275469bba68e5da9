/*
 * agent: one process of a host asks the server for all. Limits are as exact as without it, whatever is killed.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "agent.h"
#include "handle.h"

#define DAY UINT64_C(86400000000000)
#define WORKERS 8
#define KEYS 5
#define CAPACITY 400u

static struct server server;
static struct shmlimit *l;
static struct reports reports;

static struct shmlimit_global *open_global(const char *url, uint64_t deadline_ns, uint32_t on_failure)
{
	struct shmlimit_global *g = global_open(l, url,
	                                        (struct shmlimit_global_options){ .deadline_ns = deadline_ns,
	                                                                          .lease_ns = PATIENT_NS,
	                                                                          .on_failure = on_failure,
	                                                                          .open_ns = 1000000,
	                                                                          .report = reports_take,
	                                                                          .arg = &reports });

	reports = (struct reports){ 0 };
	return g;
}

/* The server's connections, except the one that asks. */
static int connections(void)
{
	redisReply *reply = server_ask(&server, "INFO clients");
	const char *at = strstr(reply->str, "connected_clients:");
	int n = at != NULL ? atoi(at + 18) : 0;

	freeReplyObject(reply);
	return n - 1;
}

/* Does the server have a connection that is named shmlimit-HOST-PID? */
static int is_named(pid_t pid)
{
	redisReply *reply = server_ask(&server, "CLIENT LIST");
	char host[65] = "", name[128];
	int found;

	gethostname(host, sizeof(host) - 1);
	snprintf(name, sizeof(name), " name=shmlimit-%s-%ld ", host, (long)pid);
	found = strstr(reply->str, name) != NULL;
	freeReplyObject(reply);
	return found;
}

static void answers(void)
{
	struct agent_process agent = agent_start(l, server.url, PATIENT_NS);
	struct shmlimit_global *g = open_global(server.url, PATIENT_NS, SHMLIMIT_GLOBAL_DENY);
	struct shmlimit_global *other;
	int rule = lease_rule(l, "login", 15, 1, DAY), allowed = 0, answered;
	struct shmlimit_request many[20];
	int decided[20];
	struct shmlimit_result r;

	agent_await(l);
	is(shmlimit_global_take(g, rule, "key", 3, 1, &r), SHMLIMIT_ALLOWED, "a key never seen is allowed");
	is(r.limit, 15, "the limit is the rule's");
	is(r.remaining, 14, "what the server has left is in the first answer");
	for (int i = 0; i < 30; i++)
		allowed += shmlimit_global_take(g, rule, "key", 3, 1, &r) == SHMLIMIT_ALLOWED;
	is(allowed, 14, "a funnel is given out to the token");
	ok(r.retry_after_ns > DAY - 600000000000 && r.retry_after_ns <= DAY + 15000000000,
	   "a denial says when a token is there");
	is(shmlimit_global_take(g, rule, "key", 3, 16, &r), SHMLIMIT_DENIED, "more than the capacity is denied");
	is(shmlimit_global_take(g, rule, "other", 5, 15, &r), SHMLIMIT_ALLOWED,
	   "a cost of the whole capacity is allowed");
	is(r.remaining, 0, "nothing is left then");
	for (int i = 0; i < 20; i++)
		many[i] = (struct shmlimit_request){
			.rule = rule, .key = &"abcdefghijklmnopqrst"[i], .key_len = 1, .cost = 1
		};
	is(shmlimit_global_take_many(g, many, 20, decided, NULL), 0, "many requests are decided at once");
	allowed = 0;
	for (int i = 0; i < 20; i++)
		allowed += decided[i] == SHMLIMIT_ALLOWED;
	is(allowed, 20, "each new key is allowed");
	is(connections(), 1, "the agent has one connection, and the process that asks has none");
	is(agent_status(l).pid, (uint64_t)agent.pid, "the status has the agent's process");
	ok(is_named(agent.pid), "the server's list of clients has the agent's host and process id");
	is(shmlimit_global_breaker_ns(g), 0, "the breaker is closed");
	answered = (int)agent_status(l).answered;
	other = open_global(server.url, PATIENT_NS, SHMLIMIT_GLOBAL_DENY);
	shmlimit_global_close(other);
	server_tell(&server, "SCRIPT FLUSH");
	is(shmlimit_global_take(g, rule, "flushed", 7, 1, NULL), SHMLIMIT_ALLOWED,
	   "a server that forgot the script is told it again");
	is((int)agent_status(l).answered, answered + 1, "the agent counts what it answered");
	is(reports.n, 0, "nothing is reported: %s", reports.last);
	ok(agent_stop(&agent), "the agent ends when it is told to");
	is(agent_status(l).serving, 0, "no agent serves after it ended");
	is(shmlimit_global_take(g, rule, "direct", 6, 1, &r), SHMLIMIT_ALLOWED,
	   "without an agent a process asks by itself");
	is(r.remaining, 14, "without an agent the answer is the same");
	shmlimit_global_close(g);
}

static uint64_t expired(void)
{
	struct shmlimit_lease_counters c = { .struct_size = sizeof(c) };

	shmlimit_lease_counters(l, &c);
	return c.expired;
}

/* What is leased ahead is there when the lease is spent: no request waits for the server, which answers nothing then. */
static void ahead(void)
{
	struct proxy proxy;
	struct agent_process agent;
	struct shmlimit_global *g;
	int rule = lease_rule(l, "ahead", 10000, 1, DAY), first = 0, allowed = 0;
	uint64_t began_ns = monotonic_ns(), answered, asked, before = expired();

	proxy_begin(&proxy, &server);
	agent = agent_start(l, proxy.url, PATIENT_NS);
	g = open_global(proxy.url, PATIENT_NS, SHMLIMIT_GLOBAL_DENY);
	agent_await(l);
	for (int key = 0; key < KEYS; key++)
		first += shmlimit_global_take(g, rule, &key, sizeof(key), 64, NULL) == SHMLIMIT_ALLOWED;
	is(first, KEYS, "the first request of each key is answered by the server");
	answered = agent_status(l).answered;
	for (int key = 0; key < KEYS; key++)
		for (int taken = 0; taken < 105; taken++)
			allowed += shmlimit_global_take(g, rule, &key, sizeof(key), 1, NULL) == SHMLIMIT_ALLOWED;
	is(allowed, 105 * KEYS, "of each key's lease of 128 all but 23 are spent");
	await(agent_status(l).answered >= answered + 2 * KEYS);
	is(agent_status(l).answered, answered + 2 * KEYS, "each lease that runs low is followed by one request");
	asked = server_scripts(&server);
	atomic_store(&proxy.at->hold, 1);
	allowed = 0;
	for (int key = 0; key < KEYS; key++)
		for (int n = 0; n < 200; n++, allowed++)
			if (shmlimit_global_take(g, rule, &key, sizeof(key), 1, NULL) != SHMLIMIT_ALLOWED)
				break;
	ok(expired() - before <= 20 * KEYS || monotonic_ns() - began_ns > PATIENT_NS / 2,
	   "what is left of a lease does not expire when more is leased ahead");
	/* On a machine that stands still for long, leases expire. */
	ok(allowed == 200 * KEYS || expired() - before > 20 * KEYS,
	   "200 more of each key are allowed while the server is silent");
	ok(server_scripts(&server) <= asked + KEYS,
	   "those who took them asked for nothing but each key's next lease ahead");
	atomic_store(&proxy.at->hold, 0);
	ok(agent_stop(&agent), "an agent that has leased ahead ends well");
	proxy_end(&proxy);
	shmlimit_global_close(g);
}

/* A rule of another prefix or backend is not the agent's. */
static void others(void)
{
	struct agent_process agent = agent_start(l, server.url, PATIENT_NS);
	struct shmlimit_global_options options = { .struct_size = sizeof(options),
		                                   .deadline_ns = PATIENT_NS,
		                                   .prefix = "other:" };
	struct shmlimit_global *g;
	int rule = lease_rule(l, "others", 2, 1, DAY);
	uint64_t answered;
	redisReply *reply;

	agent_await(l);
	answered = agent_status(l).answered;
	shmlimit_global_open(l, server.url, &options, &g);
	is(shmlimit_global_take(g, rule, "key", 3, 1, NULL), SHMLIMIT_ALLOWED,
	   "a process with another prefix is answered");
	reply = server_ask(&server, "EXISTS other:{others/key}");
	is(reply->integer, 1, "from the funnel of its own prefix");
	freeReplyObject(reply);
	is(agent_status(l).answered, answered, "the agent did not answer a request of another prefix");
	shmlimit_global_close(g);
	agent_stop(&agent);
}

/* ---- An agent that ends while the backend's answer is on its way ---- */

static void ends(int is_killed)
{
	const char *name = is_killed ? "killed" : "ends";
	int rule = lease_rule(l, name, 1 + (uint64_t)is_killed, 1, DAY), status = -1;
	struct agent_process agent, next;
	struct shmlimit_global *last;
	struct proxy proxy;
	redisReply *reply;
	long there = 0;
	pid_t pid;

	proxy_begin(&proxy, &server);
	agent = agent_start(l, proxy.url, PATIENT_NS);
	agent_await(l);
	pid = fork_bound();
	if (pid == 0) {
		struct shmlimit_global *g = open_global(proxy.url, PATIENT_NS, SHMLIMIT_GLOBAL_DENY);

		worker_check(shmlimit_global_take(g, rule, "warm", 4, 1, NULL) == SHMLIMIT_ALLOWED, "warm");
		atomic_store(&proxy.at->hold, 1);
		worker_check(shmlimit_global_take(g, rule, "key", 3, 1, NULL) == SHMLIMIT_ALLOWED, "denied");
		_exit(0);
	}
	do {
		reply = server_ask(&server, "EXISTS shmlimit:{%s/key}", name);
		there = (long)reply->integer;
		freeReplyObject(reply);
		sched_yield();
	} while (there == 0);
	if (is_killed) {
		agent_kill(&agent);
		next = agent_start(l, proxy.url, PATIENT_NS);
		await(agent_status(l).serving && (pid_t)agent_status(l).pid == next.pid);
	} else {
		atomic_store(&agent.stop[0], 1);
		await(atomic_load(&agent.stop[1]));
		next = agent;
	}
	atomic_store(&proxy.at->hold, 0);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	is(status, 0, "%s",
	   is_killed ? "the token of a killed agent is lost, and the request gets another one"
	             : "an agent that ends delivers the only token, which the backend has debited");
	last = open_global(server.url, PATIENT_NS, SHMLIMIT_GLOBAL_DENY);
	is(shmlimit_global_take(last, rule, "key", 3, 1, NULL), SHMLIMIT_DENIED, "%s: the limit is spent", name);
	shmlimit_global_close(last);
	ok(agent_stop(&next), "%s: the last agent ends well", name);
	proxy_end(&proxy);
}

/* ---- Workers, and an agent that is killed ---- */

struct play {
	int rule;
	_Atomic uint64_t admitted[KEYS], taken;
	_Atomic int ended;
};

static struct play *play;

static void work(struct crew *crew, int index)
{
	struct shmlimit_global *g = open_global(server.url, PATIENT_NS, SHMLIMIT_GLOBAL_DENY);
	struct rng rng = { .state = (uint64_t)index + 1 };

	(void)crew;
	while (!atomic_load(&play->ended)) {
		char key = (char)('a' + rng_below(&rng, KEYS));
		int answer = shmlimit_global_take(g, play->rule, &key, 1, 1, NULL);

		worker_check(answer >= 0, "take: %s", shmlimit_strerror(answer));
		if (answer == SHMLIMIT_ALLOWED)
			atomic_fetch_add(&play->admitted[key - 'a'], 1);
		else
			sched_yield();
		atomic_fetch_add(&play->taken, 1);
	}
	shmlimit_global_close(g);
}

static uint64_t admitted(void)
{
	uint64_t sum = 0;

	for (int i = 0; i < KEYS; i++)
		sum += atomic_load(&play->admitted[i]);
	return sum;
}

static void crowd(const char *name, int kills)
{
	struct agent_process agent = agent_start(l, server.url, PATIENT_NS), standby = agent;
	struct crew crew;
	uint64_t over = 0, before = expired();

	play = shared_memory(sizeof(*play));
	play->rule = lease_rule(l, name, CAPACITY, 1, DAY);
	agent_await(l);
	crew_start(&crew, WORKERS, work, NULL);
	for (int i = 0; i < kills; i++) {
		uint64_t pid = (uint64_t)agent.pid, taken = atomic_load(&play->taken);

		standby = agent_start(l, server.url, PATIENT_NS);
		await(atomic_load(&play->taken) > taken + 5);
		agent_kill(&agent);
		await(agent_status(l).serving && agent_status(l).pid != pid);
		agent = standby;
	}
	/* On a machine that stands still for long, leases expire. */
	if (kills == 0)
		await(admitted() + expired() - before >= KEYS * CAPACITY);
	atomic_store(&play->ended, 1);
	is(crew_wait(&crew), 0, "%s: no process waits for ever", name);
	for (int i = 0; i < KEYS; i++)
		over += atomic_load(&play->admitted[i]) > CAPACITY;
	is(over, 0, "%s: no key is admitted more than its capacity", name);
	if (kills == 0)
		is(admitted() + expired() - before, KEYS * CAPACITY, "%s: every token is given out", name);
	ok(agent_stop(&agent), "%s: the last agent ends well", name);
}

/* ---- Servers that fail ---- */

static void silent(void)
{
	struct proxy proxy;
	struct agent_process agent;
	struct shmlimit_global *g, *hasty;
	int rule = lease_rule(l, "silent", 1000, 1, DAY), made, answer;
	uint64_t asked, late, began_ns = monotonic_ns(), begun_ns;
	struct shmlimit_request request = { .rule = rule, .key = "late", .key_len = 4, .cost = 10 };
	struct shmlimit_lease_request another = {
		.struct_size = sizeof(another), .cost = 10, .lease_ns = PATIENT_NS, .claim_ns = 1
	};
	struct shmlimit_global_ticket ticket = { .struct_size = sizeof(ticket) };
	struct shmlimit_lease lease = { .struct_size = sizeof(lease) };
	struct shmlimit_result r;

	proxy_begin(&proxy, &server);
	agent = agent_start(l, proxy.url, PATIENT_NS);
	g = open_global(proxy.url, PATIENT_NS, SHMLIMIT_GLOBAL_DENY);
	hasty = open_global(proxy.url, 1000000, SHMLIMIT_GLOBAL_ALLOW);
	agent_await(l);
	is(shmlimit_global_take(g, rule, "key", 3, 1, NULL), SHMLIMIT_ALLOWED, "an answer comes through a proxy");
	made = atomic_load(&proxy.at->connections);
	/* A process that does not wait for long, while the reply is held back. */
	atomic_store(&proxy.at->hold, 1);
	late = agent_status(l).late;
	begun_ns = shmlimit_now(l);
	is(shmlimit_global_begin(hasty, &request, &ticket, &r), SHMLIMIT_GLOBAL_PENDING, "a new key is asked for");
	await(atomic_load(&proxy.at->held));
	await((answer = shmlimit_global_poll(hasty, &ticket, &r)) != SHMLIMIT_GLOBAL_PENDING);
	is(answer, SHMLIMIT_ALLOWED, "on_failure answers at the deadline");
	is(shmlimit_lease_take(at_time(l, begun_ns), rule, "late", 4, &another, &lease, NULL), SHMLIMIT_LEASE_WAIT,
	   "no other request asks for a key while a late answer is on its way");
	at_clock(l);
	atomic_store(&proxy.at->hold, 0);
	await(agent_status(l).late > late);
	asked = server_scripts(&server);
	is(shmlimit_global_take(g, rule, "late", 4, 10, NULL), SHMLIMIT_ALLOWED,
	   "the tokens of a late reply serve the next request");
	/* They last for ten seconds. */
	ok(server_scripts(&server) == asked || monotonic_ns() - began_ns > PATIENT_NS / 2,
	   "it takes no other question");
	is(atomic_load(&proxy.at->connections), made, "the connection was kept");
	/* Connections that break are made again, and questions asked again. */
	for (int i = 0; i < 3; i++) {
		char key = (char)('a' + i);

		atomic_store(&proxy.at->cut, 1);
		await(!atomic_load(&proxy.at->cut));
		is(shmlimit_global_take(g, rule, &key, 1, 1, NULL), SHMLIMIT_ALLOWED,
		   "a request after a connection broke is answered");
	}
	agent_stop(&agent);
	proxy_end(&proxy);
	shmlimit_global_close(g);
	shmlimit_global_close(hasty);
}

/* A key's first request, until it is allowed. Of the tokens of late answers no more than the limit is. */
static int take_in_the_end(struct shmlimit_global *g, int rule, const char *key)
{
	time_t end = time(NULL) + 60;
	int answer;

	while ((answer = shmlimit_global_take(g, rule, key, strlen(key), 1, NULL)) == SHMLIMIT_DENIED &&
	       time(NULL) < end)
		sched_yield();
	return answer;
}

/*
 * A server that pauses, and a connection on which one packet is late: neither opens the breaker, which counts to a
 * number that is not reached, however slow the machine is.
 */
static void paused(void)
{
	struct proxy proxy;
	struct agent_process agent;
	struct shmlimit_global *g;
	int rule = lease_rule(l, "paused", 1000, 1, DAY);

	agent_open_after = UINT32_MAX;
	proxy_begin(&proxy, &server);
	agent = agent_start(l, proxy.url, 1000000);
	agent_open_after = 0;
	g = open_global(proxy.url, 1000000, SHMLIMIT_GLOBAL_DENY);
	agent_await(l);
	is(take_in_the_end(g, rule, "before"), SHMLIMIT_ALLOWED, "an answer comes before a pause");
	atomic_store(&proxy.at->hold, 1);
	is(shmlimit_global_take(g, rule, "within", 6, 1, NULL), SHMLIMIT_DENIED, "on_failure decides within a pause");
	await(atomic_load(&proxy.at->held));
	/* Longer than silence fails a server, and than it is left alone. */
	usleep(200000);
	is(agent_server(l).failing, 0, "a server that pauses does not fail before open_after is reached");
	atomic_store(&proxy.at->hold, 0);
	is(take_in_the_end(g, rule, "after"), SHMLIMIT_ALLOWED, "answers come after the pause");
	is(agent_server(l).openings, 0, "a pause opens no breaker");
	await(agent_status(l).waiting == 0);
	atomic_store(&proxy.at->hold, 2);
	is(take_in_the_end(g, rule, "beside"), SHMLIMIT_ALLOWED,
	   "while one connection is late, questions go over another one");
	is(take_in_the_end(g, rule, "more"), SHMLIMIT_ALLOWED, "those that come later, too");
	is(agent_server(l).openings, 0, "a connection that is late opens no breaker");
	atomic_store(&proxy.at->hold, 0);
	ok(agent_stop(&agent), "the agent ends well");
	proxy_end(&proxy);
	shmlimit_global_close(g);
}

/* Replies take longer than the deadline. */
static void far_away(void)
{
	struct proxy proxy;
	struct agent_process agent;
	struct shmlimit_global *g;
	int rule = lease_rule(l, "far", 1000, 1000, 1000000000), ahead = 0;
	time_t end = time(NULL) + 60;
	uint64_t made, answered;

	proxy_begin(&proxy, &server);
	atomic_store(&proxy.at->delay_ms, 10);
	agent_lease_ns = 1000000;
	agent = agent_start(l, proxy.url, 1000000);
	agent_lease_ns = PATIENT_NS;
	g = open_global(proxy.url, 1000000, SHMLIMIT_GLOBAL_DENY);
	agent_await(l);
	is(take_in_the_end(g, rule, "far"), SHMLIMIT_ALLOWED, "the tokens of an answer after the deadline serve a key");
	ok(agent_status(l).round_trip_ns >= 10000000, "the round trip is measured");
	/* Questions that no request waits for, between requests that are all allowed. */
	while (!ahead && time(NULL) < end) {
		uint64_t misses = agent_status(l).misses, trips = agent_trips(l);

		while (shmlimit_global_take(g, rule, "far", 3, 1, NULL) == SHMLIMIT_ALLOWED && !ahead &&
		       time(NULL) < end) {
			usleep(1000);
			ahead = agent_trips(l) > trips + 2 && agent_status(l).misses == misses;
		}
	}
	ok(ahead, "a key in use is leased ahead before its tokens are spent, or end");
	/* A key that was in use a moment ago still is, for the agent. */
	do {
		shmlimit_global_take(g, rule, "far", 3, 1, NULL);
		await(agent_status(l).waiting == 0);
		made = agent_trips(l);
		answered = agent_status(l).answered;
		usleep(300000);
	} while (agent_trips(l) < made + 2 && time(NULL) < end);
	ok(agent_trips(l) >= made + 2, "a key that was just in use is leased ahead by the agent itself");
	is(agent_status(l).answered, answered, "what the agent asks for by itself is no request that it answered");
	ok(agent_stop(&agent), "the agent of a backend that is far away ends well");
	proxy_end(&proxy);
	shmlimit_global_close(g);
}

/* A server that stays silent: the breaker opens, and an answer, however late, closes it. */
static void silent_for_long(void)
{
	struct proxy proxy;
	struct agent_process agent;
	struct shmlimit_global *g;
	int rule = lease_rule(l, "long", 1000, 1, DAY);
	uint64_t before = agent_open_ns;

	agent_open_ns = UINT64_C(3600000000000);
	proxy_begin(&proxy, &server);
	agent = agent_start(l, proxy.url, 1000000);
	agent_open_ns = before;
	g = open_global(proxy.url, 1000000, SHMLIMIT_GLOBAL_DENY);
	agent_await(l);
	is(take_in_the_end(g, rule, "before"), SHMLIMIT_ALLOWED, "an answer comes before a silence");
	atomic_store(&proxy.at->hold, 1);
	is(shmlimit_global_take(g, rule, "within", 6, 1, NULL), SHMLIMIT_DENIED, "on_failure decides in a silence");
	await(agent_server(l).failing);
	is(agent_server(l).openings, 1, "a server that stays silent opens the breaker, once");
	atomic_store(&proxy.at->hold, 0);
	is(take_in_the_end(g, rule, "after"), SHMLIMIT_ALLOWED,
	   "a late answer closes it, long before the server would be asked again");
	ok(agent_stop(&agent), "the agent ends well after a silence");
	proxy_end(&proxy);
	shmlimit_global_close(g);
}

/* on_failure decides while the server is gone, long before the deadline; when it is back it decides again. */
static void gone(void)
{
	struct agent_process agent = agent_start(l, server.url, PATIENT_NS);
	struct shmlimit_global *g = open_global(server.url, PATIENT_NS, SHMLIMIT_GLOBAL_ALLOW);
	int rule = lease_rule(l, "gone", 5, 1, DAY), denied = 0, allowed = 0;
	struct shmlimit_global_server reported;
	char name[128];
	uint64_t failed;

	agent_await(l);
	server_kill(&server);
	await(shmlimit_global_breaker_ns(g) != 0);
	await((reported = agent_server(l)).failing && reported.openings > 0);
	snprintf(name, sizeof(name), "%s?db=0", server.socket);
	is_str(reported.name, name, "a server that fails is reported by its name");
	failed = agent_status(l).failed;
	for (int i = 0; i < 50; i++)
		allowed += shmlimit_global_take(g, rule, "key", 3, 1, NULL) == SHMLIMIT_ALLOWED;
	is(allowed, 50, "without a server on_failure answers");
	ok(agent_status(l).failed > failed, "the agent counts what it could not ask");
	server_start(&server);
	await(agent_status(l).connections == 1 && shmlimit_global_breaker_ns(g) == 0);
	is(agent_server(l).failing, 0, "a server that is back does not fail");
	for (int i = 0; i < 20; i++)
		denied += shmlimit_global_take(g, rule, "new", 3, 1, NULL) == SHMLIMIT_DENIED;
	is(denied, 15, "when the server is back, the limit holds again");
	agent_stop(&agent);
	shmlimit_global_close(g);
}

/* An agent that is stopped is no agent after a while, and is one again if no other is. */
static void stopped(void)
{
	struct agent_process agent = agent_start(l, server.url, PATIENT_NS);
	struct shmlimit_global *g = open_global(server.url, PATIENT_NS, SHMLIMIT_GLOBAL_DENY);
	int rule = lease_rule(l, "stopped", 5, 1, DAY);

	agent_await(l);
	kill(agent.pid, SIGSTOP);
	await(!agent_status(l).serving);
	is(shmlimit_global_take(g, rule, "key", 3, 1, NULL), SHMLIMIT_ALLOWED,
	   "beside a stopped agent a process asks by itself");
	kill(agent.pid, SIGCONT);
	await(agent_status(l).serving);
	is(shmlimit_global_take(g, rule, "new", 3, 1, NULL), SHMLIMIT_ALLOWED, "an agent that goes on answers again");
	ok(agent_stop(&agent), "it ends well");
	shmlimit_global_close(g);
}

/* The server has an error for one key: on_failure decides each of its requests, once. */
static void failed_key(void)
{
	struct agent_process agent = agent_start(l, server.url, PATIENT_NS);
	struct shmlimit_global *g = open_global(server.url, PATIENT_NS, SHMLIMIT_GLOBAL_ALLOW);
	int rule = lease_rule(l, "failed", 5, 1, DAY), allowed = 0, answers[KEYS];
	struct shmlimit_request many[KEYS];
	uint64_t failures;

	agent_await(l);
	for (int key = 0; key < KEYS; key++) {
		char text[64];

		snprintf(text, sizeof(text), "SET shmlimit:{failed/%c} text", "abcde"[key]);
		server_tell(&server, text);
		many[key] = (struct shmlimit_request){ .rule = rule, .key = &"abcde"[key], .key_len = 1, .cost = 1 };
	}
	failures = shmlimit_global_failures(l, rule);
	for (int i = 0; i < 20; i++)
		allowed += shmlimit_global_take(g, rule, "a", 1, 1, NULL) == SHMLIMIT_ALLOWED;
	is(allowed, 20, "on_failure decides a key for which the server has an error");
	is(shmlimit_global_failures(l, rule) - failures, 20, "each of its requests is counted once as a failure");
	failures = shmlimit_global_failures(l, rule);
	shmlimit_global_take_many(g, many, KEYS, answers, NULL);
	allowed = 0;
	for (int key = 0; key < KEYS; key++)
		allowed += answers[key] == SHMLIMIT_ALLOWED;
	is(allowed, KEYS, "on_failure decides several such keys at once");
	is(shmlimit_global_failures(l, rule) - failures, KEYS, "each request for several keys is counted once");
	ok(agent_stop(&agent), "an agent ends well after errors of keys");
	shmlimit_global_close(g);
}

static void run_on(pid_t pid, const cpu_set_t *cpus)
{
	if (sched_setaffinity(pid, sizeof(*cpus), cpus) != 0)
		bail("sched_setaffinity: %s", strerror(errno));
}

/* The server answers the greeting at once: it gets the processor as soon as the agent has sent it. */
static void first_trips(void)
{
	int rule = lease_rule(l, "first", 1, 1, DAY), measured = 0, longer = 0;
	cpu_set_t before, one;

	sched_getaffinity(0, sizeof(before), &before);
	CPU_ZERO(&one);
	CPU_SET((size_t)sched_getcpu(), &one);
	run_on(0, &one);
	run_on(server.pid, &one);
	for (int i = 0; i < 30; i++) {
		uint64_t began_ns = monotonic_ns(), trip_ns;
		struct agent_process agent = agent_start(l, server.url, PATIENT_NS);
		struct shmlimit_global *g = open_global(server.url, PATIENT_NS, SHMLIMIT_GLOBAL_DENY);

		agent_await(l);
		shmlimit_global_take(g, rule, &i, sizeof(i), 1, NULL);
		trip_ns = agent_status(l).round_trip_ns;
		measured += trip_ns != 0;
		longer += trip_ns > monotonic_ns() - began_ns;
		agent_stop(&agent);
		shmlimit_global_close(g);
	}
	run_on(0, &before);
	run_on(server.pid, &before);
	is(measured, 30, "an agent's first answers have a round trip");
	is(longer, 0, "no round trip is longer than the agent has run");
}

/* The buckets of round trips, each trip in the first that is long enough. */
static void round_trips(void)
{
	struct agent_process agent = agent_start(l, server.url, PATIENT_NS);
	struct shmlimit_global *g = open_global(server.url, PATIENT_NS, SHMLIMIT_GLOBAL_DENY);
	int rule = lease_rule(l, "trips", 1, 1, DAY), wrong = 0, seen = 0, key = 0;
	time_t end = time(NULL) + 60;
	uint64_t began_ns = monotonic_ns();

	agent_await(l);
	/* Until one took 100 us at most, for a minute. */
	for (; (seen < 20 || agent_status(l).round_trips[0] == 0) && time(NULL) < end; key++) {
		struct shmlimit_global_status before = agent_status(l), after;
		uint64_t trips = 0, took_ns;
		int bucket = 0;

		shmlimit_global_take(g, rule, &key, sizeof(key), 1, NULL);
		after = agent_status(l);
		for (int i = 0; i < SHMLIMIT_GLOBAL_ROUND_TRIPS; i++) {
			trips += after.round_trips[i] - before.round_trips[i];
			if (after.round_trips[i] != before.round_trips[i])
				bucket = i;
		}
		if (trips != 1)
			continue;
		seen++;
		took_ns = after.round_trips_ns - before.round_trips_ns;
		wrong += took_ns == 0 || after.round_trip_ns == 0;
		wrong += after.round_trip_ns > monotonic_ns() - began_ns;
		wrong += bucket < SHMLIMIT_GLOBAL_ROUND_TRIPS - 1 && took_ns > UINT64_C(100000) << bucket;
		wrong += bucket > 0 && took_ns <= UINT64_C(100000) << (bucket - 1);
	}
	ok(seen >= 20 && wrong == 0, "each round trip is counted in the bucket of its time");
	ok(agent_status(l).round_trips[0] > 0, "one of %d round trips took 100 us at most", key);
	agent_stop(&agent);
	shmlimit_global_close(g);
}

/* Whatever a process posts, the agent goes on, and gives away nothing. */
static void nonsense(void)
{
	struct agent_process agent = agent_start(l, server.url, PATIENT_NS);
	struct shmlimit_global *g = open_global(server.url, PATIENT_NS, SHMLIMIT_GLOBAL_DENY);
	int rule = lease_rule(l, "nonsense", 5, 1, DAY), answered = 0, allowed = 0;
	struct shmlimit_rule params = { .struct_size = sizeof(params) };
	struct rng rng = { .state = rng_seed() };
	size_t size = 0;
	void *area = shmlimit_area(l, &size);

	agent_await(l);
	shmlimit_rule_get(l, rule, &params);
	for (int i = 0; i < 300; i++) {
		static const uint64_t numbers[] = {
			0, 1, 2, 5, 6, UINT32_MAX, UINT64_C(1) << 53, INT64_MAX, UINT64_MAX
		};
		struct request_text text = { .backend = i % 7 ? g->backend : 1, .key_len = 1 };
		struct request_answer answer;
		struct receipt ticket;

		text.rule = i % 3 ? (uint32_t)rule : (uint32_t)numbers[rng_below(&rng, 9)];
		text.set_us = i % 5 ? params.set_unix_ns / 1000 : numbers[rng_below(&rng, 9)];
		text.cost = numbers[rng_below(&rng, 9)];
		text.need = numbers[rng_below(&rng, 9)];
		text.want = numbers[rng_below(&rng, 9)];
		text.key[0] = 'n';
		await(mailbox_post(mailbox_in(area, size), &text, &ticket) == 0);
		if (text.cost == 0) {
			answered++;
			continue;
		}
		answered += mailbox_wait(mailbox_in(area, size), &ticket, monotonic_ns() + 60000000000, &answer) !=
		            REQUEST_FREE;
	}
	is(answered, 300, "requests that make no sense are answered, too");
	for (int i = 0; i < 20; i++)
		allowed += shmlimit_global_take(g, rule, "fresh", 5, 1, NULL) == SHMLIMIT_ALLOWED;
	is(allowed, 5, "requests that make no sense do not exceed the limit");
	ok(agent_stop(&agent), "the agent ends well");
	shmlimit_global_close(g);
}

int main(void)
{
	if (server_missing())
		return tap_skip_all("no redis-server");
	stage_begin("global.agent");
	server_begin(&server, NULL);
	l = stage_create(1024, 0, 0);
	answers();
	ahead();
	others();
	ends(0);
	ends(1);
	crowd("crowd", 0);
	crowd("kills", 3);
	silent();
	paused();
	far_away();
	silent_for_long();
	gone();
	stopped();
	failed_key();
	first_trips();
	round_trips();
	nonsense();
	return tap_done();
}
