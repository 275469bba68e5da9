/*
 * global_sim: one funnel, up to 10,000 hosts, latencies and outages, on a clock that
 * is made up: is too much ever admitted, how much of the limit is used, what is the
 * backend asked, and do all hosts get their part?
 *
 * What decides is the library as it is: shmlimit_global_take() with all that is
 * below it, and the text of the script, in Lua. Its world is world/world.h. All hosts' slots are
 * in one segment: a slot knows nothing of the others. See README.md for the figures.
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
#include "kit/virtual.h"
#include "world/world.h"

#define RATE 100000u /* of all keys together; a second of it is the capacity */
#define SECOND_NS UINT64_C(1000000000)
#define MS_NS UINT64_C(1000000)
#define HOSTS_MAX 10000u
#define KEYS_MAX 100u
#define WORKERS_MAX 16u

struct scene {
	const char *name;
	unsigned hosts;
	double demand;        /* of all hosts together; 1: the limit */
	double zipf;          /* over hosts; 0: evenly */
	unsigned keys;        /* drawn evenly, of which each has its part of the limit */
	uint64_t latency_ns;  /* one way: that, and a fourth of it more on average, at random */
	uint64_t out_ns;      /* how long the backend hears nothing */
	uint64_t deadline_ns; /* 0: five times the latency, 5 ms at least */
};

/* A process that decides; a host has several. */
struct worker {
	struct world_caller caller;
	struct host *host;
	struct shmlimit_global *global;
};

static struct host {
	double between_ns; /* requests, on average */
	uint64_t next_ns, asked, admitted;
	uint64_t back_ns; /* when it first admitted after the outage; 0: not yet */
	struct worker worker[WORKERS_MAX];
} hosts[HOSTS_MAX];

static struct world_ledger ledgers[KEYS_MAX];
static const struct scene *scene;
static struct shmlimit *limiter;
static int rule;
static uint64_t rate; /* of a key */
static uint64_t begin_ns, later_ns, end_ns;
static struct count {
	uint64_t asked, admitted;
} whole, later; /* from later_ns on: when the burst is spent, and the outage over */
static uint64_t earlier_commands;

/* ---- The hosts ---- */

static void decide(struct worker *worker)
{
	struct host *host = worker->host;
	unsigned key = (unsigned)rng_below(&world.rng, scene->keys);
	char text[32];
	int len = snprintf(text, sizeof(text), "%u/%u", (unsigned)(host - hosts), key), answer;

	worker->caller.debited_ns = 0;
	answer = shmlimit_global_take(worker->global, rule, text, (size_t)len, 1, NULL);
	if (answer < 0)
		bench_fail("take", shmlimit_strerror(answer));
	if (answer != SHMLIMIT_ALLOWED)
		return;
	host->admitted++;
	whole.admitted++;
	later.admitted += virtual_now_ns >= later_ns;
	if (virtual_now_ns >= later_ns && host->back_ns == 0)
		host->back_ns = virtual_now_ns;
	world_admitted(&ledgers[key], &worker->caller);
}

/* When the host's next request comes, or came. */
static uint64_t next_request(struct host *host)
{
	uint64_t at_ns = host->next_ns;

	host->next_ns += 1 + (uint64_t)world_draw(host->between_ns);
	if (at_ns < end_ns) {
		host->asked++;
		whole.asked++;
		later.asked += at_ns >= later_ns;
	}
	return at_ns;
}

/* A worker that is free takes it, or waits for it. */
static void work(void *of)
{
	struct worker *worker = of;

	for (;;) {
		virtual_wait(next_request(worker->host));
		decide(worker);
	}
}

static void settle_in(struct host *host, unsigned workers, double share)
{
	struct shmlimit_global_options options = {
		.struct_size = sizeof(options),
		.deadline_ns = scene->latency_ns > MS_NS ? 5 * scene->latency_ns : 5 * MS_NS,
	};
	char url[32];
	int error;

	if (scene->deadline_ns != 0)
		options.deadline_ns = scene->deadline_ns;
	host->between_ns = 1e9 / (scene->demand * RATE * share);
	host->next_ns = begin_ns + (uint64_t)world_draw(host->between_ns);
	host->asked = host->admitted = host->back_ns = 0;
	/* A breaker is the backend's, by its name: each host has its own. */
	snprintf(url, sizeof(url), "redis://h%u", (unsigned)(host - hosts));
	for (unsigned i = 0; i < workers; i++) {
		struct worker *worker = &host->worker[i];

		worker->host = host;
		worker->caller.latency_ns = scene->latency_ns;
		options.arg = &worker->caller;
		error = shmlimit_global_open(limiter, url, &options, &worker->global);
		if (error != 0)
			bench_fail("global_open", shmlimit_strerror(error));
		virtual_task(work, worker);
	}
}

