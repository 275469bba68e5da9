/*
 * count: counts that several hosts share. A host is a segment with an agent of its own.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "agent.h"

#define MINUTE UINT64_C(60000000000)
#define MS UINT64_C(1000000)
#define BOUND 5
#define HOSTS 4
#define PROCESSES 4
#define WORKERS (HOSTS * PROCESSES)

static struct server server;
static struct reports reports;

static int counter_rule(struct shmlimit *l, const char *name)
{
	return stage_rule_of(l, name, (struct shmlimit_rule){ .algorithm = SHMLIMIT_COUNTER, .period_ns = MINUTE });
}

static struct shmlimit_global *open_global(struct shmlimit *l, uint32_t on_failure, uint64_t deadline_ns)
{
	return global_open(l, server.url,
	                   (struct shmlimit_global_options){ .on_failure = on_failure,
	                                                     .local_milli = 600,
	                                                     .deadline_ns = deadline_ns,
	                                                     .open_ns = MS,
	                                                     .report = reports_take,
	                                                     .arg = &reports,
	                                                     .flags = SHMLIMIT_GLOBAL_OPTION_AGENT_THREAD });
}

static struct shmlimit_count counted;

/* What is counted is in `counted`. */
static int count(struct shmlimit_global *g, int rule, const char *key, int64_t n, uint64_t ttl_ns, uint32_t flags)
{
	struct shmlimit_count_request asked = {
		.struct_size = sizeof(asked), .flags = flags, .n = n, .bound = BOUND, .ttl_ns = ttl_ns
	};

	counted = (struct shmlimit_count){ .struct_size = sizeof(counted) };
	return shmlimit_global_count(g, rule, key, strlen(key), &asked, &counted);
}

/* The count on the server. */
static long count_there(const char *name)
{
	redisReply *reply = server_ask(&server, "HGET shmlimit:{%s} count", name);
	long n = reply->type == REDIS_REPLY_STRING ? atol(reply->str) : 0;

	freeReplyObject(reply);
	return n;
}

