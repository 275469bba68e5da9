/*
 * global_sim: one funnel, up to 10,000 hosts, latencies and outages, on a clock that
 * is made up: is too much ever admitted, how much of the limit is used, what is the
 * backend asked, and do all hosts get their part?
 *
 * What decides is the library as it is: shmlimit_global_take() with all that is
 * below it, and the text of the script, in Lua. Of its world four functions are
 * others here (the linker's --wrap): the clock, the nap, chance, and the question to
 * the backend, which travels for some time each way. All hosts' slots are in one segment: a
 * slot knows nothing of the others. See README.md for the figures.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "handle.h"
#include "kit/bench.h"
#include "kit/rng.h"
#include "kit/lua.h"
#include "kit/virtual.h"

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
	struct host *host;
	struct shmlimit_global *global;
	uint64_t debited_ns; /* when the backend debited what this take asked for; 0: it did not */
};

static struct host {
	double between_ns; /* requests, on average */
	uint64_t next_ns, asked, admitted;
	uint64_t back_ns; /* when it first admitted after the outage; 0: not yet */
	struct worker worker[WORKERS_MAX];
} hosts[HOSTS_MAX];

/* When tokens of a key were admitted: here, in order; and within a call, nearly so. */
static struct times {
	uint64_t *ns;
	size_t n, max;
} here[KEYS_MAX], there[KEYS_MAX], answered[KEYS_MAX];

static const struct scene *scene;
static struct shmlimit *limiter;
static struct rng rng;
static int rule;
static uint64_t rate; /* of a key */
static uint64_t begin_ns, out_from_ns, later_ns, end_ns;
static struct count {
	uint64_t asked, admitted, commands;
} whole, later;       /* from later_ns on: when the burst is spent, and the outage over */
static uint64_t deaf; /* commands that the backend did not get */

/* ---- The world ---- */

int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_nanosleep(clockid_t clock, int flags, const struct timespec *pause, struct timespec *rest);
ssize_t __wrap_getrandom(void *bytes, size_t n, unsigned flags);
void __wrap_cluster_lease(struct cluster *cluster, struct backend_question *questions, size_t n, uint64_t until_ns);

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
	(void)clock;
	now->tv_sec = (time_t)(virtual_now_ns / SECOND_NS);
	now->tv_nsec = (long)(virtual_now_ns % SECOND_NS);
	return 0;
}

int __wrap_clock_nanosleep(clockid_t clock, int flags, const struct timespec *pause, struct timespec *rest)
{
	(void)clock;
	(void)flags;
	(void)rest;
	virtual_wait(virtual_now_ns + (uint64_t)pause->tv_sec * SECOND_NS + (uint64_t)pause->tv_nsec);
	return 0;
}

ssize_t __wrap_getrandom(void *bytes, size_t n, unsigned flags)
{
	(void)flags;
	for (size_t i = 0; i < n; i++)
		((unsigned char *)bytes)[i] = (unsigned char)rng_draw(&rng);
	return (ssize_t)n;
}

static double draw_exponential(double mean)
{
	return -mean * log(1 - rng_unit(&rng));
}

static uint64_t travel_ns(void)
{
	return scene->latency_ns + (uint64_t)draw_exponential((double)scene->latency_ns / 4);
}

static int backend_hears(uint64_t at_ns)
{
	return at_ns < out_from_ns || at_ns >= later_ns;
}

/* The key's last part is its own; what is before tells the hosts apart. */
static void perform(struct backend_question *q)
{
	const char *key = (const char *)memrchr(q->key, '/', q->key_len) + 1;
	const struct script_question asked = { q->need, q->want, q->most };
	char text[SCRIPT_ARGUMENTS_MAX][SCRIPT_ARGUMENT_MAX], *args[SCRIPT_ARGUMENTS_MAX];
	int n = script_arguments(q->params, &asked, 0, text);
	int64_t reply[5];

	for (int i = 0; i < n; i++)
		args[i] = text[i];
	lua_ask(virtual_now_ns / 1000, key, q->key_len - (size_t)(key - (const char *)q->key), args, n, reply, 5);
	q->failure.kind = ERROR_NONE;
	q->leased = (uint64_t)reply[0];
	q->retry_us = reply[1] < 0 ? UINT64_MAX : (uint64_t)reply[1];
	q->left = (uint64_t)reply[2];
	q->full_us = (uint64_t)reply[3];
	q->lasts_us = (uint64_t)reply[4];
}

