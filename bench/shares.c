/*
 * shares: hosts that share one limit and ask for it unevenly, on a clock that is made up. Has a
 * request the same chance on every host, is the limit used, and is a request ever denied while the
 * limit has half of its tokens?
 *
 *	part    requests of a host admitted / its requests; of a rank, where hosts change ranks
 *	uneven  1 - the least part / the largest, of hosts with a hundredth of the requests or more
 *	used    requests admitted / those that one bucket would admit of the same requests
 *	wrong   requests denied while the backend has half of the tokens: none
 *	over    most tokens in any stretch of time, less capacity + rate * time: 0 at most
 *
 * Rank r of n hosts has the part 1 / r^zipf of the requests. The library, the script and the world
 * are as in global_sim.
 *
 *	shares [--quick] [--rows FILE]     fails if a figure is not what is demanded; --quick: some
 *	                                   of the scenes
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "handle.h"
#include "kit/bench.h"
#include "kit/lua.h"
#include "kit/rng.h"
#include "kit/virtual.h"
#include "world/world.h"

#define SECOND_NS UINT64_C(1000000000)
#define MS_NS UINT64_C(1000000)
#define HOSTS_MAX 1000u
#define WORKERS_MAX 8u

#define UNEVEN_MAX 0.2
#define USED_MIN 0.98
/* Where of a lease of 125 ms an answer takes 90: */
#define USED_MIN_FAR 0.95
#define WRONG_MAX_FAR 0.001

struct scene {
	uint64_t capacity, count, period_s;
	unsigned hosts;
	double demand, zipf, seconds; /* demand 1: the limit */
	uint64_t near_ns, far_ns;     /* one way; the first host is near, every other one far */
	double change_s;              /* ranks change that often; 0: never */
	int is_quick;
};

static const struct scene scenes[] = {
#define MS10 (MS_NS / 10)
	/* The busiest host and the idlest: `skew`. */
	{ 1000, 1000, 1, 4, 2, 1, 60, MS10, MS10, 0, 1 },
	{ 1000, 1000, 1, 32, 2, 1, 100, MS10, MS10, 0, 0 },
	{ 1000, 1000, 1, 100, 2, 1, 100, MS10, MS10, 0, 0 },
	{ 1000, 1000, 1, 1000, 2, 1, 100, MS10, MS10, 0, 0 },
	{ 1000, 1000, 1, 100, 2, 1, 100, MS10, MS10, 10, 0 },
	{ 1000, 1000, 1, 1000, 2, 1, 100, MS10, MS10, 10, 1 },
	{ 1000, 1000, 1, 4, 2, 0, 60, 5 * MS10, 350 * MS10, 0, 1 },
	{ 1000, 1000, 1, 2, 2, 0, 100, 5 * MS10, 350 * MS10, 0, 0 },

	{ 60, 60, 60, 4, 2, 1, 30000, MS10, MS10, 0, 1 },
	{ 60, 60, 60, 32, 2, 1, 30000, MS10, MS10, 0, 0 },
	{ 600, 600, 60, 32, 2, 1, 10000, MS10, MS10, 0, 0 },
	{ 20, 20, 1, 32, 2, 1, 5000, MS10, MS10, 0, 0 },
	{ 50, 50, 1, 32, 2, 1, 2000, MS10, MS10, 0, 0 },
	{ 100, 100, 1, 4, 2, 1, 600, MS10, MS10, 0, 1 },
	{ 100, 100, 1, 32, 2, 1, 1000, MS10, MS10, 0, 0 },
	{ 300, 300, 1, 32, 2, 1, 400, MS10, MS10, 0, 0 },
	{ 10000, 10000, 1, 4, 2, 1, 100, MS10, MS10, 0, 0 },
	{ 10000, 10000, 1, 100, 2, 1, 100, MS10, MS10, 0, 0 },
	{ 10000, 10000, 1, 1000, 2, 1, 100, MS10, MS10, 0, 0 },
	{ 100000, 100000, 1, 4, 2, 1, 50, MS10, MS10, 0, 0 },
	{ 100000, 100000, 1, 32, 2, 1, 50, MS10, MS10, 0, 0 },
	{ 100000, 100000, 1, 1000, 2, 1, 50, MS10, MS10, 0, 0 },
	/* The whole limit. */
	{ 100, 100, 1, 4, 0.9, 0, 1000, MS10, MS10, 0, 0 },
	{ 100, 100, 1, 4, 1, 0, 1000, MS10, MS10, 0, 0 },
	{ 100, 100, 1, 4, 1.2, 0, 1000, MS10, MS10, 0, 0 },
	{ 100, 100, 1, 8, 0.9, 0, 1000, MS10, MS10, 0, 0 },
	{ 100, 100, 1, 8, 1, 0, 1000, MS10, MS10, 0, 1 },
	{ 100, 100, 1, 8, 1.2, 0, 1000, MS10, MS10, 0, 0 },
	{ 100, 100, 1, 16, 0.9, 0, 1000, MS10, MS10, 0, 0 },
	{ 100, 100, 1, 16, 1, 0, 1000, MS10, MS10, 0, 1 },
	{ 100, 100, 1, 16, 1.2, 0, 1000, MS10, MS10, 0, 0 },
	{ 300, 300, 1, 4, 1, 0, 500, MS10, MS10, 0, 0 },
	{ 300, 300, 1, 8, 1, 0, 500, MS10, MS10, 0, 0 },
	{ 300, 300, 1, 16, 1, 0, 500, MS10, MS10, 0, 0 },
	{ 1000, 50, 1, 4, 0.9, 0, 2000, MS10, MS10, 0, 0 },
	{ 1000, 50, 1, 8, 1, 0, 2000, MS10, MS10, 0, 0 },
	{ 1000, 50, 1, 8, 1.2, 0, 2000, MS10, MS10, 0, 1 },
	{ 1000, 1000, 1, 100, 0.9, 0, 200, MS10, MS10, 0, 0 },
	{ 1000, 1000, 1, 100, 1, 0, 200, MS10, MS10, 0, 0 },
	{ 1000, 1000, 1, 100, 1.2, 0, 200, MS10, MS10, 0, 1 },
	{ 1000, 1000, 1, 1000, 1, 0, 200, MS10, MS10, 0, 0 },
	{ 100, 100, 60, 4, 1, 0, 10000, MS10, MS10, 0, 0 },
};