static void two_hosts(struct shmlimit *first)
{
	struct shmlimit *l[2] = { first, NULL };
	struct shmlimit_options options = { .struct_size = sizeof(options), .slots = 64, .rules = 4 };
	struct shmlimit_global_options no_wait = { .struct_size = sizeof(no_wait),
		                                   .flags = SHMLIMIT_GLOBAL_OPTION_NO_WAIT };
	struct shmlimit_global *g[2], *hasty;
	char name[96];
	int rule[2], allowed = 0;
	uint64_t before;

	snprintf(name, sizeof(name), "%s.second", stage_name);
	if (shmlimit_create(name, &options, &l[1]) != 0)
		bail("create");
	for (int i = 0; i < 2; i++) {
		rule[i] = counter_rule(l[i], "login");
		g[i] = open_global(l[i], SHMLIMIT_GLOBAL_DENY, PATIENT_NS);
	}
	before = server_scripts(&server);
	for (int i = 0; i < BOUND; i++)
		allowed +=
			count(g[i % 2], rule[i % 2], "user:42", 1, 0, 0) == SHMLIMIT_ALLOWED && counted.count == i + 1;
	is(allowed, BOUND, "two hosts count one after the other, up to the bound");
	is(server_scripts(&server) - before, BOUND, "each addition is one round trip");
	ok(counted.applied == 1 && counted.ttl_ns > MINUTE / 2 && counted.ttl_ns <= MINUTE,
	   "the answer has what was added, and the time until the count ends");
	before = server_scripts(&server);
	is(count(g[0], rule[0], "user:42", 1, 0, 0), SHMLIMIT_DENIED, "the host that counted last is denied");
	is(server_scripts(&server) - before, 0, "the host that counted last knows it without a round trip");
	is(count(g[1], rule[1], "user:42", 1, 0, 0), SHMLIMIT_DENIED, "the other host is denied");
	before = server_scripts(&server);
	for (int i = 0; i < 100; i++)
		allowed += count(g[i % 2], rule[i % 2], "user:42", 1, 0, 0) == SHMLIMIT_ALLOWED;
	is(allowed, BOUND, "no host allows more");
	is(server_scripts(&server) - before, 0, "a client over its limit costs no round trip");
	ok(counted.count == BOUND && counted.applied == 0, "a denial has the count, and adds nothing");

	is(count(g[0], rule[0], "batch", 3, 0, 0), SHMLIMIT_ALLOWED, "several are added at once");
	is(count(g[1], rule[1], "batch", 3, 0, 0), SHMLIMIT_DENIED, "what does not fit is not added");
	is(counted.count, 3, "what does not fit leaves the count");
	is(count(g[1], rule[1], "batch", 3, 0, SHMLIMIT_COUNT_SATURATE), SHMLIMIT_ALLOWED,
	   "what fits is added, if that is wanted");
	ok(counted.count == BOUND && counted.applied == 2, "the answer says how much was added");
	is(count(g[0], rule[0], "batch", 6, 0, 0), SHMLIMIT_DENIED, "more than the bound never fits");
	is(count(g[0], rule[0], "batch", 0, 0, 0), SHMLIMIT_ALLOWED, "what this host knows can be read");
	is(counted.count, 3, "what this host knows is the last answer that it had");

	is(count(g[0], rule[0], "short", BOUND, 40 * MS, 0), SHMLIMIT_ALLOWED, "a count can end soon");
	await(count(g[1], rule[1], "short", 1, MINUTE, 0) == SHMLIMIT_ALLOWED);
	is(counted.count, 1, "when it has ended the next one begins with 1");
	is(count(g[0], rule[0], "short", 1, MINUTE, 0), SHMLIMIT_ALLOWED, "the host that counted first counts on");
	is(counted.count, 2, "the new count is the other host's");

	is(count(g[0], rule[0], "long", 1, MINUTE / 2, 0), SHMLIMIT_ALLOWED, "a count begins with a time to live");
	is(count(g[1], rule[1], "long", 1, MINUTE, 0), SHMLIMIT_ALLOWED, "a later addition has another one");
	ok(counted.ttl_ns <= MINUTE / 2, "the count lives from its first addition");
	is(shmlimit_global_reset(g[1], rule[1], "long", 4), 1, "another host resets it");
	is(count(g[1], rule[1], "long", 1, MINUTE, 0), SHMLIMIT_ALLOWED, "the other host begins the next one");
	is(count(g[0], rule[0], "long", 1, 0, 0), SHMLIMIT_ALLOWED, "the first host adds to that");
	count(g[0], rule[0], "long", 0, 0, 0);
	ok(counted.count == 2 && counted.ttl_ns > MINUTE / 2, "what the first host knows is the next count's");

	is(shmlimit_global_reset(g[0], rule[0], "user:42", 7), 1, "a count can be reset");
	is(count(g[0], rule[0], "user:42", 1, 0, 0), SHMLIMIT_ALLOWED, "after a reset it begins again");
	server_tell(&server, "SET shmlimit:{login/odd} 1");
	is(count(g[0], rule[0], "odd", 1, 0, 0), SHMLIMIT_DENIED, "a key of another type is decided by on_failure");
	ok(strstr(reports.last, "another type") != NULL, "a key of another type is reported: %s", reports.last);

	for (uint32_t mode = SHMLIMIT_DRY_RUN; mode <= SHMLIMIT_BLOCK; mode++) {
		struct shmlimit_rule here = { .struct_size = sizeof(here),
			                      .algorithm = SHMLIMIT_COUNTER,
			                      .mode = mode };
		int of_mode = shmlimit_rule_set(l[0], "mode", &here), wrong = 0;

		before = server_scripts(&server);
		for (int i = 0; i <= 2 * BOUND; i++)
			wrong += count(g[0], of_mode, "k", 1, 0, 0) !=
			         (mode == SHMLIMIT_BLOCK ? SHMLIMIT_DENIED : SHMLIMIT_ALLOWED);
		is(wrong, 0, "mode %u answers as on one host", mode);
		is(server_scripts(&server) - before, 0, "mode %u asks no backend", mode);
	}
	is(count(g[0], rule[0], "full", BOUND, 0, 0), SHMLIMIT_ALLOWED, "a count is full");
	shmlimit_enable(l[0], 0);
	before = server_scripts(&server);
	is(count(g[0], rule[0], "full", 1, 0, 0) + count(g[0], rule[0], "new", 1, 0, 0), SHMLIMIT_ALLOWED,
	   "a segment that is disabled allows, whatever the count is");
	is(count(g[0], rule[0], "new", BOUND + 1, 0, 0), SHMLIMIT_ALLOWED, "it allows more than the bound at once");
	is(server_scripts(&server) - before, 0, "it asks no backend");
	shmlimit_enable(l[0], 1);
	is(count(g[0], rule[0], "full", 1, 0, 0), SHMLIMIT_DENIED, "enabled again, it denies what it denied before");
	is(count(g[0], rule[0], "user:42", -1, 0, 0), -EOPNOTSUPP, "nothing can be taken away");
	is(count(g[0], rule[0], "user:42", 1, 0, SHMLIMIT_COUNT_RESTART), -EOPNOTSUPP, "the time cannot begin again");
	is(count(g[0], rule[0], "user:42", 1, 0, 1), -EINVAL, "an unknown flag is refused");
	is(count(g[0], rule[0], "user:42", 1, 2 * MINUTE, 0), -ERANGE, "a time longer than the rule's is refused");
	is(count(g[0], lease_rule(l[0], "lease", 1, 1, MINUTE), "k", 1, 0, 0), -EOPNOTSUPP,
	   "a rule of another algorithm is refused");
	if (shmlimit_global_open(l[0], server.url, &no_wait, &hasty) != 0)
		bail("open");
	is(count(hasty, rule[0], "user:42", 1, 0, 0), -EOPNOTSUPP, "a handle that must not wait is refused");
	shmlimit_global_close(hasty);
	for (int i = 0; i < 2; i++)
		shmlimit_global_close(g[i]);
	shmlimit_destroy(name);
	shmlimit_close(l[1]);
}

