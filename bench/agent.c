/*
 * agent: what is a limit over many hosts worth while an agent asks for all processes of a host, over a good network, over
 * a bad one, and when a part fails?
 *
 * Real servers, agents and workers, each a process; hosts are segments. See README.md for the figures.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <hiredis/hiredis.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kit/bench.h"
#include "kit/crew.h"
#include "kit/folder.h"
#include "kit/histogram.h"
#include "kit/proxy.h"
#include "kit/shards.h"
#include "peers/peer.h"
#include "cluster.h"
#include "shmlimit_global.h"

#define RATE 100000u
#define CAPACITY 100000u /* a second of it */
#define SECOND_NS UINT64_C(1000000000)
#define MS_NS UINT64_C(1000000)
#define US_NS UINT64_C(1000)
#define WORKERS_MAX 2
#define HOSTS 500
#define SEATS 64    /* workers of each of them */
#define OFFICES 4   /* processes that act for all of these workers */
#define HOST_RATE 4 /* tokens a second for each of them, of each server's key */
#define BATCH SHMLIMIT_GLOBAL_REQUESTS_MAX

static const char hot[] = "client:192.168.100.1";
static const char *key = hot; /* what workers ask for that are started now */
#define KEY_LEN strlen(key)

/* What a worker has done, in shared memory. */
struct counted {
	uint64_t decisions, admitted;
	struct histogram takes, others; /* of the LEASE rule, and of the rule of this host */
	int began;                      /* count from here on: set by the parent */
};

/* What a worker does. */
struct worker {
	struct shmlimit *limiter;
	int leased, plain; /* rules: of all hosts, and of this one */
	double demand;     /* requests a second */
	struct shmlimit_global *global;
	uint64_t next_ns, owed, keys;
	unsigned seat;
	struct counted *counted;
};

struct host {
	struct shmlimit *limiter;
	int leased, plain;
	pid_t agent;
};

static char direct_url[160], proxy_url[160];
static const char *url;
static struct counted *counted; /* WORKERS_MAX of them */
static redisContext *admin;

/* ---- Processes ---- */

static void nap_ns(uint64_t ns)
{
	struct timespec pause = { (time_t)(ns / SECOND_NS), (long)(ns % SECOND_NS) };

	nanosleep(&pause, NULL);
}

/* A tenth of a second of what takes that many in a real run: to see that it runs. */
static double length_s(double seconds)
{
	return bench_quick ? 0.1 : seconds;
}

static void nap(double seconds)
{
	nap_ns((uint64_t)(length_s(seconds) * 1e9));
}

static int proceeds(void *arg, int serving)
{
	(void)arg;
	(void)serving;
	return 1;
}

/* 0: the default. */
static struct shmlimit_global *open_with(struct shmlimit *l, uint64_t deadline_ns, uint64_t lease_ns)
{
	struct shmlimit_global_options options = { .struct_size = sizeof(options),
		                                   .deadline_ns = deadline_ns,
		                                   .lease_ns = lease_ns };
	struct shmlimit_global *g;
	int error = shmlimit_global_open(l, url, &options, &g);

	if (error != 0)
		bench_fail("global_open", shmlimit_strerror(error));
	return g;
}

static struct shmlimit_global *open_global(struct shmlimit *l)
{
	return open_with(l, 0, 0);
}

/* Leases of a second: few commands, and a host of many that share a machine may be late. */
static struct shmlimit_global *open_slow(struct shmlimit *l)
{
	return open_with(l, SECOND_NS, SECOND_NS);
}

static pid_t start_agent(struct shmlimit *l, int is_one_of_many)
{
	pid_t child = fork();

	if (child < 0)
		bench_fail("fork", "failed");
	if (child != 0)
		return child;
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* Hundreds of hosts share this machine: none takes a processor from a server. */
	if (is_one_of_many)
		sched_setscheduler(0, SCHED_IDLE, &(struct sched_param){ 0 });
	shmlimit_global_serve(is_one_of_many ? open_slow(l) : open_global(l), proceeds, NULL);
	_exit(0);
}

static struct shmlimit_global_status status_of(const struct host *host)
{
	struct shmlimit_global_status status = { .struct_size = sizeof(status) };

	shmlimit_global_status(host->limiter, &status);
	return status;
}

/* Until the agent serves and is connected. */
static void await_agent(const struct host *host)
{
	uint64_t end_ns = bench_ns() + 20 * SECOND_NS;

	for (;;) {
		struct shmlimit_global_status status = status_of(host);

		if (status.serving && status.connections > 0)
			return;
		if (bench_ns() > end_ns)
			bench_fail("agent", "does not serve");
		nap_ns(MS_NS);
	}
}

