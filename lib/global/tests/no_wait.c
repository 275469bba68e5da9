/*
 * no_wait: a handle that does not wait: on_failure decides at once what is not leased, and the agent leases for the next requests.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "agent.h"

#define DAY UINT64_C(86400000000000)
#define CAPACITY 20
#define ROOM 64 /* requests that an agent can have at once */

static struct server server;
static struct shmlimit *l;
static struct proxy proxy;
static struct reports reports;

static struct shmlimit_global *open_hasty(uint32_t on_failure)
{
	return global_open(l, proxy.url,
	                   (struct shmlimit_global_options){ .on_failure = on_failure,
	                                                     .local_milli = 1000,
	                                                     .lease_ns = PATIENT_NS,
	                                                     .deadline_ns = PATIENT_NS,
	                                                     .flags = SHMLIMIT_GLOBAL_OPTION_NO_WAIT,
	                                                     .report = reports_take,
	                                                     .arg = &reports });
}

static int take(struct shmlimit_global *g, int rule, const char *key, struct shmlimit_result *r)
{
	return shmlimit_global_take(g, rule, key, strlen(key), 1, r);
}

static uint64_t failures(int rule)
{
	return shmlimit_global_failures(l, rule);
}

static void without_agent(void)
{
	struct shmlimit_global_options wrong = { .struct_size = sizeof(wrong), .flags = 1 };
	struct shmlimit_global *g = NULL, *closed = open_hasty(SHMLIMIT_GLOBAL_DENY),
			       *opened = open_hasty(SHMLIMIT_GLOBAL_ALLOW);
	int rule = lease_rule(l, "alone", CAPACITY, 1, DAY);

	is(shmlimit_global_open(l, proxy.url, &wrong, &g), -EINVAL, "an unknown flag is refused");
	is(take(closed, rule, "k", NULL), SHMLIMIT_DENIED, "without an agent, on_failure denies what is not leased");
	ok(strstr(reports.last, "no agent serves") != NULL, "it is reported that there is no agent");
	is(take(closed, rule, "k", NULL), SHMLIMIT_DENIED, "it denies the next request of that key too");
	is(reports.n, 1, "that there is no agent is reported once");
	is(take(opened, rule, "k", NULL), SHMLIMIT_ALLOWED, "without an agent, on_failure allows what is not leased");
	is(atomic_load(&proxy.at->connections), 0, "the server is not even connected to");
	is(failures(rule), 3, "each of these answers is counted as one of on_failure");
	shmlimit_global_close(closed);
	shmlimit_global_close(opened);
}

static void at_once(void)
{
	struct shmlimit_global *g = open_hasty(SHMLIMIT_GLOBAL_DENY);
	int rule = lease_rule(l, "login", CAPACITY, 1, DAY), allowed = 0, answer;
	struct shmlimit_result r;
	uint64_t failed;

	atomic_store(&proxy.at->hold, 1);
	is(take(g, rule, "user:42", &r), SHMLIMIT_DENIED, "on_failure decides while the server is being asked");
	await(atomic_load(&proxy.at->held));
	is(take(g, rule, "user:42", &r), SHMLIMIT_DENIED,
	   "on_failure decides the next one, which the server is not asked for");
	is(agent_status(l).waiting, 1, "the request is still with the agent");
	atomic_store(&proxy.at->hold, 0);
	await(agent_status(l).waiting == 0);
	/* What is leased at a time grows: between two leases on_failure denies. */
	failed = failures(rule);
	do {
		sched_yield();
		answer = take(g, rule, "user:42", &r);
		allowed += answer == SHMLIMIT_ALLOWED;
	} while (answer == SHMLIMIT_ALLOWED || r.retry_after_ns < DAY / 2);
	is(allowed, CAPACITY,
	   "the next requests get the whole limit, and no more: none was taken for those that were denied");
	ok(failures(rule) > failed, "a lease's end is decided by on_failure, too");
	failed = failures(rule);
	is(take(g, rule, "user:42", &r), SHMLIMIT_DENIED, "the server's denial is known here");
	is(failures(rule) - failed, 0, "a denial that is known is none of on_failure's");
	shmlimit_global_close(g);
}