/* Additions that are allowed of one key, of twice the bound. */
static int drain(struct shmlimit_global *g, int rule, const char *key)
{
	int allowed = 0;

	for (int i = 0; i < 2 * BOUND; i++)
		allowed += count(g, rule, key, 1, 0, 0) == SHMLIMIT_ALLOWED;
	return allowed;
}

static void outage(struct shmlimit *l)
{
	static const struct {
		uint32_t on_failure;
		int allowed; /* of twice the bound */
		const char *name;
	} policies[] = {
		{ SHMLIMIT_GLOBAL_DENY, 0, "deny" },
		{ SHMLIMIT_GLOBAL_ALLOW, 2 * BOUND, "allow" },
		{ SHMLIMIT_GLOBAL_LOCAL, BOUND * 600 / 1000, "local" },
		{ SHMLIMIT_GLOBAL_ERROR, 0, "error" },
	};
	int rule = counter_rule(l, "outage");

	for (size_t i = 0; i < sizeof(policies) / sizeof(policies[0]); i++) {
		struct shmlimit_global *g = open_global(l, policies[i].on_failure, 100 * MS);
		const char *name = policies[i].name;
		uint64_t before = shmlimit_global_failures(l, rule);
		char denied[32], back[32];

		snprintf(back, sizeof(back), "back.%s", name);
		snprintf(denied, sizeof(denied), "denied.%s", name);
		await(count(g, rule, denied, 1, 0, SHMLIMIT_COUNT_SATURATE) == SHMLIMIT_DENIED &&
		      counted.count == BOUND);
		server_tell(&server, "CONFIG SET min-replicas-to-write 1");
		is(drain(g, rule, name), policies[i].allowed, "%s: while the backend refuses, on_failure decides",
		   name);
		is(count(g, rule, denied, 1, 0, 0), SHMLIMIT_DENIED, "%s: a denial that is known stays", name);
		ok(shmlimit_global_failures(l, rule) > before, "%s: decisions of on_failure are counted", name);
		server_tell(&server, "CONFIG SET min-replicas-to-write 0");
		await(shmlimit_global_breaker_ns(g) == 0);
		await(count(g, rule, back, BOUND, 0, 0) == SHMLIMIT_DENIED && counted.count == BOUND);
		is(drain(g, rule, name), BOUND, "%s: when it answers again the count is exact", name);
		shmlimit_global_close(g);
	}
}