static struct host make_host(uint32_t slots, uint64_t capacity, uint64_t rate, int is_one_of_many)
{
	struct shmlimit_rule rule = { .struct_size = sizeof(rule),
		                      .algorithm = SHMLIMIT_LEASE,
		                      .capacity = capacity,
		                      .refill = rate,
		                      .period_ns = SECOND_NS };
	struct shmlimit_options options = { .struct_size = sizeof(options), .slots = slots };
	struct host host = { .limiter = bench_create(&options) };

	host.leased = shmlimit_rule_set(host.limiter, "leased", &rule);
	if (host.leased < 0)
		bench_fail("rule_set", shmlimit_strerror(host.leased));
	host.plain = bench_rule(host.limiter, "plain", 1000000000, 1000, SECOND_NS);
	host.agent = start_agent(host.limiter, is_one_of_many);
	return host;
}

static struct host start_host(uint64_t capacity, uint64_t rate)
{
	struct host host = make_host(1 << 20, capacity, rate, 0);

	await_agent(&host);
	return host;
}

static void end_host(struct host *host)
{
	kill(host->agent, SIGKILL);
	waitpid(host->agent, NULL, 0);
	shmlimit_close(host->limiter);
}

/* What the server counts: the number after `name`, or after `then` behind it, in a section of INFO. */
static uint64_t server_counts(const char *section, const char *name, const char *then)
{
	redisReply *reply = redisCommand(admin, "INFO %s", section);
	const char *found = reply != NULL && reply->type == REDIS_REPLY_STRING ? strstr(reply->str, name) : NULL;
	uint64_t n;

	if (found != NULL)
		found += strlen(name);
	if (found != NULL && then != NULL) {
		found = strstr(found, then);
		found = found != NULL ? found + strlen(then) : NULL;
	}
	n = found != NULL ? strtoull(found, NULL, 10) : 0;
	freeReplyObject(reply);
	return n;
}

static uint64_t scripts_run(void)
{
	return server_counts("commandstats", "cmdstat_evalsha:calls=", NULL);
}

/* The server's own time for them. */
static uint64_t scripts_us(void)
{
	return server_counts("commandstats", "cmdstat_evalsha:calls=", ",usec=");
}

/* ---- Workers ---- */

static void *sit(const void *what, int seat)
{
	struct worker *worker = (struct worker *)(uintptr_t)what;

	(void)seat;
	prctl(PR_SET_TIMERSLACK, 1UL);
	worker->global = open_global(worker->limiter);
	worker->next_ns = bench_ns();
	return worker;
}

/* Up to the next millisecond, then what is due in it. */
static uint64_t due(struct worker *worker)
{
	uint64_t now_ns = bench_ns(), n;

	worker->next_ns += MS_NS;
	if (worker->next_ns > now_ns)
		nap_ns(worker->next_ns - now_ns);
	worker->owed += (uint64_t)(worker->demand * 1000);
	n = worker->owed / MS_NS;
	worker->owed %= MS_NS;
	return n;
}

static int timed(struct worker *worker, int leased)
{
	struct counted *c = worker->counted;
	int counts = __atomic_load_n(&c->began, __ATOMIC_RELAXED), answer;
	uint64_t start = bench_ns();

	answer = leased ? shmlimit_global_take(worker->global, worker->leased, key, KEY_LEN, 1, NULL)
	                : shmlimit_take(worker->limiter, worker->plain, key, KEY_LEN, 1, NULL);
	if (counts)
		histogram_add(leased ? &c->takes : &c->others, bench_ns() - start);
	return answer;
}

/* Requests for the key of all hosts. */
static uint64_t spend(void *session)
{
	struct worker *worker = session;
	uint64_t n = due(worker), admitted = 0;

	for (uint64_t i = 0; i < n; i++)
		admitted += timed(worker, 1) == SHMLIMIT_ALLOWED;
	__atomic_fetch_add(&worker->counted->decisions, n, __ATOMIC_RELAXED);
	__atomic_fetch_add(&worker->counted->admitted, admitted, __ATOMIC_RELAXED);
	return n;
}

/* Requests for limits of this host alone. */
static uint64_t spend_here(void *session)
{
	struct worker *worker = session;
	uint64_t n = due(worker);

	for (uint64_t i = 0; i < n; i++)
		bench_expect(timed(worker, 0), SHMLIMIT_ALLOWED);
	return n;
}

