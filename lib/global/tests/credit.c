/*
 * credit: a key that is new on a host has its rule's credit before the backend was asked. The agent debits the backend
 * afterwards; if the backend has too few tokens, no more than the credit was too much.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "agent.h"

#define DAY UINT64_C(86400000000000)
#define CAPACITY 20
#define CREDIT 3
#define TRIES 20
#define ROOM 64 /* requests that an agent can have at once */

static struct server server;
static struct shmlimit *l, *other; /* two hosts */
static struct proxy proxy;

static struct shmlimit_global *open_global(struct shmlimit *at, const char *url, uint64_t deadline_ns)
{
	return global_open(at, url,
	                   (struct shmlimit_global_options){ .lease_ns = PATIENT_NS, .deadline_ns = deadline_ns });
}

static int set_credit(struct shmlimit *at, const char *name, uint64_t capacity, uint32_t credit)
{
	return stage_rule_of(at, name,
	                     (struct shmlimit_rule){ .algorithm = SHMLIMIT_LEASE,
	                                             .capacity = capacity,
	                                             .refill = 1,
	                                             .period_ns = DAY,
	                                             .credit = credit });
}

static int take(struct shmlimit_global *g, int rule, const char *key, uint64_t cost)
{
	return shmlimit_global_take(g, rule, key, strlen(key), cost, NULL);
}

/* Take until the backend's denial is known here. Returns what was admitted. */
static uint64_t take_rest(struct shmlimit_global *g, int rule, const char *key)
{
	struct shmlimit_result r;
	uint64_t admitted = 0;

	for (;;) {
		if (shmlimit_global_take(g, rule, key, strlen(key), 1, &r) == SHMLIMIT_ALLOWED)
			admitted++;
		else if (r.retry_after_ns > DAY / 2)
			return admitted;
		else
			sched_yield();
	}
}

/* What the backend has for a key. */
static uint64_t at_backend(struct shmlimit_global *g, int rule, const char *key)
{
	struct shmlimit_global_funnel funnel = { .struct_size = sizeof(funnel) };

	if (shmlimit_global_peek(g, rule, key, strlen(key), &funnel) < 0)
		bail("peek");
	return funnel.remaining;
}

static struct shmlimit_lease_counters counters(void)
{
	struct shmlimit_lease_counters c = { .struct_size = sizeof(c) };

	if (shmlimit_lease_counters(l, &c) != 0)
		bail("lease_counters");
	return c;
}

static void hold(void)
{
	atomic_store(&proxy.at->hold, 1);
}

/* The agent has the answers to all that was posted, also to what no process waits for. */
static void let_go(void)
{
	struct shmlimit_global_status status;

	atomic_store(&proxy.at->hold, 0);
	do
		status = agent_status(l);
	while (status.waiting != 0 || status.answered + status.failed < status.misses);
}

static void without_agent(struct shmlimit_global *g, int rule)
{
	hold();
	is(take(g, rule, "alone", 1), SHMLIMIT_DENIED, "without an agent nothing is lent: on_failure decides");
	atomic_store(&proxy.at->hold, 0);
}

static void lent(struct shmlimit_global *g, struct shmlimit_global *patient, int rule)
{
	struct shmlimit_lease_counters before = counters(), after;
	uint64_t unpaid = agent_status(l).unpaid, admitted = 0;

	hold();
	for (int i = 0; i < CREDIT; i++)
		admitted += take(g, rule, "new", 1) == SHMLIMIT_ALLOWED;
	is(admitted, CREDIT, "a new key has its credit while the backend does not answer");
	is(agent_status(l).waiting, 1, "the backend is asked once for all of it");
	after = counters();
	is(after.leased - before.leased, CREDIT, "what was lent is counted as leased, once");
	is(after.spent - before.spent, CREDIT, "what was taken is counted as spent, once");
	let_go();
	admitted += take_rest(patient, rule, "new");
	is(admitted, CAPACITY, "the key has its whole limit, and no more: its credit was debited");
	is(agent_status(l).unpaid - unpaid, 0, "nothing is unpaid");

	hold();
	is(take(g, rule, "dear", CREDIT + 1), SHMLIMIT_DENIED,
	   "a request that needs more than the credit waits for the backend, until the deadline");
	is(take(g, rule, "over", CREDIT), SHMLIMIT_ALLOWED, "another key has its credit");
	is(take(g, rule, "over", 1), SHMLIMIT_DENIED, "what exceeds the credit waits, too");
	let_go();
}