/* ---- What is said of an outage, in a process that is not the agent ---- */

struct told {
	struct reports reports;
	_Atomic int begun, ended, stop;
	_Atomic uint64_t said, denied; /* requests, of all outages */
	_Atomic int of_none;           /* outages that denied nothing */
};

static void told_take(void *arg, const char *text)
{
	static const char before_number[] = "; requests denied: ";
	const char *number = strstr(text, before_number);
	struct told *told = arg;

	if (strstr(text, ": it does not answer: requests that need it are denied") != NULL)
		atomic_fetch_add(&told->begun, 1);
	else if (strstr(text, ": it answers again, after ") != NULL && number != NULL) {
		uint64_t n = strtoull(number + strlen(before_number), NULL, 10);

		atomic_fetch_add(&told->said, n);
		atomic_fetch_add(&told->of_none, n == 0);
		atomic_fetch_add(&told->ended, 1);
	}
}

static void told_in_the_log(struct shmlimit *l)
{
	struct shmlimit_global_options options = {
		.struct_size = sizeof(options), .deadline_ns = 100 * MS, .open_ns = MS, .report = told_take
	};
	struct told *told = options.arg = shared_memory(sizeof(*told));
	struct agent_process agent = agent_start(l, server.url, 100 * MS);
	int rule = counter_rule(l, "told"), lease = lease_rule(l, "told.lease", 1000, 1000, MINUTE);
	pid_t pids[2];

	agent_await(l);
	/* Two processes, of which one counts and the other one leases. */
	for (int i = 0; i < 2; i++) {
		struct shmlimit_global *g;

		pids[i] = fork_bound();
		if (pids[i] != 0)
			continue;
		worker_check(shmlimit_global_open(l, server.url, &options, &g) == 0, "open");
		for (int n = 0; !atomic_load(&told->stop); n++) {
			char key[32];
			int answer;

			snprintf(key, sizeof(key), "%d", n);
			answer = i == 0 ? count(g, rule, key, 1, 0, 0)
			                : shmlimit_global_take(g, lease, key, strlen(key), 1, NULL);
			worker_check(answer >= 0, "decide");
			atomic_fetch_add(&told->denied, answer == SHMLIMIT_DENIED);
			sched_yield();
		}
		_exit(0);
	}
	for (int n = 1; n <= 2; n++) {
		server_tell(&server, "CONFIG SET min-replicas-to-write 1");
		await(atomic_load(&told->begun) == n);
		server_tell(&server, "CONFIG SET min-replicas-to-write 0");
		await(atomic_load(&told->ended) == n);
		is(atomic_load(&told->begun), n, "one of two processes reports that requests are denied, outage %d", n);
	}
	atomic_store(&told->stop, 1);
	for (int i = 0; i < 2; i++) {
		int status = -1;

		while (waitpid(pids[i], &status, 0) < 0 && errno == EINTR)
			;
		is(status, 0, "process %d ends well", i);
	}
	is(atomic_load(&told->ended), 2, "one of them reports that the backend answers again");
	ok(atomic_load(&told->of_none) == 0 && atomic_load(&told->said) <= atomic_load(&told->denied),
	   "it says how many requests were denied: %" PRIu64 " of %" PRIu64 ", and some in each outage",
	   atomic_load(&told->said), atomic_load(&told->denied));
	ok(agent_stop(&agent), "the agent ends");
}

/* ---- The additions that the script remembers ---- */

/* Returns the count after it, if 1 was added now or before; else 0. */
static long long add_as(int number, int keep)
{
	redisReply *reply = server_ask(&server, "EVAL %s 1 shmlimit:{numbers} 1 1000 60000 0 %d 0123456789abcdef%x",
	                               script_text, keep, (unsigned)number);
	long long n = 0;

	if (reply->type == REDIS_REPLY_ARRAY && reply->elements == 5 && reply->element[0]->integer == 1)
		n = reply->element[2]->integer;
	freeReplyObject(reply);
	return n;
}