struct worker {
	struct world_caller caller;
	struct host *host;
	struct shmlimit_global *global;
};

struct request {
	uint64_t at_ns;
	uint32_t rank;
};

static struct host {
	struct request *requests;
	size_t n, max, next;
	struct worker worker[WORKERS_MAX];
} hosts[HOSTS_MAX];

static struct rank {
	uint64_t asked, admitted;
} ranks[HOSTS_MAX];

/* One bucket. */
struct bucket {
	double tokens;
	uint64_t at_ns;
};

static const struct scene *scene;
static struct shmlimit *limiter;
static int rule;
static struct world_ledger ledger;
static uint64_t begin_ns, end_ns, wrong;

static double refilled(double tokens, uint64_t ns)
{
	double rate = (double)scene->count / (double)scene->period_s;

	return fmin((double)scene->capacity, tokens + (double)ns / 1e9 * rate);
}

static void decide(struct worker *worker, unsigned rank)
{
	char text[32];
	int len = snprintf(text, sizeof(text), "%u/key", (unsigned)(worker->host - hosts)), answer;

	worker->caller.debited_ns = 0;
	answer = shmlimit_global_take(worker->global, rule, text, (size_t)len, 1, NULL);
	if (answer < 0)
		bench_fail("take", shmlimit_strerror(answer));
	if (answer == SHMLIMIT_ALLOWED) {
		ranks[rank].admitted++;
		world_admitted(&ledger, &worker->caller);
	} else {
		wrong += refilled((double)world.left, virtual_now_ns - world.left_ns) >= (double)scene->capacity / 2;
	}
}

/* A worker that is free takes the host's next request when it comes, or what waits. */
static void work(void *of)
{
	struct worker *worker = of;
	struct host *host = worker->host;

	while (host->next < host->n) {
		struct request request = host->requests[host->next++];

		virtual_wait(request.at_ns);
		decide(worker, request.rank);
	}
	for (;;)
		virtual_wait(end_ns + SECOND_NS);
}

