/*
 * global: what does a limit over many hosts cost, and how much of it is used?
 *
 * A local decision beside a plain take; then four hosts, a process each, that
 * share one hot key through one Redis: how many commands the backend is sent, and
 * how much of the limit is admitted. Beside it the article's funnel, one script
 * a request. See README.md for the figures.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <hiredis/hiredis.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "kit/bench.h"
#include "kit/crew.h"
#include "kit/folder.h"
#include "kit/rounds.h"
#include "peers/peer.h"
#include "shmlimit_global.h"

#define HOSTS 4
#define RATE 100000u
#define CAPACITY 100000u /* a second of it */
#define SECOND_NS UINT64_C(1000000000)
#define MS_NS UINT64_C(1000000)
#define WARM_S 2.0 /* from a full funnel, in which the burst is spent */

static const char hot[] = "client:192.168.100.1";
#define KEY_LEN (sizeof(hot) - 1)

struct tally {
	_Atomic uint64_t decisions, admitted;
};

/* One host, as its process sees it; counts are shared. */
struct host {
	struct shmlimit *limiter;
	int rule;
	double demand; /* requests a second; 0: as many as it can */
	struct shmlimit_global *global;
	uint64_t next_ns, owed;
	struct tally *tally;
};

static struct host hosts[HOSTS];
static char url[160];

static int lease_rule(struct shmlimit *l, const char *name, uint64_t capacity, uint64_t count)
{
	struct shmlimit_rule rule = {
		.struct_size = sizeof(rule),
		.algorithm = SHMLIMIT_LEASE,
		.capacity = capacity,
		.refill = count,
		.period_ns = SECOND_NS,
	};
	int id = shmlimit_rule_set(l, name, &rule);

	if (id < 0)
		bench_fail("rule_set", shmlimit_strerror(id));
	return id;
}

static struct shmlimit_global *open_global(struct shmlimit *l)
{
	struct shmlimit_global *g;
	int error = shmlimit_global_open(l, url, NULL, &g);

	if (error != 0)
		bench_fail("global_open", shmlimit_strerror(error));
	return g;
}

/* ---- A local decision ---- */

#define TOKENS 2000000u

static double time_of(int global, struct shmlimit *l, struct shmlimit_global *g, int rule, int n)
{
	uint64_t start = bench_ns();

	if (global) {
		for (int i = 0; i < n; i++)
			bench_expect(shmlimit_global_take(g, rule, hot, KEY_LEN, 1, NULL), SHMLIMIT_ALLOWED);
	} else {
		for (int i = 0; i < n; i++)
			bench_expect(shmlimit_take(l, rule, hot, KEY_LEN, 1, NULL), SHMLIMIT_ALLOWED);
	}
	return (double)(bench_ns() - start) / n;
}

static void local(void)
{
	struct shmlimit *l = bench_create(NULL);
	struct shmlimit_global *g = open_global(l);
	int leased = lease_rule(l, "leased", TOKENS, TOKENS),
	    plain = bench_rule(l, "plain", 1000000000, 1000, SECOND_NS);
	int rounds = bench_quick ? 1 : 31, n = bench_quick ? 1000 : 200000;
	struct rounds take = { .n = 0 }, global = { .n = 0 };

	bench_pin(0);
	for (int round = -1; round < rounds; round++) {
		shmlimit_lease_deposit(l, leased, hot, KEY_LEN, TOKENS, 0, 0, 100 * SECOND_NS, NULL);
		rounds_add(&take, round, time_of(0, l, g, plain, n));
		rounds_add(&global, round, time_of(1, l, g, leased, n));
	}
	printf("%-28s %8.1f ns\n%-28s %8.1f ns  %.2f of it\n", "take", rounds_least(&take), "global take, leased",
	       rounds_least(&global), rounds_least_ratio(&global, &take));
	bench_row("take", "hot key", "ns", rounds_least(&take));
	bench_row("leased", "hot key", "ns", rounds_least(&global));
	bench_row("leased", "hot key", "/ take", rounds_least_ratio(&global, &take));
	shmlimit_global_close(g);
	shmlimit_close(l);
}

/* ---- One key, four hosts ---- */

static void *sit(const void *what, int seat)
{
	struct host *host = (struct host *)(uintptr_t)what;

	(void)seat;
	host->global = open_global(host->limiter);
	host->next_ns = bench_ns();
	return host;
}

/* Up to the next millisecond, then what is due in it. */
static uint64_t due(struct host *host)
{
	uint64_t now_ns = bench_ns(), n;
	struct timespec pause = { 0, 0 };

	if (host->demand == 0)
		return 256;
	host->next_ns += MS_NS;
	if (host->next_ns > now_ns) {
		pause.tv_nsec = (long)(host->next_ns - now_ns);
		nanosleep(&pause, NULL);
	}
	host->owed += (uint64_t)(host->demand * 1000);
	n = host->owed / MS_NS;
	host->owed %= MS_NS;
	return n;
}

static uint64_t spend(void *session)
{
	struct host *host = session;
	uint64_t n = due(host), admitted = 0;

	for (uint64_t i = 0; i < n; i++)
		admitted += shmlimit_global_take(host->global, host->rule, hot, KEY_LEN, 1, NULL) == SHMLIMIT_ALLOWED;
	atomic_fetch_add(&host->tally->decisions, n);
	atomic_fetch_add(&host->tally->admitted, admitted);
	return n;
}