/* Keys that no process has asked for before, as many at once as can be. */
static uint64_t spend_cold(void *session)
{
	struct worker *worker = session;
	struct shmlimit_request requests[BATCH];
	char keys[BATCH][24];
	int answers[BATCH];
	uint64_t admitted = 0;

	for (unsigned i = 0; i < BATCH; i++) {
		int len =
			snprintf(keys[i], sizeof(keys[i]), "%u:%llu", worker->seat, (unsigned long long)worker->keys++);

		requests[i] = (struct shmlimit_request){
			.rule = worker->leased, .key = keys[i], .key_len = (size_t)len, .cost = 1
		};
	}
	bench_expect(shmlimit_global_take_many(worker->global, requests, BATCH, answers, NULL), 0);
	for (unsigned i = 0; i < BATCH; i++)
		admitted += answers[i] == SHMLIMIT_ALLOWED;
	__atomic_fetch_add(&worker->counted->decisions, BATCH, __ATOMIC_RELAXED);
	__atomic_fetch_add(&worker->counted->admitted, admitted, __ATOMIC_RELAXED);
	return BATCH;
}

/* The same, one after the other. */
static uint64_t spend_new(void *session)
{
	struct worker *worker = session;
	struct counted *c = worker->counted;
	uint64_t n = due(worker);

	for (uint64_t i = 0; i < n; i++) {
		int counts = __atomic_load_n(&c->began, __ATOMIC_RELAXED), len;
		char text[24];
		uint64_t start;

		len = snprintf(text, sizeof(text), "%u:%llu", worker->seat, (unsigned long long)worker->keys++);
		start = bench_ns();
		shmlimit_global_take(worker->global, worker->leased, text, (size_t)len, 1, NULL);
		if (counts)
			histogram_add(&c->takes, bench_ns() - start);
	}
	__atomic_fetch_add(&worker->counted->decisions, n, __ATOMIC_RELAXED);
	return n;
}

/* What some workers of one host do for a while. */
struct crowd {
	pid_t child[WORKERS_MAX];
	struct worker worker[WORKERS_MAX];
	unsigned n;
	uint64_t began_ns;
};

static void crowd_add(struct crowd *crowd, const struct host *host, double demand, uint64_t (*work)(void *session))
{
	unsigned i = crowd->n++;
	struct crew_job job = { sit, work, &crowd->worker[i] };

	crowd->worker[i] = (struct worker){ .limiter = host->limiter,
		                            .leased = host->leased,
		                            .plain = host->plain,
		                            .demand = demand,
		                            .seat = i,
		                            .counted = &counted[i] };
	memset(&counted[i], 0, sizeof(counted[i]));
	if (i == 0)
		crowd->began_ns = bench_ns();
	crowd->child[i] = crew_start((int)i, &job);
}

static void crowd_begin_to_count(const struct crowd *crowd)
{
	for (unsigned i = 0; i < crowd->n; i++)
		__atomic_store_n(&counted[i].began, 1, __ATOMIC_RELAXED);
}

static void crowd_end(struct crowd *crowd)
{
	for (unsigned i = 0; i < crowd->n; i++)
		crew_kill(crowd->child[i]);
}

static uint64_t decisions(const struct crowd *crowd)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < crowd->n; i++)
		sum += __atomic_load_n(&counted[i].decisions, __ATOMIC_RELAXED);
	return sum;
}

static uint64_t admitted(const struct crowd *crowd)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < crowd->n; i++)
		sum += __atomic_load_n(&counted[i].admitted, __ATOMIC_RELAXED);
	return sum;
}

static double over_most = -1e18;

/*
 * Tokens beyond capacity + rate * time, of the scene that has the most; `spent` were taken before. To be called when the
 * workers have ended.
 */
static void judge(const struct crowd *crowd, uint64_t spent)
{
	double over =
		(double)(admitted(crowd) + spent) - CAPACITY - RATE * ((double)(bench_ns() - crowd->began_ns) / 1e9);

	if (over > over_most)
		over_most = over;
}

/* All workers' times. */
static struct histogram times(const struct crowd *crowd, int of_others)
{
	struct histogram sum = { .total = 0 };

	for (unsigned i = 0; i < crowd->n; i++) {
		const struct histogram *h = of_others ? &counted[i].others : &counted[i].takes;

		for (unsigned b = 0; b < HISTOGRAM_BUCKETS; b++)
			sum.count[b] += h->count[b];
		sum.total += h->total;
		sum.max_ns = h->max_ns > sum.max_ns ? h->max_ns : sum.max_ns;
	}
	return sum;
}

/* ---- Scenes ---- */

