/*
 * agent: what is a limit over many hosts worth while an agent asks for all processes of a host, over a good network, over
 * a bad one, and when a part fails?
 *
 * Real servers, agents and workers, each a process; hosts are segments. See README.md for the figures.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <hiredis/hiredis.h>
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
#include "peers/peer.h"
#include "shmlimit_global.h"

#define RATE 100000u
#define CAPACITY 100000u /* a second of it */
#define SECOND_NS UINT64_C(1000000000)
#define MS_NS UINT64_C(1000000)
#define US_NS UINT64_C(1000)
#define WORKERS_MAX 16
#define HOSTS_MAX 8
#define BATCH SHMLIMIT_GLOBAL_REQUESTS_MAX

static const char hot[] = "client:192.168.100.1";
#define KEY_LEN (sizeof(hot) - 1)

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

static struct shmlimit_global *open_patient(struct shmlimit *l, uint64_t deadline_ns)
{
	struct shmlimit_global_options options = { .struct_size = sizeof(options), .deadline_ns = deadline_ns };
	struct shmlimit_global *g;
	int error = shmlimit_global_open(l, url, &options, &g);

	if (error != 0)
		bench_fail("global_open", shmlimit_strerror(error));
	return g;
}

static struct shmlimit_global *open_global(struct shmlimit *l)
{
	return open_patient(l, 0);
}

static pid_t start_agent(struct shmlimit *l)
{
	pid_t child = fork();

	if (child < 0)
		bench_fail("fork", "failed");
	if (child != 0)
		return child;
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	shmlimit_global_serve(open_global(l), proceeds, NULL);
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

static struct host start_host(uint64_t capacity, uint64_t rate)
{
	struct shmlimit_rule rule = { .struct_size = sizeof(rule),
		                      .algorithm = SHMLIMIT_LEASE,
		                      .capacity = capacity,
		                      .count = rate,
		                      .period_ns = SECOND_NS };
	struct shmlimit_options options = { .struct_size = sizeof(options), .slots = 1 << 20 };
	struct host host = { .limiter = bench_create(&options) };

	host.leased = shmlimit_rule_set(host.limiter, "leased", &rule);
	if (host.leased < 0)
		bench_fail("rule_set", shmlimit_strerror(host.leased));
	host.plain = bench_rule(host.limiter, "plain", 1000000000, 1000, SECOND_NS);
	host.agent = start_agent(host.limiter);
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

	answer = leased ? shmlimit_global_take(worker->global, worker->leased, hot, KEY_LEN, 1, NULL)
	                : shmlimit_take(worker->limiter, worker->plain, hot, KEY_LEN, 1, NULL);
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
	g = open_patient(host.limiter, SECOND_NS);
	bench_expect(shmlimit_global_take(g, host.leased, hot, KEY_LEN, burst, NULL), SHMLIMIT_ALLOWED);
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
		pid_t next = start_agent(host.limiter);
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

static void many_hosts(void)
{
	uint64_t before = server_counts("clients", "connected_clients:", NULL);
	struct crowd crowd = { .n = 0 };
	struct host hosts[HOSTS_MAX];
	double each;

	for (unsigned i = 0; i < HOSTS_MAX; i++)
		hosts[i] = start_host(CAPACITY, RATE);
	for (unsigned i = 0; i < WORKERS_MAX; i++)
		crowd_add(&crowd, &hosts[i % HOSTS_MAX], 500, spend);
	nap(1);
	each = (double)(server_counts("clients", "connected_clients:", NULL) - before) / HOSTS_MAX;
	crowd_end(&crowd);
	judge(&crowd, 0);
	printf("%-30s %.2f connections a host, of %u hosts with %u workers each\n", "many hosts", each, HOSTS_MAX,
	       WORKERS_MAX / HOSTS_MAX);
	bench_row("many hosts", "a host", "connections", each);
	for (unsigned i = 0; i < HOSTS_MAX; i++)
		end_host(&hosts[i]);
}

int main(int argc, char **argv)
{
	bench_begin(argc, argv, "agent");
	counted = mmap(NULL, WORKERS_MAX * sizeof(*counted), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (counted == MAP_FAILED)
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
	far_away("0.1 ms away", 100 * US_NS);
	far_away("1 ms away", MS_NS);
	far_away("10 ms away", 10 * MS_NS);
	far_away("50 ms away", 50 * MS_NS);
	late_replies();
	stopped_server();
	killed_agents();
	many_hosts();
	printf("%-30s %.0f tokens beyond capacity + rate * time at most\n", "all of these", over_most);
	bench_row("all scenes", "the worst", "over", over_most);
	redisFree(admin);
	peer_redis.end();
	return bench_end();
}