static void shared(struct shmlimit_global *g, struct shmlimit_global *direct, int rule)
{
	struct shmlimit_lease_counters before = counters(), after;

	hold();
	is(take(g, rule, "apart", 1), SHMLIMIT_ALLOWED, "a key is lent its credit");
	let_go();
	after = counters();
	is(after.leased - before.leased, CREDIT, "a debit is not counted as leased, too");
	is(after.spent - before.spent, 1, "a debit is not counted as spent");
	is(at_backend(direct, rule, "apart"), CAPACITY - CREDIT, "the backend is debited the credit, and no more");
	hold();
	is(take(g, rule, "apart", CREDIT - 1), SHMLIMIT_ALLOWED, "the rest of the credit can be spent after the debit");
	let_go();
}

static void denied(struct shmlimit_global *g, struct shmlimit_global *patient, struct shmlimit_global *direct, int rule)
{
	uint64_t unpaid = agent_status(l).unpaid;

	is(take(direct, rule, "poor", CAPACITY), SHMLIMIT_ALLOWED, "another host takes all");
	hold();
	is(take(g, rule, "poor", 1), SHMLIMIT_ALLOWED, "a key is lent its credit before the backend denies it");
	let_go();
	is(take(g, rule, "poor", 1), SHMLIMIT_DENIED,
	   "what is left of the credit is taken away when the backend denies");
	is(agent_status(l).unpaid - unpaid, CREDIT, "what the backend did not give is counted");
	is(take_rest(patient, rule, "poor"), 0, "a key that was denied is lent nothing more");
	is(agent_status(l).unpaid - unpaid, CREDIT, "the credit was lent once");
}

static void in_other_ways(struct shmlimit_global *g, int rule)
{
	int answers[2];
	struct shmlimit_request two[2] = { { .rule = rule, .key = "many", .key_len = 4, .cost = 1 },
		                           { .rule = rule, .key = "more", .key_len = 4, .cost = 1 } };
	struct shmlimit_global_ticket ticket = { .struct_size = sizeof(ticket) };
	size_t failed;

	hold();
	is(shmlimit_global_take_many(g, two, 2, answers, NULL), 0, "several requests can be made at once");
	ok(answers[0] == SHMLIMIT_ALLOWED && answers[1] == SHMLIMIT_ALLOWED, "each new key of several has its credit");
	two[0].key = "all1";
	two[1].key = "all2";
	is(shmlimit_global_take_all(g, two, 2, &failed, NULL), SHMLIMIT_ALLOWED,
	   "all or none of several new keys have their credit");
	two[0].key = "loop";
	is(shmlimit_global_begin(g, &two[0], &ticket, NULL), SHMLIMIT_ALLOWED,
	   "an event loop need not wait for a new key");
	let_go();
}

/* Each new key takes a place, until none is free. */
static void no_room(struct shmlimit_global *g, int rule)
{
	int allowed = 0;
	char key[8];

	hold();
	for (int i = 0; i <= ROOM; i++) {
		snprintf(key, sizeof(key), "r%d", i);
		allowed += take(g, rule, key, 1) == SHMLIMIT_ALLOWED;
	}
	is(allowed, ROOM, "nothing is lent without room for its debit");
	let_go();
}

static void changed(struct shmlimit_global *g)
{
	int rule = set_credit(l, "changed", CAPACITY, CREDIT);

	hold();
	is(take(g, rule, "k", 1), SHMLIMIT_ALLOWED, "a key is lent its credit");
	is(set_credit(l, "changed", CAPACITY, 0), rule, "the rule is changed to one that lends nothing");
	is(take(g, rule, "l", 1), SHMLIMIT_DENIED, "the next new key is lent nothing");
	let_go();
}