static void hot_key(const char *name, double demand)
{
	struct host host = start_host(CAPACITY, RATE);
	struct crowd crowd = { .n = 0 };
	uint64_t commands, made;
	struct histogram takes;
	double per;

	crowd_add(&crowd, &host, demand / 2, spend);
	crowd_add(&crowd, &host, demand / 2, spend);
	nap(1);
	crowd_begin_to_count(&crowd);
	commands = scripts_run();
	made = decisions(&crowd);
	nap(6);
	per = 1000 * (double)(scripts_run() - commands) / (double)(decisions(&crowd) - made);
	crowd_end(&crowd);
	judge(&crowd, 0);
	takes = times(&crowd, 0);
	printf("%-30s commands in 1,000: %.3f; us: p50 %.2f, p99.9 %.2f, p99.99 %.2f\n", name, per,
	       (double)histogram_quantile(&takes, 0.5) / 1e3, (double)histogram_quantile(&takes, 0.999) / 1e3,
	       (double)histogram_quantile(&takes, 0.9999) / 1e3);
	bench_row("hot key", name, "commands / 1000 decisions", per);
	bench_row("hot key", name, "p99.9, us", (double)histogram_quantile(&takes, 0.999) / 1e3);
	bench_row("hot key", name, "p99.99, us", (double)histogram_quantile(&takes, 0.9999) / 1e3);
	end_host(&host);
}

static void cold_keys(void)
{
	struct host host = start_host(10, 1);
	struct crowd crowd = { .n = 0 };
	uint64_t made, began_ns, run, run_us;
	double rate, script_us;

	crowd_add(&crowd, &host, 0, spend_cold);
	crowd_add(&crowd, &host, 0, spend_cold);
	nap(0.5);
	made = decisions(&crowd);
	run = scripts_run();
	run_us = scripts_us();
	began_ns = bench_ns();
	nap(3);
	rate = (double)(decisions(&crowd) - made) / ((double)(bench_ns() - began_ns) / 1e9);
	script_us = (double)(scripts_us() - run_us) / (double)(scripts_run() - run);
	crowd_end(&crowd);
	printf("%-30s %.0f a second over one connection; a script takes the server %.1f us, without what it reads and writes\n",
	       "cold keys", rate, script_us);
	bench_row("cold keys", "1 connection", "decisions/s", rate);
	bench_row("cold keys", "script", "us", script_us);
	end_host(&host);
}

/* New keys, at a rate at which the server is no obstacle: what does each wait? */
static void new_keys(const char *name, uint32_t credit)
{
	struct shmlimit_rule rule = { .struct_size = sizeof(rule) };
	struct host host = start_host(10, 1);
	struct crowd crowd = { .n = 0 };
	struct histogram takes;

	bench_expect(shmlimit_rule_get(host.limiter, host.leased, &rule), 0);
	rule.credit = credit;
	bench_expect(shmlimit_rule_set(host.limiter, "leased", &rule), host.leased);
	crowd_add(&crowd, &host, 1000, spend_new);
	crowd_add(&crowd, &host, 1000, spend_new);
	nap(0.5);
	crowd_begin_to_count(&crowd);
	nap(3);
	crowd_end(&crowd);
	takes = times(&crowd, 0);
	printf("%-30s us: p50 %.2f, p99.9 %.2f\n", name, (double)histogram_quantile(&takes, 0.5) / 1e3,
	       (double)histogram_quantile(&takes, 0.999) / 1e3);
	bench_row("new keys", name, "p50, us", (double)histogram_quantile(&takes, 0.5) / 1e3);
	bench_row("new keys", name, "p99.9, us", (double)histogram_quantile(&takes, 0.999) / 1e3);
	end_host(&host);
}

/* At 110 % of the limit, when most of the burst is spent. */
static void far_away(const char *name, uint64_t round_trip_ns)
{
	const uint64_t burst = CAPACITY / 10 * 9;
	struct proxy proxy = proxy_start(proxy_url + strlen("unix://"), folder_file("redis.socket"));
	struct crowd crowd = { .n = 0 };
	uint64_t took, began_ns;
	struct shmlimit_global *g;
	struct host host;
	double use;

	proxy.terms->delay_ns = round_trip_ns / 2;
	url = proxy_url;
	freeReplyObject(redisCommand(admin, "FLUSHALL"));
	host = start_host(CAPACITY, RATE);
	g = open_with(host.limiter, SECOND_NS, 0);
	bench_expect(shmlimit_global_take(g, host.leased, key, KEY_LEN, burst, NULL), SHMLIMIT_ALLOWED);
	shmlimit_global_close(g);
	crowd_add(&crowd, &host, 0.55 * RATE, spend);
	crowd_add(&crowd, &host, 0.55 * RATE, spend);
	/* The rest of it lasts for a second at this demand. */
	nap(3);
	took = admitted(&crowd);
	began_ns = bench_ns();
	nap(6);
	use = (double)(admitted(&crowd) - took) / (RATE * ((double)(bench_ns() - began_ns) / 1e9));
	crowd_end(&crowd);
	judge(&crowd, burst);
	printf("%-30s use %.4f\n", name, use);
	bench_row("demand 110 %", name, "use", use);
	end_host(&host);
	proxy_end(&proxy);
	unlink(proxy_url + strlen("unix://"));
	url = direct_url;
}