/* ---- What came of it ---- */

/* Jain, Chiu, Hawe: "A quantitative measure of fairness", 1984: of each host's share that was admitted. */
static double fairness(void)
{
	double sum = 0, squares = 0, n = 0;

	for (unsigned i = 0; i < scene->hosts; i++) {
		double share;

		if (hosts[i].asked == 0)
			continue;
		share = (double)hosts[i].admitted / (double)hosts[i].asked;
		sum += share;
		squares += share * share;
		n++;
	}
	return squares == 0 ? 0 : sum * sum / (n * squares);
}

static double use(const struct count *count, double seconds)
{
	return (double)count->admitted / fmin((double)count->asked, RATE * seconds);
}

static double seconds_to_end(uint64_t from_ns)
{
	return (double)(end_ns - from_ns) / 1e9;
}

/* Milliseconds from the end of the outage until the last host admitted. */
static double back_ms(void)
{
	uint64_t last_ns = later_ns;

	for (unsigned i = 0; i < scene->hosts; i++) {
		if (hosts[i].back_ns == 0)
			return INFINITY;
		last_ns = hosts[i].back_ns > last_ns ? hosts[i].back_ns : last_ns;
	}
	return (double)(last_ns - later_ns) / 1e6;
}

static void tell(void)
{
	double over = -INFINITY, late = -INFINITY, from_full, used, per, a_second, jain;
	uint64_t commands = world.commands - earlier_commands;
	char name[64], at[16];

	for (unsigned key = 0; key < scene->keys; key++) {
		over = fmax(over, world_excess(&ledgers[key], rate, rate, SECOND_NS));
		late = fmax(late, world_excess_answered(&ledgers[key], rate, rate, SECOND_NS));
	}
	from_full = use(&whole, seconds_to_end(begin_ns) + 1);
	used = use(&later, seconds_to_end(later_ns));
	per = (double)commands / (double)later.asked;
	a_second = (double)commands / seconds_to_end(later_ns);
	jain = fairness();
	snprintf(name, sizeof(name), "%s, demand %g", scene->name, scene->demand);
	snprintf(at, sizeof(at), "%u", scene->hosts);
	printf("%-34s %6s %8.0f %8.0f  %8.4f %7.4f  %9.6f %8.0f  %7.4f", name, at, over, late, from_full, used, per,
	       a_second, jain);
	bench_row(name, at, "over-admission", over);
	bench_row(name, at, "over-admission, answered", late);
	bench_row(name, at, "use from full", from_full);
	bench_row(name, at, "use", used);
	bench_row(name, at, "commands / decision", per);
	bench_row(name, at, "commands/s", a_second);
	bench_row(name, at, "fairness", jain);
	if (scene->out_ns != 0) {
		printf("  %.1f, %.0f ms", (double)world.unheard / scene->hosts, back_ms());
		bench_row(name, at, "unheard / host", (double)world.unheard / scene->hosts);
		bench_row(name, at, "back, ms", back_ms());
	}
	printf("\n");
}

/* Slots that were lost would make it another simulation. */
static void check_slots(void)
{
	struct shmlimit_counters counters = { .struct_size = sizeof(counters) };

	shmlimit_counters(limiter, SHMLIMIT_ALL_RULES, &counters);
	if (counters.evictions + counters.no_slot != 0)
		bench_fail("slots", "too few");
}

static void set_rule(void)
{
	struct shmlimit_rule params = {
		.struct_size = sizeof(params),
		.algorithm = SHMLIMIT_LEASE,
		.capacity = rate,
		.refill = rate,
		.period_ns = SECOND_NS,
	};

	shmlimit_reset(limiter, SHMLIMIT_ALL_RULES, NULL, 0);
	rule = shmlimit_rule_set(limiter, "shared", &params);
	if (rule < 0)
		bench_fail("rule_set", shmlimit_strerror(rule));
}

static void count_commands(void *of)
{
	*(uint64_t *)of = world.commands;
}