/* The host's share of the limit is charged with what is lent and debited. */
static void charged(void)
{
	struct shmlimit_global_options options = {
		.lease_ns = PATIENT_NS, .deadline_ns = 1000000, .on_failure = SHMLIMIT_GLOBAL_LOCAL, .local_milli = 1000
	};
	int rule = set_credit(l, "local", CAPACITY, CREDIT), share;
	struct shmlimit_global *g = global_open(l, proxy.url, options);
	struct shmlimit_result r;

	is(take(g, rule, "k", 1), SHMLIMIT_ALLOWED, "a key of a rule that has a share here is lent its credit");
	await(agent_status(l).waiting == 0);
	share = shmlimit_rule_find(l, "~local:local");
	ok(share >= 0, "the rule has a share here");
	shmlimit_peek(l, share, "k", 1, 0, &r);
	is(r.remaining, CAPACITY - CREDIT, "a credit that was debited is charged to the share");
	shmlimit_global_close(g);
}

/* The agent now and then tries the server, and may be late to say that it fails again. */
static void failing(struct shmlimit_global *g, int rule)
{
	uint64_t unpaid = agent_status(l).unpaid;
	int allowed = 0, lent = 0;
	char key[24];

	/* BOUND: on a busy machine the agent may know before the first request is made: then another server is killed. */
	for (int i = 0; i < 50 && !lent; i++) {
		if (i > 0) {
			server_start(&server);
			await(take(g, rule, "again", 1) == SHMLIMIT_ALLOWED);
			await(agent_status(l).breaker_ns == 0 && agent_status(l).waiting == 0);
		}
		snprintf(key, sizeof(key), "first%d", i);
		server_kill(&server);
		lent = take(g, rule, key, 1) == SHMLIMIT_ALLOWED;
	}
	ok(lent, "the first key is lent its credit when the server is gone");
	await(agent_status(l).waiting == 0);
	is(agent_status(l).unpaid - unpaid, CREDIT, "what was lent before the agent knew is unpaid");
	await(agent_status(l).breaker_ns != 0);
	for (int i = 0; i < TRIES; i++) {
		snprintf(key, sizeof(key), "f%d", i);
		allowed += take(g, rule, key, 1) == SHMLIMIT_ALLOWED;
		await(agent_status(l).waiting == 0);
	}
	ok(allowed < TRIES / 2, "while the server is known to fail on_failure decides: %d of %d keys were lent credit",
	   allowed, TRIES);
	server_start(&server);
	await(take(g, rule, "again", 1) == SHMLIMIT_ALLOWED);
	await(agent_status(l).waiting == 0);
}

/* ---- Processes and agents are killed ---- */

#define STORM_CAPACITY 5
#define KEYS 40

static struct storm {
	_Atomic int key; /* all ask for this one */
	_Atomic uint64_t admitted[KEYS];
	_Atomic uint64_t calls;
	int rule[2];
} * storm;

static void work(struct crew *crew, int index)
{
	struct shmlimit *at = index % 2 ? other : l;
	struct shmlimit_global *g = open_global(at, index % 2 ? server.url : proxy.url, 1000000);
	char text[24];

	(void)crew;
	for (;;) {
		int key = atomic_load(&storm->key);

		snprintf(text, sizeof(text), "s%d", key);
		if (take(g, storm->rule[index % 2], text, 1) == SHMLIMIT_ALLOWED)
			atomic_fetch_add(&storm->admitted[key], 1);
		else
			sched_yield();
		atomic_fetch_add(&storm->calls, 1);
	}
}