/* At half of the limit nothing is to be denied. */
static void late_replies(void)
{
	struct proxy proxy = proxy_start(proxy_url + strlen("unix://"), folder_file("redis.socket"));
	struct crowd crowd = { .n = 0 };
	struct host host;
	double denied;

	proxy.terms->delay_ns = 250 * US_NS;
	url = proxy_url;
	freeReplyObject(redisCommand(admin, "FLUSHALL"));
	host = start_host(CAPACITY, RATE);
	proxy.terms->late_ns = 20 * MS_NS;
	proxy.terms->late_milli = 10;
	crowd_add(&crowd, &host, 0.25 * RATE, spend);
	crowd_add(&crowd, &host, 0.25 * RATE, spend);
	nap(8);
	crowd_end(&crowd);
	judge(&crowd, 0);
	denied = 1 - (double)admitted(&crowd) / (double)decisions(&crowd);
	printf("%-30s wrongly denied %.4f %%\n", "1 % of replies 20 ms late", 100 * denied);
	bench_row("1 % late replies", "demand 50 %", "denied", denied);
	end_host(&host);
	proxy_end(&proxy);
	unlink(proxy_url + strlen("unix://"));
	url = direct_url;
}

/* The server is stopped: what becomes of requests that need no server, and when is all as it was? */
static void stopped_server(void)
{
	pid_t server = (pid_t)server_counts("server", "process_id:", NULL);
	struct host host = start_host(CAPACITY, RATE);
	struct crowd crowd = { .n = 0 };
	struct histogram before, during;
	uint64_t took, began_ns, back_ns;

	crowd_add(&crowd, &host, 20000, spend);
	crowd_add(&crowd, &host, 20000, spend_here);
	nap(0.5);
	crowd_begin_to_count(&crowd);
	nap(5);
	before = times(&crowd, 1);
	for (unsigned i = 0; i < crowd.n; i++)
		memset(&counted[i].others, 0, sizeof(counted[i].others));
	kill(server, SIGSTOP);
	nap(5);
	during = times(&crowd, 1);
	took = admitted(&crowd);
	kill(server, SIGCONT);
	began_ns = bench_ns();
	/* All of the demand is admitted again, in a stretch of 20 ms. */
	for (;;) {
		nap_ns(20 * MS_NS);
		back_ns = bench_ns() - began_ns;
		if (admitted(&crowd) - took >= 360 || back_ns > 20 * SECOND_NS)
			break;
		took = admitted(&crowd);
	}
	crowd_end(&crowd);
	judge(&crowd, 0);
	printf("%-30s p99.9 of other limits: %.2f us, before %.2f us; all as before %.0f ms after its return\n",
	       "server stopped", (double)histogram_quantile(&during, 0.999) / 1e3,
	       (double)histogram_quantile(&before, 0.999) / 1e3, (double)back_ns / 1e6);
	bench_row("server stopped", "other limits", "p99.9 / before",
	          (double)histogram_quantile(&during, 0.999) / (double)histogram_quantile(&before, 0.999));
	bench_row("server stopped", "its return", "ms", (double)back_ns / 1e6);
	end_host(&host);
}

/* Each time the agent is killed another one waits already. */
static void killed_agents(void)
{
	struct host host = start_host(CAPACITY, RATE);
	struct crowd crowd = { .n = 0 };
	int kills = bench_quick ? 1 : 10;
	uint64_t longest_ns = 0;

	crowd_add(&crowd, &host, 20000, spend);
	for (int i = 0; i < kills; i++) {
		pid_t next = start_agent(host.limiter, 0);
		struct shmlimit_global_status status;
		uint64_t began_ns;

		nap(0.5);
		kill(host.agent, SIGKILL);
		began_ns = bench_ns();
		waitpid(host.agent, NULL, 0);
		do {
			nap_ns(MS_NS);
			status = status_of(&host);
		} while ((status.pid != (uint64_t)next || !status.serving) && bench_ns() - began_ns < 20 * SECOND_NS);
		longest_ns = bench_ns() - began_ns > longest_ns ? bench_ns() - began_ns : longest_ns;
		host.agent = next;
	}
	crowd_end(&crowd);
	judge(&crowd, 0);
	printf("%-30s another serves after %.0f ms at most, of %d\n", "agent killed", (double)longest_ns / 1e6, kills);
	bench_row("agent killed", "another serves", "ms", (double)longest_ns / 1e6);
	end_host(&host);
}