static void numbers(void)
{
	enum { ALL = 300, KEPT = 8 };
	int counted_all = 1, counted_again = 0;

	for (int i = 1; i <= ALL; i++)
		counted_all &= add_as(i, KEPT) == i;
	ok(counted_all, "additions with new numbers count");
	for (int i = ALL - KEPT + 1; i <= ALL; i++)
		counted_again += add_as(i, KEPT) != ALL;
	is(counted_again, 0, "the script answers the last ones again, which count once");
	is(add_as(1, KEPT), ALL + 1, "one that was forgotten counts");
	is(add_as(ALL + 1, 1), ALL + 2, "an addition beside which no other is on its way counts");
	is(add_as(ALL + 1, 1), ALL + 2, "the script remembers it");
	is(add_as(ALL, 1), ALL + 3, "the script remembers no other");
}

/* ---- An agent that ends between the backend's answer and its delivery ---- */

static struct proxy proxy;

enum end { KILLED, ALONE, ENDED, STOPPED };

#define ADDED 100 /* the exit status of an adder, and what was added */

/* A process that makes one addition, which must be allowed. With the key "alone" it may become the agent. */
static pid_t adder(struct shmlimit *l, int rule, const char *key, uint32_t flags)
{
	struct shmlimit_global_options options = { .struct_size = sizeof(options), .deadline_ns = PATIENT_NS };
	struct shmlimit_global *g;
	pid_t pid = fork_bound();
	int n = flags & SHMLIMIT_COUNT_SATURATE ? BOUND : 1;

	if (pid != 0)
		return pid;
	options.flags = strcmp(key, "alone") == 0 ? SHMLIMIT_GLOBAL_OPTION_AGENT_THREAD : 0;
	worker_check(shmlimit_global_open(l, proxy.url, &options, &g) == 0, "open");
	worker_check(count(g, rule, key, n, 0, flags) == SHMLIMIT_ALLOWED, "%s: denied", key);
	_exit(ADDED + (int)counted.applied);
}