/* A question that arrives when no worker waits for the answer any more. */
struct late {
	struct backend_question question;
	struct script_params params;
	char key[64];
};

static void perform_late(void *of)
{
	struct late *late = of;

	perform(&late->question);
	free(late);
}

static void post_late(const struct backend_question *q, uint64_t at_ns)
{
	struct late *late = malloc(sizeof(*late));

	if (late == NULL)
		bench_fail("a question", "no memory");
	late->question = *q;
	late->params = *q->params;
	late->question.params = &late->params;
	late->question.key = memcpy(late->key, q->key, q->key_len);
	virtual_call(at_ns, perform_late, late);
}

static struct worker *worker_of(struct cluster *cluster)
{
	struct shmlimit_global *g = (void *)((char *)cluster - offsetof(struct shmlimit_global, cluster));

	return g->options.arg;
}

/* Connections are there. A backend takes no time itself, and is asked at whole microseconds, as its clock has them. */
void __wrap_cluster_lease(struct cluster *cluster, struct backend_question *q, size_t n, uint64_t until_ns)
{
	struct worker *worker = worker_of(cluster);
	uint64_t there_ns = (virtual_now_ns + travel_ns() + 999) / 1000 * 1000, back_ns = there_ns + travel_ns();

	if (n != 1)
		bench_fail("a question", "not one");
	q->failure = (struct backend_error){ .kind = ERROR_LATE };
	whole.commands++;
	later.commands += virtual_now_ns >= later_ns;
	if (!backend_hears(there_ns)) {
		deaf++;
		virtual_wait(until_ns);
		return;
	}
	if (there_ns >= until_ns) {
		post_late(q, there_ns);
		virtual_wait(until_ns);
		return;
	}
	virtual_wait(there_ns);
	perform(q);
	if (q->leased != 0)
		worker->debited_ns = there_ns;
	virtual_wait(back_ns < until_ns ? back_ns : until_ns);
	if (back_ns >= until_ns)
		q->failure.kind = ERROR_LATE;
}

/* ---- The hosts ---- */

static void keep(struct times *times, uint64_t ns)
{
	if (times->n == times->max) {
		times->max = 2 * times->max + 1024;
		times->ns = realloc(times->ns, times->max * sizeof(*times->ns));
		if (times->ns == NULL)
			bench_fail("times", "no memory");
	}
	times->ns[times->n++] = ns;
}

static void decide(struct worker *worker)
{
	struct host *host = worker->host;
	unsigned key = (unsigned)rng_below(&rng, scene->keys);
	char text[32];
	int len = snprintf(text, sizeof(text), "%u/%u", (unsigned)(host - hosts), key), answer;

	worker->debited_ns = 0;
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
	if (worker->debited_ns != 0)
		keep(&there[key], worker->debited_ns);
	else
		keep(&here[key], virtual_now_ns);
	keep(&answered[key], virtual_now_ns);
}

/* When the host's next request comes, or came. */
static uint64_t next_request(struct host *host)
{
	uint64_t at_ns = host->next_ns;

	host->next_ns += 1 + (uint64_t)draw_exponential(host->between_ns);
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
	host->next_ns = begin_ns + (uint64_t)draw_exponential(host->between_ns);
	host->asked = host->admitted = host->back_ns = 0;
	/* A breaker is the backend's, by its name: each host has its own. */
	snprintf(url, sizeof(url), "redis://h%u", (unsigned)(host - hosts));
	for (unsigned i = 0; i < workers; i++) {
		struct worker *worker = &host->worker[i];

		worker->host = host;
		options.arg = worker;
		error = shmlimit_global_open(limiter, url, &options, &worker->global);
		if (error != 0)
			bench_fail("global_open", shmlimit_strerror(error));
		virtual_task(work, worker);
	}
}