/* ---- Many hosts ---- */

/* A key for each server: of all, in a name that fits there. */
static char shard_key[SHARDS][24];
static unsigned servers; /* 1, or SHARDS */
static redisContext *const *admins;

static void find_keys(unsigned n)
{
	servers = n;
	for (unsigned i = 0; i < n; i++) {
		unsigned at = n, slot, tries = 0;

		while (at != i) {
			char text[48];
			int len;

			snprintf(shard_key[i], sizeof(shard_key[i]), "client:%u", tries++);
			len = snprintf(text, sizeof(text), "{leased/%s}", shard_key[i]);
			slot = cluster_slot(text, (size_t)len);
			at = n == 1 ? 0 : shards_of_slot(slot);
		}
	}
}

/* What one process does for the workers of some hosts: each has one request at a time, and none holds a connection. */
struct office {
	const struct host *hosts;
	unsigned n, seat;
	struct shmlimit_global *global[HOSTS];
	struct shmlimit_global_ticket ticket[HOSTS][SEATS];
	unsigned char pending[HOSTS][SEATS]; /* 1 + the server whose key it wants; 0: none */
	unsigned next[HOSTS];
	unsigned owed[HOSTS][SHARDS]; /* 1000ths of a request */
	uint64_t next_ns;
};

struct office_counted {
	uint64_t decisions, busy, admitted[SHARDS];
};

static struct office_counted *offices; /* OFFICES of them */

static void *sit_in_office(const void *what, int seat)
{
	struct office *o = (struct office *)(uintptr_t)what;

	(void)seat;
	prctl(PR_SET_TIMERSLACK, 1UL);
	for (unsigned i = o->seat; i < o->n; i += OFFICES) {
		o->global[i] = open_slow(o->hosts[i].limiter);
		/* Not all in the same millisecond. */
		for (unsigned server = 0; server < SHARDS; server++)
			o->owed[i][server] = (i * 7 + server * 333) % 1000;
	}
	o->next_ns = bench_ns();
	return o;
}

static void decided(struct office *o, unsigned host, unsigned seat, unsigned server, int answer)
{
	struct office_counted *c = &offices[o->seat];

	o->pending[host][seat] = answer == SHMLIMIT_GLOBAL_PENDING ? (unsigned char)(server + 1) : 0;
	if (answer == SHMLIMIT_GLOBAL_PENDING)
		return;
	__atomic_fetch_add(&c->decisions, 1, __ATOMIC_RELAXED);
	if (answer == SHMLIMIT_ALLOWED)
		__atomic_fetch_add(&c->admitted[server], 1, __ATOMIC_RELAXED);
}

/* The next worker of a host that has no request. */
static void ask_for_seat(struct office *o, unsigned host, unsigned server)
{
	unsigned seat = o->next[host], tries = 0;

	while (o->pending[host][seat] != 0 && tries++ < SEATS)
		seat = (seat + 1) % SEATS;
	o->next[host] = (seat + 1) % SEATS;
	if (o->pending[host][seat] != 0) {
		__atomic_fetch_add(&offices[o->seat].busy, 1, __ATOMIC_RELAXED);
		return;
	}
	o->ticket[host][seat] = (struct shmlimit_global_ticket){ .struct_size = sizeof(o->ticket[0][0]) };
	decided(o, host, seat, server,
	        shmlimit_global_begin(o->global[host],
	                              &(struct shmlimit_request){ .rule = o->hosts[host].leased,
	                                                          .key = shard_key[server],
	                                                          .key_len = strlen(shard_key[server]),
	                                                          .cost = 1 },
	                              &o->ticket[host][seat], NULL));
}

/* A millisecond of all workers: 150 % of the limit, in turn for each key. */
static uint64_t work_in_office(void *session)
{
	struct office *o = session;
	uint64_t now_ns = bench_ns();

	o->next_ns += MS_NS;
	if (o->next_ns > now_ns)
		nap_ns(o->next_ns - now_ns);
	for (unsigned i = o->seat; i < o->n; i += OFFICES)
		for (unsigned seat = 0; seat < SEATS; seat++)
			if (o->pending[i][seat] != 0)
				decided(o, i, seat, o->pending[i][seat] - 1u,
				        shmlimit_global_poll(o->global[i], &o->ticket[i][seat], NULL));
	for (unsigned i = o->seat; i < o->n; i += OFFICES) {
		for (unsigned server = 0; server < servers; server++) {
			o->owed[i][server] += HOST_RATE * 15 / 10;
			if (o->owed[i][server] >= 1000) {
				o->owed[i][server] -= 1000;
				ask_for_seat(o, i, server);
			}
		}
	}
	return 1;
}