/* At most the limit, and the credit of each host; each host lends once, whatever is killed. */
static void storms(struct agent_process *agents)
{
	struct rng rng = { rng_seed() };
	uint64_t over = 0, too_many = 0;
	struct crew crew;

	storm = shared_memory(sizeof(*storm));
	storm->rule[0] = set_credit(l, "storm", STORM_CAPACITY, CREDIT);
	storm->rule[1] = set_credit(other, "storm", STORM_CAPACITY, CREDIT);
	crew_start(&crew, 4, work, NULL);
	for (int key = 0; key < KEYS; key++) {
		uint64_t calls = atomic_load(&storm->calls);
		unsigned host = (unsigned)rng_below(&rng, 2);

		atomic_store(&storm->key, key);
		/* Sometimes at once. */
		while (atomic_load(&storm->calls) < calls + rng_below(&rng, 3) * 10)
			crew_await_long();
		if (rng_below(&rng, 4) != 0) {
			int victim = (int)rng_below(&rng, 4);

			if (!crew_kill(&crew, victim))
				bail("worker %d ended by itself", victim);
			crew_spawn(&crew, victim, 0);
		}
		if (rng_below(&rng, 10) == 0) {
			agent_kill(&agents[host]);
			agents[host] = agent_start(host ? other : l, host ? server.url : proxy.url, PATIENT_NS);
			agent_await(host ? other : l);
		}
		calls = atomic_load(&storm->calls);
		while (atomic_load(&storm->calls) < calls + 40)
			crew_await_long();
	}
	for (int i = 0; i < 4; i++)
		if (!crew_kill(&crew, i))
			bail("worker %d ended by itself", i);
	munmap(crew.gate, sizeof(*crew.gate));
	for (int key = 0; key < KEYS; key++) {
		uint64_t admitted = atomic_load(&storm->admitted[key]);

		over += admitted > STORM_CAPACITY;
		too_many += admitted > STORM_CAPACITY + 2 * CREDIT;
	}
	is(too_many, 0, "whatever is killed, a key gets at most the credit of each host beyond its limit");
	ok(over > 0, "credits are too many if two hosts lend a key more than its limit: %d of %d keys", (int)over,
	   KEYS);
}

int main(void)
{
	struct shmlimit_options options = { .struct_size = sizeof(options), .slots = 4096 };
	struct agent_process agents[2];
	struct shmlimit_global *g, *patient, *direct;
	char name[96];
	int rule;

	if (server_missing())
		return tap_skip_all("no redis-server");
	stage_begin("global.credit");
	server_begin(&server, NULL);
	l = stage_create(4096, 0, 0);
	snprintf(name, sizeof(name), "%s.other", stage_name);
	if (shmlimit_create(name, &options, &other) != 0)
		bail("create %s", name);
	proxy_begin(&proxy, &server);
	g = open_global(l, proxy.url, 1000000);
	patient = open_global(l, proxy.url, PATIENT_NS);
	direct = open_global(other, server.url, PATIENT_NS);
	rule = set_credit(l, "page", CAPACITY, CREDIT);
	if (set_credit(other, "page", CAPACITY, 0) != rule)
		bail("ids differ");
	without_agent(g, rule);
	agent_open_ns = 100000000;
	agents[0] = agent_start(l, proxy.url, PATIENT_NS);
	agent_await(l);
	lent(g, patient, rule);
	shared(g, direct, rule);
	denied(g, patient, direct, rule);
	in_other_ways(g, rule);
	no_room(g, rule);
	changed(g);
	charged();
	failing(g, rule);
	agents[1] = agent_start(other, server.url, PATIENT_NS);
	agent_await(other);
	/* ThreadSanitizer does not swap atomically between processes. */
	if (!SWAPS_ARE_PRIVATE)
		storms(agents);
	ok(agent_stop(&agents[0]) && agent_stop(&agents[1]), "the agents end");
	is(shmlimit_verify(name, NULL, 0), 0, "the other host's segment is sound");
	shmlimit_global_close(g);
	shmlimit_global_close(patient);
	shmlimit_global_close(direct);
	shmlimit_close(other);
	shmlimit_destroy(name);
	proxy_end(&proxy);
	return tap_done();
}