/* What the backend was sent, by its own count. */
static uint64_t commands(redisContext *c)
{
	redisReply *reply = redisCommand(c, "INFO commandstats");
	const char *found = reply != NULL ? strstr(reply->str, "cmdstat_evalsha:calls=") : NULL;
	uint64_t n = found != NULL ? strtoull(found + strlen("cmdstat_evalsha:calls="), NULL, 10) : 0;

	freeReplyObject(reply);
	return n;
}

static void snooze(double seconds)
{
	struct timespec pause = { (time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9) };

	nanosleep(&pause, NULL);
}

struct seen {
	uint64_t ns, decisions, admitted, commands;
};

static struct seen look(redisContext *c)
{
	struct seen seen = { .ns = bench_ns(), .commands = commands(c) };

	for (int i = 0; i < HOSTS; i++) {
		seen.decisions += atomic_load(&hosts[i].tally->decisions);
		seen.admitted += atomic_load(&hosts[i].tally->admitted);
	}
	return seen;
}

static void hold(const char *name, double demand, double seconds)
{
	redisContext *c = redisConnectUnix(folder_file("redis.socket"));
	double least = 1e18, most = 0, share, use, decisions, per;
	struct seen from, to, begin;
	pid_t child[HOSTS];

	freeReplyObject(redisCommand(c, "FLUSHALL"));
	for (int i = 0; i < HOSTS; i++) {
		struct crew_job job = { sit, spend, &hosts[i] };

		shmlimit_reset(hosts[i].limiter, SHMLIMIT_ALL_RULES, NULL, 0);
		hosts[i].demand = demand;
		hosts[i].owed = 0;
		atomic_store(&hosts[i].tally->decisions, 0);
		atomic_store(&hosts[i].tally->admitted, 0);
		child[i] = crew_start(i, &job);
	}
	begin = look(c);
	snooze(bench_quick ? 0.01 : WARM_S);
	from = look(c);
	snooze(seconds);
	to = look(c);
	for (int i = 0; i < HOSTS; i++) {
		double admitted;

		crew_kill(child[i]);
		admitted = (double)atomic_load(&hosts[i].tally->admitted);
		least = admitted < least ? admitted : least;
		most = admitted > most ? admitted : most;
	}
	decisions = (double)(to.decisions - from.decisions);
	use = (double)(to.admitted - from.admitted) / (RATE * ((double)(to.ns - from.ns) / 1e9));
	share = (double)to.admitted / (CAPACITY + RATE * ((double)(to.ns - begin.ns) / 1e9));
	per = 1000 * (double)(to.commands - from.commands) / decisions;
	printf("%-28s %8.0f decisions/s, commands in 1,000: %.3f, use %.4f (from full %.4f), least host / most %.2f\n",
	       name, decisions / ((double)(to.ns - from.ns) / 1e9), per, use, share, least / most);
	bench_row(name, "4 hosts", "decisions/s", decisions / ((double)(to.ns - from.ns) / 1e9));
	bench_row(name, "4 hosts", "commands / 1000 decisions", per);
	bench_row(name, "4 hosts", "use", use);
	bench_row(name, "4 hosts", "use from full", share);
	bench_row(name, "4 hosts", "least / most", least / most);
	redisFree(c);
}

/* ---- The article's: one script a request ---- */

static void *sit_at_script(const void *what, int seat)
{
	(void)what;
	(void)seat;
	return peer_redis.open();
}

static uint64_t ask_script(void *session)
{
	static const struct peer_key key = { .bytes = hot, .len = KEY_LEN };
	int answer;

	peer_redis.decide(session, PEER_OPEN, &key, 1, &answer);
	return 1;
}

static void script(double seconds)
{
	struct crew_job job = { sit_at_script, ask_script, NULL };
	double rate = crew_rate(HOSTS, seconds, &job);

	printf("%-28s %8.0f decisions/s, commands in 1,000: 1000\n", "a script a request", rate);
	bench_row("a script a request", "4 hosts", "decisions/s", rate);
}

int main(int argc, char **argv)
{
	double seconds;
	void *p;

	bench_begin(argc, argv, "global");
	seconds = bench_quick ? 0.05 : 8;
	p = mmap(NULL, HOSTS * sizeof(struct tally), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		bench_fail("mmap", "no memory");
	for (int i = 0; i < HOSTS; i++) {
		hosts[i].tally = (struct tally *)p + i;
		hosts[i].limiter = bench_create(NULL);
		hosts[i].rule = lease_rule(hosts[i].limiter, "hot", CAPACITY, RATE);
	}
	peer_redis.start();
	snprintf(url, sizeof(url), "unix://%s", folder_file("redis.socket"));
	local();
	hold("demand 80 %", 0.8 * RATE / HOSTS, seconds);
	hold("demand 110 %", 1.1 * RATE / HOSTS, seconds);
	hold("demand 200 %", 2.0 * RATE / HOSTS, seconds);
	hold("all that they can", 0, seconds);
	script(bench_quick ? 0.05 : 2);
	peer_redis.end();
	return bench_end();
}