/* Connections of agents and workers, by CLIENT LIST. Their names end with the process: *own are those of workers. */
static unsigned connections_of(redisContext *server, const pid_t *workers, unsigned *own)
{
	redisReply *reply = redisCommand(server, "CLIENT LIST");
	unsigned n = 0;

	for (const char *at = reply->str; (at = strstr(at, " name=shmlimit-")) != NULL; n++) {
		for (at++; *at != ' ' && *at != '\n'; at++)
			;
		while (at[-1] != '-')
			at--;
		for (unsigned i = 0; i < OFFICES; i++)
			*own += strtol(at, NULL, 10) == workers[i];
	}
	freeReplyObject(reply);
	return n;
}

static uint64_t scripts_of_all(void)
{
	redisContext *one = admin;
	uint64_t sum = 0;

	for (unsigned i = 0; i < servers; i++) {
		admin = admins[i];
		sum += scripts_run();
	}
	admin = one;
	return sum;
}

static struct office_counted all_offices(void)
{
	struct office_counted sum = { 0 };

	for (unsigned i = 0; i < OFFICES; i++) {
		sum.decisions += __atomic_load_n(&offices[i].decisions, __ATOMIC_RELAXED);
		sum.busy += __atomic_load_n(&offices[i].busy, __ATOMIC_RELAXED);
		for (unsigned k = 0; k < SHARDS; k++)
			sum.admitted[k] += __atomic_load_n(&offices[i].admitted[k], __ATOMIC_RELAXED);
	}
	return sum;
}

/* Of all funnels: what would take long to spend. */
static void spend_most(const struct host *host, uint64_t tokens)
{
	struct shmlimit_global *g = open_slow(host->limiter);

	for (unsigned i = 0; i < servers; i++)
		bench_expect(shmlimit_global_take(g, host->leased, shard_key[i], strlen(shard_key[i]), tokens, NULL),
		             SHMLIMIT_ALLOWED);
	shmlimit_global_close(g);
}

static void many_hosts(const char *name)
{
	static struct host hosts[HOSTS];
	unsigned n = bench_quick ? 8 : HOSTS, most = 0, own = 0;
	struct office *office = calloc(1, sizeof(*office));
	uint64_t rate = (uint64_t)n * HOST_RATE, began_ns, from_ns, scripts;
	pid_t child[OFFICES];
	struct office_counted before, after;
	double use = 0, per, over = -1e18;

	for (unsigned i = 0; i < n; i++)
		hosts[i] = make_host(64, 10 * rate, rate, 1);
	for (unsigned i = 0; i < n; i++)
		await_agent(&hosts[i]);
	memset(offices, 0, OFFICES * sizeof(*offices));
	began_ns = bench_ns();
	spend_most(&hosts[0], 9 * rate);
	for (unsigned i = 0; i < OFFICES; i++) {
		struct crew_job job = { sit_in_office, work_in_office, office };

		office->hosts = hosts;
		office->n = n;
		office->seat = i;
		child[i] = crew_start((int)i, &job);
	}
	nap(4);
	before = all_offices();
	scripts = scripts_of_all();
	from_ns = bench_ns();
	nap(4);
	after = all_offices();
	per = 1000 * (double)(scripts_of_all() - scripts) / (double)(after.decisions - before.decisions);
	for (unsigned i = 0; i < servers; i++) {
		unsigned connections = connections_of(admins[i], child, &own);

		most = connections > most ? connections : most;
		use += (double)(after.admitted[i] - before.admitted[i]) / (double)rate / servers /
		       ((double)(bench_ns() - from_ns) / 1e9);
	}
	for (unsigned i = 0; i < OFFICES; i++)
		crew_kill(child[i]);
	after = all_offices();
	for (unsigned i = 0; i < servers; i++) {
		double beyond = (double)after.admitted[i] - (double)rate -
		                (double)rate * ((double)(bench_ns() - began_ns) / 1e9);

		over = beyond > over ? beyond : over;
	}
	over_most = over > over_most ? over : over_most;
	printf("%-30s %u hosts with %u workers each: %u connections a server at most, %u of workers; commands in 1,000: %.0f; use %.3f; %llu "
	       "found all workers busy\n",
	       name, n, SEATS, most, own, per, use, (unsigned long long)after.busy);
	bench_row(name, "a server", "connections / host", (double)most / n);
	bench_row(name, "demand 150 %", "commands / 1000 decisions", per);
	bench_row(name, "demand 150 %", "use", use);
	for (unsigned i = 0; i < n; i++)
		kill(hosts[i].agent, SIGKILL);
	for (unsigned i = 0; i < n; i++)
		end_host(&hosts[i]);
	free(office);
}