/* The agent frees the places of requests that no process waits for. */
static void places(void)
{
	struct shmlimit_global *g = open_hasty(SHMLIMIT_GLOBAL_ALLOW);
	int rule = lease_rule(l, "many", 1, 1, DAY);
	uint64_t full = agent_status(l).full;
	char key[8];

	for (int i = 0; i < 4 * ROOM; i++) {
		snprintf(key, sizeof(key), "%d", i);
		take(g, rule, key, NULL);
		await(agent_status(l).waiting == 0);
	}
	is(agent_status(l).full - full, 0, "one after the other, any number of requests find a place");
	shmlimit_global_close(g);
}

/* on_failure allows until the server's denial is known here. */
static void denied(void)
{
	struct shmlimit_global *g = open_hasty(SHMLIMIT_GLOBAL_ALLOW);
	int rule = lease_rule(l, "open", 1, 1, DAY);

	is(take(g, rule, "k", NULL), SHMLIMIT_ALLOWED, "on_failure allows while the server is being asked");
	await(take(g, rule, "k", NULL) == SHMLIMIT_DENIED);
	is(take(g, rule, "k", NULL), SHMLIMIT_DENIED,
	   "a denial of the server's is learned, though no process waits for it");
	shmlimit_global_close(g);
}

static void in_other_ways(void)
{
	struct shmlimit_global *g = open_hasty(SHMLIMIT_GLOBAL_ALLOW);
	struct shmlimit_global_ticket t = { .struct_size = sizeof(t) };
	int rule = lease_rule(l, "others", 100, 1, DAY), answers[2];
	struct shmlimit_rule plain = { .struct_size = sizeof(plain), .capacity = 2, .refill = 1, .period_ns = DAY };
	struct shmlimit_request two[2] = { { .rule = rule, .key = "a", .key_len = 1, .cost = 1 },
		                           { .key = "a", .key_len = 1, .cost = 1 } };
	struct shmlimit_result r[2];
	size_t denied;

	two[1].rule = shmlimit_rule_set(l, "here", &plain);
	ok(two[1].rule >= 0, "a limit of this host is set");
	atomic_store(&proxy.at->hold, 1);
	is(shmlimit_global_begin(g, &two[0], &t, NULL), SHMLIMIT_ALLOWED, "a request that is begun is decided at once");
	shmlimit_global_cancel(g, &t);
	two[0].key = "b";
	is(shmlimit_global_take_many(g, two, 2, answers, NULL), 0, "several can be asked");
	ok(answers[0] == SHMLIMIT_ALLOWED && answers[1] == SHMLIMIT_ALLOWED, "each is decided at once");
	two[0].key = "c";
	is(shmlimit_global_take_all(g, two, 2, &denied, r), SHMLIMIT_ALLOWED, "all or none are decided at once");
	is(shmlimit_global_take_all(g, two, 2, &denied, r), SHMLIMIT_DENIED, "the other limit denies");
	is(denied, 1, "the limit that denied is named");
	atomic_store(&proxy.at->hold, 0);
	shmlimit_global_close(g);
}

/* The tokens of a share of this host are charged with what the agent leases. */
static void shared(void)
{
	struct shmlimit_global *g = open_hasty(SHMLIMIT_GLOBAL_LOCAL);
	int rule = lease_rule(l, "shared", 3, 1, DAY), allowed = 0, answer;
	struct shmlimit_result r;

	do {
		sched_yield();
		answer = take(g, rule, "k", &r);
		allowed += answer == SHMLIMIT_ALLOWED;
	} while (answer == SHMLIMIT_ALLOWED || r.retry_after_ns < DAY / 2);
	ok(allowed >= 1 && allowed <= 6, "a host's share decides at once: at most as much as the limit again (%d)",
	   allowed);
	shmlimit_global_close(g);
}

int main(void)
{
	struct agent_process agent;

	if (server_missing())
		return tap_skip_all("no redis-server");
	stage_begin("global.no_wait");
	server_begin(&server, NULL);
	l = stage_create(1024, 0, 0);
	proxy_begin(&proxy, &server);
	without_agent();
	agent = agent_start(l, proxy.url, PATIENT_NS);
	agent_await(l);
	at_once();
	places();
	denied();
	in_other_ways();
	shared();
	ok(agent_stop(&agent), "the agent ends");
	proxy_end(&proxy);
	return tap_done();
}