/* Half of the time before the outage, or what would be its place, and half after. */
static void play(const struct scene *s)
{
	unsigned workers = s->hosts > 1000 ? 1 : s->hosts > 32 ? 2 : WORKERS_MAX;
	uint64_t half_ns = bench_quick ? 20 * MS_NS : 1300 * MS_NS;
	double all = 0;

	scene = s;
	rate = RATE / s->keys;
	world = (struct world){ .rng.state = 1 };
	whole = later = (struct count){ 0, 0 };
	begin_ns = virtual_now_ns += 3600 * SECOND_NS; /* nothing is left of the last one */
	world.deaf_from_ns = begin_ns + half_ns;
	world.deaf_until_ns = later_ns = world.deaf_from_ns + (bench_quick ? s->out_ns / 100 : s->out_ns);
	end_ns = later_ns + half_ns;
	set_rule();
	lua_begin(script_text);
	virtual_begin(s->hosts * workers);
	for (unsigned key = 0; key < s->keys; key++)
		world_ledger_clear(&ledgers[key]);
	for (unsigned i = 0; i < s->hosts; i++)
		all += pow(i + 1, -s->zipf);
	for (unsigned i = 0; i < s->hosts; i++)
		settle_in(&hosts[i], workers, pow(i + 1, -s->zipf) / all);
	virtual_call(later_ns, count_commands, &earlier_commands);
	virtual_run(end_ns);
	for (unsigned i = 0; i < s->hosts; i++)
		while (hosts[i].next_ns < end_ns)
			next_request(&hosts[i]); /* no worker was free for it */
	tell();
	check_slots();
	for (unsigned i = 0; i < s->hosts; i++)
		for (unsigned j = 0; j < workers; j++)
			shmlimit_global_close(hosts[i].worker[j].global);
	virtual_end();
	lua_end();
}

int main(int argc, char **argv)
{
	static const struct scene special[] = {
		{ "Zipf", 4, 2, 0.99, 1, MS_NS, 0, 0 },
		{ "Zipf", 100, 2, 0.99, 1, MS_NS, 0, 0 },
		{ "Zipf", 1000, 2, 0.99, 1, MS_NS, 0, 0 },
		{ "Zipf", 10000, 2, 0.99, 1, MS_NS, 0, 0 },
		{ "100 keys", 4, 2, 0, 100, MS_NS, 0, 0 },
		{ "100 keys", 32, 2, 0, 100, MS_NS, 0, 0 },
		{ "0.1 ms", 4, 2, 0, 1, MS_NS / 10, 0, 0 },
		{ "10 ms", 4, 2, 0, 1, 10 * MS_NS, 0, 0 },
		{ "50 ms", 4, 2, 0, 1, 50 * MS_NS, 0, 0 },
		{ "50 ms, deadline 0.5 s", 4, 2, 0, 1, 50 * MS_NS, 0, 500 * MS_NS },
		{ "0.1 ms", 1000, 2, 0, 1, MS_NS / 10, 0, 0 },
		{ "10 ms", 1000, 2, 0, 1, 10 * MS_NS, 0, 0 },
		{ "50 ms", 1000, 2, 0, 1, 50 * MS_NS, 0, 0 },
		{ "out for 0.1 s", 32, 0.8, 0, 1, MS_NS, SECOND_NS / 10, 0 },
		{ "out for 1 s", 32, 0.8, 0, 1, MS_NS, SECOND_NS, 0 },
		{ "out for 10 s", 32, 0.8, 0, 1, MS_NS, 10 * SECOND_NS, 0 },
		{ "out for 1 s", 1000, 0.8, 0, 1, MS_NS, SECOND_NS, 0 },
	};
	static const unsigned sizes[] = { 1, 4, 32, 100, 1000, 10000 };
	static const double demands[] = { 0.5, 1, 2, 10 };
	struct shmlimit_options options = { .struct_size = sizeof(options), .slots = 1 << 20 };

	virtual_now_ns = 1000000 * SECOND_NS;
	bench_begin(argc, argv, "global_sim");
	limiter = bench_create(&options);
	printf("%-34s %6s %8s %8s  %8s %7s  %9s %8s  %7s  %s\n", "", "hosts", "over", "answered", "use/full", "use",
	       "/decision", "a second", "Jain", "unheard / host, back");
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		for (size_t j = 0; j < sizeof(demands) / sizeof(demands[0]); j++)
			play(&(struct scene){ "even", sizes[i], demands[j], 0, 1, MS_NS, 0, 0 });
	for (size_t i = 0; i < sizeof(special) / sizeof(special[0]); i++)
		play(&special[i]);
	return bench_end();
}