/* One of three servers is stopped: what becomes of the keys of the others? */
static void stopped_shard(struct shards *shards)
{
	struct crowd crowd = { .n = 0 };
	struct histogram before, during;
	uint64_t asked[2], taken[2];
	struct host host;

	/* Many hosts had a longer time to full, which a key's debt keeps (script.h). */
	for (unsigned i = 0; i < SHARDS; i++)
		freeReplyObject(redisCommand(admins[i], "FLUSHALL"));
	host = start_host(CAPACITY, RATE);
	key = shard_key[1];
	crowd_add(&crowd, &host, 10000, spend);
	key = shard_key[2];
	crowd_add(&crowd, &host, 10000, spend);
	nap(1);
	crowd_begin_to_count(&crowd);
	asked[0] = counted[0].decisions;
	taken[0] = counted[0].admitted;
	nap(4);
	before = counted[0].takes;
	memset(&counted[0].takes, 0, sizeof(counted[0].takes));
	asked[0] = counted[0].decisions - asked[0];
	taken[0] = counted[0].admitted - taken[0];
	kill(shards->pid[2], SIGSTOP);
	asked[1] = counted[0].decisions;
	taken[1] = counted[0].admitted;
	nap(4);
	during = counted[0].takes;
	asked[1] = counted[0].decisions - asked[1];
	taken[1] = counted[0].admitted - taken[1];
	kill(shards->pid[2], SIGCONT);
	crowd_end(&crowd);
	key = hot;
	printf("%-30s keys of the others: denied %.4f %%, before %.4f %%; p99.9 %.2f us, before %.2f us\n",
	       "one of 3 servers stopped", 100 - 100 * (double)taken[1] / (double)asked[1],
	       100 - 100 * (double)taken[0] / (double)asked[0], (double)histogram_quantile(&during, 0.999) / 1e3,
	       (double)histogram_quantile(&before, 0.999) / 1e3);
	bench_row("one of 3 servers stopped", "keys of the others", "denied", 1 - (double)taken[1] / (double)asked[1]);
	bench_row("one of 3 servers stopped", "keys of the others", "p99.9, us",
	          (double)histogram_quantile(&during, 0.999) / 1e3);
	bench_row("one of 3 servers stopped", "keys of the others", "p99.9 / before",
	          (double)histogram_quantile(&during, 0.999) / (double)histogram_quantile(&before, 0.999));
	end_host(&host);
}

static void in_a_cluster(void)
{
	struct shards shards = shards_start();
	char cluster_url[64];

	snprintf(cluster_url, sizeof(cluster_url), "redis://127.0.0.1:%d", shards.port[0]);
	url = cluster_url;
	admins = shards.admin;
	find_keys(SHARDS);
	many_hosts("many hosts, 3 servers");
	stopped_shard(&shards);
	url = direct_url;
	shards_end(&shards);
}

int main(int argc, char **argv)
{
	bench_begin(argc, argv, "agent");
	counted = mmap(NULL, WORKERS_MAX * sizeof(*counted), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (counted == MAP_FAILED)
		bench_fail("mmap", "no memory");
	offices = mmap(NULL, OFFICES * sizeof(*offices), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (offices == MAP_FAILED)
		bench_fail("mmap", "no memory");
	peer_redis.start();
	snprintf(direct_url, sizeof(direct_url), "unix://%s", folder_file("redis.socket"));
	snprintf(proxy_url, sizeof(proxy_url), "unix://%s", folder_file("proxy.socket"));
	url = direct_url;
	admin = redisConnectUnix(folder_file("redis.socket"));
	if (admin == NULL || admin->err != 0)
		bench_fail("redis", "no connection");

	hot_key("25,000/s", 25000);
	hot_key("2,000/s", 2000);
	cold_keys();
	new_keys("new keys, no credit", 0);
	new_keys("new keys, credit 1", 1);
	far_away("0.1 ms away", 100 * US_NS);
	far_away("1 ms away", MS_NS);
	far_away("10 ms away", 10 * MS_NS);
	far_away("50 ms away", 50 * MS_NS);
	late_replies();
	stopped_server();
	killed_agents();
	admins = &admin;
	find_keys(1);
	many_hosts("many hosts");
	in_a_cluster();
	printf("%-30s %.0f tokens beyond capacity + rate * time at most\n", "all of these", over_most);
	bench_row("all scenes", "the worst", "over", over_most);
	redisFree(admin);
	peer_redis.end();
	return bench_end();
}