static int exit_status(pid_t pid)
{
	int status = -1;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Two additions are on their way when the agent ends: one of 1, and one of what fits. */
static void counted_once(struct shmlimit *l, enum end end, const char *key)
{
	struct agent_process agents[2] = { agent_start(l, proxy.url, PATIENT_NS) };
	int rule = counter_rule(l, "once");
	char name[64], warm[32];
	pid_t pids[2];

	snprintf(name, sizeof(name), "once/%s", key);
	await(agent_status(l).serving && (pid_t)agent_status(l).pid == agents[0].pid);
	snprintf(warm, sizeof(warm), "%s.connected", key);
	is(exit_status(adder(l, rule, warm, 0)), ADDED + 1, "%s: an addition is allowed before", key);
	atomic_store(&proxy.at->hold, 1);
	pids[0] = adder(l, rule, key, 0);
	await(count_there(name) == 1);
	pids[1] = adder(l, rule, key, SHMLIMIT_COUNT_SATURATE);
	await(count_there(name) == BOUND);
	if (end == KILLED || end == ALONE)
		agent_kill(&agents[0]);
	else if (end == ENDED)
		ok(agent_stop(&agents[0]), "%s: the agent ends", key);
	else
		kill(agents[0].pid, SIGSTOP);
	if (end != ALONE) {
		agents[1] = agent_start(l, proxy.url, PATIENT_NS);
		await(agent_status(l).serving && (pid_t)agent_status(l).pid == agents[1].pid);
	}
	/* Both agents have the answers now, and either may come first. */
	if (end == STOPPED)
		kill(agents[0].pid, SIGCONT);
	atomic_store(&proxy.at->hold, 0);
	is(exit_status(pids[0]), ADDED + 1, "%s: the addition is allowed", key);
	is(exit_status(pids[1]), ADDED + BOUND - 1, "%s: the other one is allowed what fitted", key);
	is(count_there(name), BOUND, "%s: each counts once", key);
	if (end != ALONE)
		ok(agent_stop(&agents[1]), "%s: the next agent ends", key);
	if (end == STOPPED)
		ok(agent_stop(&agents[0]), "%s: the agent that was stopped ends", key);
}

/* ---- Hosts, whose processes are killed ---- */

struct round {
	_Atomic int allowed, calls;
	char key[16];
};

/* `stays`: until it is killed. */
static void work(struct round *round, struct shmlimit *l, int rule, int stays)
{
	struct shmlimit_global *g = open_global(l, SHMLIMIT_GLOBAL_DENY, 200 * MS);
	int answer;

	do {
		answer = count(g, rule, round->key, 1, 0, 0);
		atomic_fetch_add(&round->allowed, answer == SHMLIMIT_ALLOWED);
		atomic_fetch_add(&round->calls, 1);
		worker_check(answer >= 0, "count: %s", shmlimit_strerror(answer));
	} while (stays || counted.count < BOUND);
	shmlimit_global_close(g);
	_exit(0);
}

static void many_hosts(int rounds, int kills)
{
	struct shmlimit_options options = { .struct_size = sizeof(options), .slots = 64, .rules = 4 };
	struct round *round = shared_memory(sizeof(*round));
	int exact = 0, most = 0, full = 0, died = 0, wrong = 0;

	for (int i = 0; i < rounds; i++) {
		struct shmlimit *l[HOSTS];
		pid_t pids[WORKERS];
		char name[96];
		int rule[HOSTS];

		atomic_store(&round->allowed, 0);
		snprintf(round->key, sizeof(round->key), "%d.%d", kills, i);
		for (int h = 0; h < HOSTS; h++) {
			snprintf(name, sizeof(name), "%s.%d", stage_name, h);
			if (shmlimit_create(name, &options, &l[h]) != 0)
				bail("create %s", name);
			rule[h] = counter_rule(l[h], "crowd");
		}
		for (int w = 0; w < WORKERS; w++) {
			pids[w] = fork_bound();
			if (pids[w] == 0)
				work(round, l[w % HOSTS], rule[w % HOSTS], kills && w % HOSTS == i % HOSTS);
		}
		/* One host as a whole, and of each other one the process that is its agent now. */
		await(!kills || atomic_load(&round->calls) > 0);
		for (int w = 0; kills && w < WORKERS; w++)
			if (w % HOSTS == i % HOSTS || (uint64_t)pids[w] == agent_status(l[w % HOSTS]).pid)
				kill(pids[w], SIGKILL);
		for (int w = 0; w < WORKERS; w++) {
			int status;

			while (waitpid(pids[w], &status, 0) < 0 && errno == EINTR)
				;
			died += WIFSIGNALED(status);
			wrong += WIFEXITED(status) && WEXITSTATUS(status) != 0;
		}
		snprintf(name, sizeof(name), "crowd/%s", round->key);
		full += count_there(name) == BOUND;
		exact += atomic_load(&round->allowed) == BOUND;
		most = atomic_load(&round->allowed) > most ? atomic_load(&round->allowed) : most;
		for (int h = 0; h < HOSTS; h++) {
			snprintf(name, sizeof(name), "%s.%d", stage_name, h);
			shmlimit_destroy(name);
			shmlimit_close(l[h]);
		}
	}
	is(wrong, 0, "%s: every process ended well, or was killed", kills ? "killed" : "alive");
	is(full, rounds, "%s: the backend has counted up to the bound", kills ? "killed" : "alive");
	if (kills) {
		ok(most <= BOUND, "killed: 4 hosts of 4 processes never allow more than the bound: %d", most);
		ok(died >= rounds * PROCESSES, "killed: %d processes were", died);
	} else {
		is(exact, rounds, "alive: 4 hosts of 4 processes allow the bound, exactly");
	}
}

int main(void)
{
	struct shmlimit *l;

	if (server_missing())
		return tap_skip_all("no redis-server");
	stage_begin("global.count");
	server_begin(&server, NULL);
	l = stage_create(1024, 0, 0);
	two_hosts(l);
	outage(l);
	told_in_the_log(l);
	numbers();
	if (!SWAPS_ARE_PRIVATE) {
		proxy_begin(&proxy, &server);
		counted_once(l, KILLED, "killed");
		counted_once(l, ALONE, "alone");
		counted_once(l, ENDED, "ended");
		counted_once(l, STOPPED, "stopped");
		proxy_end(&proxy);
		many_hosts(3, 0);
		many_hosts(3, 1);
	}
	return tap_done();
}