static void ask(struct host *host, uint64_t at_ns, unsigned rank)
{
	if (host->n == host->max) {
		host->max = 2 * host->max + 64;
		host->requests = realloc(host->requests, host->max * sizeof(*host->requests));
		if (host->requests == NULL)
			bench_fail("requests", "no memory");
	}
	host->requests[host->n++] = (struct request){ at_ns, rank };
	ranks[rank].asked++;
}

static unsigned draw_rank(const double *up_to)
{
	double x = rng_unit(&world.rng) * up_to[scene->hosts - 1];
	unsigned low = 0, high = scene->hosts - 1;

	while (low < high) {
		unsigned middle = (low + high) / 2;

		if (up_to[middle] > x)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* The requests of all hosts. Returns how many one bucket would admit. */
static uint64_t draw(void)
{
	double mean_ns = 1e9 * (double)scene->period_s / ((double)scene->count * scene->demand), at = 0, sum = 0;
	struct bucket one = { (double)scene->capacity, begin_ns };
	static double up_to[HOSTS_MAX];
	uint64_t exact = 0;

	for (unsigned i = 0; i < scene->hosts; i++) {
		up_to[i] = sum += pow(i + 1, -scene->zipf);
		hosts[i].n = hosts[i].next = 0;
		ranks[i] = (struct rank){ 0, 0 };
	}
	while ((at += world_draw(mean_ns)) < scene->seconds * 1e9) {
		unsigned rank = draw_rank(up_to);
		unsigned turn = scene->change_s > 0 ? (unsigned)(at / 1e9 / scene->change_s) : 0;

		ask(&hosts[(rank + turn * (scene->hosts / 3 + 1)) % scene->hosts], begin_ns + (uint64_t)at, rank);
		one.tokens = refilled(one.tokens, begin_ns + (uint64_t)at - one.at_ns);
		one.at_ns = begin_ns + (uint64_t)at;
		if (one.tokens >= 1) {
			one.tokens--;
			exact++;
		}
	}
	return exact;
}

static void set_rule(void)
{
	struct shmlimit_rule params = {
		.struct_size = sizeof(params),
		.algorithm = SHMLIMIT_LEASE,
		.capacity = scene->capacity,
		.refill = scene->count,
		.period_ns = scene->period_s * SECOND_NS,
	};

	shmlimit_reset(limiter, SHMLIMIT_ALL_RULES, NULL, 0);
	rule = shmlimit_rule_set(limiter, "shared", &params);
	if (rule < 0)
		bench_fail("rule_set", shmlimit_strerror(rule));
}

static void settle_in(struct host *host, unsigned workers, uint64_t latency_ns)
{
	struct shmlimit_global_options options = {
		.struct_size = sizeof(options),
		.deadline_ns = 5 * latency_ns > 50 * MS_NS ? 5 * latency_ns : 0,
	};
	char url[32];

	/* A breaker is the backend's, by its name: each host has its own. */
	snprintf(url, sizeof(url), "redis://h%u", (unsigned)(host - hosts));
	for (unsigned i = 0; i < workers; i++) {
		struct worker *worker = &host->worker[i];
		int error;

		*worker = (struct worker){ .caller.latency_ns = latency_ns, .host = host };
		options.arg = &worker->caller;
		error = shmlimit_global_open(limiter, url, &options, &worker->global);
		if (error != 0)
			bench_fail("global_open", shmlimit_strerror(error));
		virtual_task(work, worker);
	}
}

/* By how much the least part is below the largest one, of those with a hundredth of the requests. */
static double uneven(double asked)
{
	double least = 1, most = 0;

	for (unsigned i = 0; i < scene->hosts; i++)
		if ((double)ranks[i].asked >= asked / 100) {
			double part = (double)ranks[i].admitted / (double)ranks[i].asked;

			least = fmin(least, part);
			most = fmax(most, part);
		}
	return most > 0 ? 1 - least / most : 0;
}

/* Returns whether the figures are what is demanded. */
static int tell(uint64_t exact)
{
	double asked = 0, admitted = 0, used, differ, over;
	char name[128], at[16], limit[32];
	int is_far = scene->far_ns > MS_NS, good;

	for (unsigned i = 0; i < scene->hosts; i++) {
		asked += (double)ranks[i].asked;
		admitted += (double)ranks[i].admitted;
	}
	used = admitted / (double)exact;
	differ = scene->hosts > 1 ? uneven(asked) : 0;
	over = world_excess(&ledger, scene->capacity, scene->count, scene->period_s * SECOND_NS);
	good = over <= 0 && differ <= UNEVEN_MAX && used >= (is_far ? USED_MIN_FAR : USED_MIN) &&
	       (double)wrong <= (is_far ? WRONG_MAX_FAR * asked : 0);
	snprintf(limit, sizeof(limit), "%" PRIu64 "/%" PRIu64 "s", scene->count, scene->period_s);
	snprintf(name, sizeof(name), "%s of %" PRIu64 ", demand %g%s%s%s", limit, scene->capacity, scene->demand,
	         scene->zipf > 0 ? ", Zipf" : "", scene->change_s > 0 ? ", changing" : "", is_far ? ", far" : "");
	snprintf(at, sizeof(at), "%u", scene->hosts);
	printf("%-44s %5s %8.0f %6.3f %7.4f %6" PRIu64 " %6.0f %9.4f %9.1f %s", name, at, asked, differ, used, wrong,
	       over, (double)world.commands / asked, (double)world.commands / scene->seconds, good ? "   " : "BAD");
	for (unsigned i = 0; i < scene->hosts; i = i < 4 ? i + 1 : i * 2)
		printf(" %.2f", (double)ranks[i].admitted / (double)ranks[i].asked);
	printf(" .. %.2f\n", (double)ranks[scene->hosts - 1].admitted / (double)ranks[scene->hosts - 1].asked);
	bench_row(name, at, "uneven", differ);
	bench_row(name, at, "used", used);
	bench_row(name, at, "wrong", (double)wrong);
	bench_row(name, at, "over", over);
	bench_row(name, at, "commands / request", (double)world.commands / asked);
	return good;
}

static int play(const struct scene *s)
{
	unsigned workers = s->hosts > 100 ? 2 : WORKERS_MAX;
	uint64_t exact;
	int good;

	scene = s;
	world = (struct world){ .rng.state = 7919 };
	wrong = 0;
	begin_ns = virtual_now_ns += 7 * 24 * 3600 * SECOND_NS; /* nothing is left of the last one */
	end_ns = begin_ns + (uint64_t)(s->seconds * 1e9) + SECOND_NS;
	world_ledger_clear(&ledger);
	set_rule();
	lua_begin(script_text);
	virtual_begin(s->hosts * workers);
	exact = draw();
	for (unsigned i = 0; i < s->hosts; i++)
		settle_in(&hosts[i], workers, i == 0 ? s->near_ns : s->far_ns);
	virtual_run(end_ns);
	good = tell(exact);
	for (unsigned i = 0; i < s->hosts; i++)
		for (unsigned j = 0; j < workers; j++)
			shmlimit_global_close(hosts[i].worker[j].global);
	virtual_end();
	lua_end();
	return good;
}

int main(int argc, char **argv)
{
	struct shmlimit_options options = { .struct_size = sizeof(options), .slots = 1 << 14 };
	unsigned bad = 0;

	virtual_now_ns = 1000000 * SECOND_NS;
	bench_begin(argc, argv, "shares");
	limiter = bench_create(&options);
	printf("%-44s %5s %8s %6s %7s %6s %6s %9s %9s     %s\n", "limit", "hosts", "requests", "uneven", "used",
	       "wrong", "over", "commands", "a second", "part of hosts 1, 2, 3, 4, 5, 9, 17 .. last");
	for (size_t i = 0; i < sizeof(scenes) / sizeof(scenes[0]); i++) {
		if (bench_quick && !scenes[i].is_quick)
			continue;
		bad += !play(&scenes[i]);
		fflush(stdout);
	}
	if (bad != 0)
		bench_fail("shares", "a figure is not what is demanded");
	return bench_end();
}