/* ---- What came of it ---- */

static int by_time(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/*
 * The most by which any stretch of time, from one admission to another, had more
 * than capacity + rate * time: tokens * period - count * time of the stretch is that of its end
 * less that of its begin, of which the least so far is kept.
 */
struct excess {
	int64_t admitted, least, most;
};

static void excess_add(struct excess *e, uint64_t at_ns)
{
	int64_t level = e->admitted * (int64_t)SECOND_NS - (int64_t)(rate * (at_ns - begin_ns));

	e->least = e->admitted == 0 || level < e->least ? level : e->least;
	e->admitted++;
	level += (int64_t)SECOND_NS - e->least - (int64_t)(rate * SECOND_NS);
	e->most = e->admitted == 1 || level > e->most ? level : e->most;
}

/* Of all keys. Both lists are in order. */
static double excess_of(const struct times *a, const struct times *b)
{
	int64_t most = INT64_MIN;

	for (unsigned key = 0; key < scene->keys; key++) {
		struct excess e = { 0, 0, INT64_MIN };
		size_t i = 0, j = 0, m = b != NULL ? b[key].n : 0;

		while (i < a[key].n || j < m)
			if (j == m || (i < a[key].n && a[key].ns[i] < b[key].ns[j]))
				excess_add(&e, a[key].ns[i++]);
			else
				excess_add(&e, b[key].ns[j++]);
		most = e.most > most ? e.most : most;
	}
	return (double)most / (double)SECOND_NS;
}

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
	double over, late, from_full, used, per, a_second, jain;
	char name[64], at[16];

	for (unsigned key = 0; key < scene->keys; key++)
		qsort(there[key].ns, there[key].n, sizeof(*there[key].ns), by_time);
	over = excess_of(here, there);
	late = excess_of(answered, NULL);
	from_full = use(&whole, seconds_to_end(begin_ns) + 1);
	used = use(&later, seconds_to_end(later_ns));
	per = (double)later.commands / (double)later.asked;
	a_second = (double)later.commands / seconds_to_end(later_ns);
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
		printf("  %.1f, %.0f ms", (double)deaf / scene->hosts, back_ms());
		bench_row(name, at, "unheard / host", (double)deaf / scene->hosts);
		bench_row(name, at, "back, ms", back_ms());
	}
	printf("\n");
}

/* Slots that were lost would make it another simulation. */
static void check_slots(void)
{
	struct shmlimit_counters counters = { .struct_size = sizeof(counters) };

	shmlimit_counters(limiter, -1, &counters);
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

	shmlimit_reset(limiter, -1, NULL, 0);
	rule = shmlimit_rule_set(limiter, "shared", &params);
	if (rule < 0)
		bench_fail("rule_set", shmlimit_strerror(rule));
}

/* Half of the time before the outage, or what would be its place, and half after. */
static void play(const struct scene *s)
{
	unsigned workers = s->hosts > 1000 ? 1 : s->hosts > 32 ? 2 : WORKERS_MAX;
	uint64_t half_ns = bench_quick ? 20 * MS_NS : 1300 * MS_NS;
	double all = 0;

	scene = s;
	rate = RATE / s->keys;
	rng.state = 1;
	whole = later = (struct count){ 0, 0, 0 };
	deaf = 0;
	begin_ns = virtual_now_ns += 3600 * SECOND_NS; /* nothing is left of the last one */
	out_from_ns = begin_ns + half_ns;
	later_ns = out_from_ns + (bench_quick ? s->out_ns / 100 : s->out_ns);
	end_ns = later_ns + half_ns;
	set_rule();
	lua_begin(script_text);
	virtual_begin(s->hosts * workers);
	for (unsigned key = 0; key < s->keys; key++)
		here[key].n = there[key].n = answered[key].n = 0;
	for (unsigned i = 0; i < s->hosts; i++)
		all += pow(i + 1, -s->zipf);
	for (unsigned i = 0; i < s->hosts; i++)
		settle_in(&hosts[i], workers, pow(i + 1, -s->zipf) / all);
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
