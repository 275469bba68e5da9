/*
 * hosts: how exact are small limits that several hosts share? The requests of each key come to a
 * host at random. What they are answered is compared with what one bucket would answer:
 *
 *	usable  requests admitted, of those that one bucket would admit
 *	wrong   requests denied while the limit had a token, by what was admitted. A token that is
 *	        denied for longer than leases explain is lost: `usable` lacks it, and no later denial counts
 *	over    requests admitted although the limit had no token
 *	longest time that a key was denied, while requests went on and the limit had a token, by what
 *	        was admitted: no longer than script.h proves
 *
 * The library and the script are as they are; the clock, the pauses and chance are made up, and so
 * is the agent of each host: it asks as the real one does, and the answer takes its time. A request
 * is decided before the next one comes.
 *
 *	hosts [--quick] [--rows FILE]     fails if a figure is not what is demanded
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "via_agent.h"
#include "kit/bench.h"
#include "kit/lua.h"
#include "kit/rng.h"

#define SECOND_NS UINT64_C(1000000000)
#define LATENCY_NS UINT64_C(100000) /* one way */
#define HOSTS_MAX 8u
#define KEYS 10u
#define HAS_TOKEN 1.0001 /* what rounding to microseconds makes of a token */

#define USABLE_MIN 0.99
#define WRONG_MAX 0.01
#define COMMANDS_MAX 0.3 /* for each request of a key that is asked for once a second, far from its limit, by 4 hosts */

/*
 * A limit that is full again in less than this many seconds is not held to these figures: what is
 * leased is not refilled while the lease lasts, which is a part of that time.
 */
#define FULL_MIN_S 60

struct limit {
	const char *name;
	uint64_t capacity, count, period_s;
};

static const struct limit limits[] = {
	{ "5/min", 5, 5, 60 },       { "60/min", 60, 60, 60 },
	{ "100/min", 100, 100, 60 }, { "100/h", 100, 100, 3600 },
	{ "10/s", 10, 10, 1 },       { "5/s burst 50", 50, 5, 1 },
	{ "600/min", 600, 600, 60 }, { "50/s burst 1k", 1000, 50, 1 },
};

/* Requests of a key: at random, or in bursts, before each of which the limit is full again. */
static const struct pattern {
	const char *name;
	double demand; /* of the rate; of a burst: of the capacity */
	double gap_s;  /* between two requests of a burst; 0: no bursts */
} patterns[] = {
	{ "tenth", 0.1, 0 },           { "half", 0.5, 0 }, { "twice", 2, 0 }, { "bursts", 1.5, 0.02 },
	{ "fast bursts", 1.5, 0.001 },
};

struct request {
	uint64_t at_ns;
	unsigned key;
};

/* One bucket, which holds any part of a token. */
struct bucket {
	double tokens;
	uint64_t at_ns, denied_ns; /* denied_ns: since then it has had a token, and was denied; 0: not */
};

static struct rng rng;
static uint64_t now_ns = 1000 * SECOND_NS, commands;
static struct shmlimit *segments[HOSTS_MAX];
static struct shmlimit_global *handles[HOSTS_MAX];

/* ---- The world ---- */

int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_nanosleep(clockid_t clock, int flags, const struct timespec *pause, struct timespec *rest);
ssize_t __wrap_getrandom(void *bytes, size_t n, unsigned flags);
int __wrap_via_agent_exists(const struct shmlimit_global *g);
void __wrap_via_agent(struct shmlimit_global *g, struct lease_request *requests, size_t n, uint64_t until_ns);

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
	(void)clock;
	now->tv_sec = (time_t)(now_ns / SECOND_NS);
	now->tv_nsec = (long)(now_ns % SECOND_NS);
	return 0;
}

int __wrap_clock_nanosleep(clockid_t clock, int flags, const struct timespec *pause, struct timespec *rest)
{
	(void)clock;
	(void)flags;
	(void)rest;
	now_ns += (uint64_t)pause->tv_sec * SECOND_NS + (uint64_t)pause->tv_nsec;
	return 0;
}

ssize_t __wrap_getrandom(void *bytes, size_t n, unsigned flags)
{
	(void)flags;
	for (size_t i = 0; i < n; i++)
		((unsigned char *)bytes)[i] = (unsigned char)rng_draw(&rng);
	return (ssize_t)n;
}

/* The backend is asked at whole microseconds, as its clock has them. */
static void ask(struct backend_question *q)
{
	const struct script_question asked = { q->need, q->want, q->most };
	char text[SCRIPT_ARGUMENTS_MAX][SCRIPT_ARGUMENT_MAX], *args[SCRIPT_ARGUMENTS_MAX];
	int n = script_arguments(q->params, &asked, 0, text);
	int64_t reply[5];

	now_ns = (now_ns + LATENCY_NS + 999) / 1000 * 1000;
	for (int i = 0; i < n; i++)
		args[i] = text[i];
	lua_ask(now_ns / 1000, q->key, q->key_len, args, n, reply, 5);
	commands++;
	q->failure.kind = ERROR_NONE;
	q->leased = (uint64_t)reply[0];
	q->retry_us = reply[1] < 0 ? UINT64_MAX : (uint64_t)reply[1];
	q->left = (uint64_t)reply[2];
	q->full_us = (uint64_t)reply[3];
	q->lasts_us = (uint64_t)reply[4];
	now_ns += LATENCY_NS;
}

int __wrap_via_agent_exists(const struct shmlimit_global *g)
{
	(void)g;
	return 1;
}

void __wrap_via_agent(struct shmlimit_global *g, struct lease_request *lr, size_t n, uint64_t until_ns)
{
	struct backend_question q;
	uint64_t sent_ns = shmlimit_now(g->limiter), asked_ns = monotonic_now_ns();

	(void)until_ns;
	if (n != 1 || lr->answer != SHMLIMIT_LEASE_ASK || lease_request_prepare(g, lr, &q) != LEASE_REQUEST_READY)
		bench_fail("a question", "not one");
	ask(&q);
	if (lease_request_conclude(g, lr, &q, sent_ns, asked_ns) != LEASE_REQUEST_DECIDED)
		bench_fail("a question", "not decided");
}

static int hosts_begin(const struct limit *limit, unsigned hosts)
{
	struct shmlimit_options options = { .struct_size = sizeof(options), .slots = 1024, .rules = 8 };
	struct shmlimit_global_options o = { .struct_size = sizeof(o) };
	struct shmlimit_rule rule = {
		.struct_size = sizeof(rule),
		.algorithm = SHMLIMIT_LEASE,
		.capacity = limit->capacity,
		.refill = limit->count,
		.period_ns = limit->period_s * SECOND_NS,
	};
	int id = -1, error;

	lua_begin(script_text);
	for (unsigned h = 0; h < hosts; h++) {
		segments[h] = bench_create(&options);
		id = shmlimit_rule_set(segments[h], "r", &rule);
		if (id < 0)
			bench_fail("rule_set", shmlimit_strerror(id));
		error = shmlimit_global_open(segments[h], "redis://h", &o, &handles[h]);
		if (error != 0)
			bench_fail("global_open", shmlimit_strerror(error));
	}
	return id;
}

static void hosts_end(unsigned hosts)
{
	for (unsigned h = 0; h < hosts; h++) {
		shmlimit_global_close(handles[h]);
		shmlimit_close(segments[h]);
	}
	lua_end();
}

/* ---- The requests ---- */

static double full_s(const struct limit *limit)
{
	return (double)(limit->capacity * limit->period_s) / (double)limit->count;
}

static int by_time(const void *a, const void *b)
{
	uint64_t x = ((const struct request *)a)->at_ns, y = ((const struct request *)b)->at_ns;

	return (x > y) - (x < y);
}

/* Those of one key, from now on. Returns how many there are, up to `max`. */
static size_t draw(const struct limit *limit, const struct pattern *p, unsigned key, double seconds,
                   struct request *requests, size_t max)
{
	double rate = (double)limit->count / (double)limit->period_s;
	size_t n = 0, burst = (size_t)lround(p->demand * (double)limit->capacity);

	for (double at = rng_unit(&rng) * full_s(limit); at < seconds && n < max;) {
		if (p->gap_s == 0) {
			requests[n++] = (struct request){ now_ns + (uint64_t)(at * 1e9), key };
			at -= log(1 - rng_unit(&rng)) / (p->demand * rate);
			continue;
		}
		for (size_t i = 0; i < burst && n < max; i++)
			requests[n++] = (struct request){ now_ns + (uint64_t)((at + (double)i * p->gap_s) * 1e9), key };
		at += full_s(limit) * (1 + rng_unit(&rng)) + (double)burst * p->gap_s;
	}
	return n;
}

/* ---- What comes of them ---- */

static double refill(struct bucket *b, const struct limit *limit)
{
	double rate = (double)limit->count / (double)limit->period_s;

	b->tokens = fmin((double)limit->capacity, b->tokens + (double)(now_ns - b->at_ns) / 1e9 * rate);
	b->at_ns = now_ns;
	b->denied_ns = b->tokens < HAS_TOKEN ? 0 : b->denied_ns;
	return b->tokens;
}

static double lease_s(const struct limit *limit)
{
	return fmin(0.1, full_s(limit) / 8);
}

/* How long a key may be denied while its limit has a token: see script.h. */
static double longest_s(const struct limit *limit)
{
	double token_s = (double)limit->period_s / (double)limit->count, lease = lease_s(limit),
	       longest = fmin(20, full_s(limit) / 4);

	if (longest < 8 * lease || lease >= 32 * token_s)
		longest = lease;
	return token_s + 3 * lease + fmax(longest / 3, lease) + 4e-9 * (double)LATENCY_NS;
}

/* A request was denied. Returns how long all were, since the limit has had a token. */
static double denied_s(struct bucket *b)
{
	if (b->tokens < HAS_TOKEN)
		return 0;
	if (b->denied_ns == 0)
		b->denied_ns = now_ns;
	return (double)(now_ns - b->denied_ns) / 1e9;
}

/* A request was denied. Returns whether the limit had a token. */
static int is_wrong(struct bucket *b, const struct limit *limit, unsigned hosts)
{
	if (refill(b, limit) < HAS_TOKEN)
		return 0;
	if (b->denied_ns == 0)
		b->denied_ns = now_ns;
	if ((double)(now_ns - b->denied_ns) / 1e9 <= lease_s(limit) * (1.5 + hosts / 4.0))
		return 1;
	b->tokens--;
	b->denied_ns = 0;
	return 1;
}

struct outcome {
	double requests, exact, admitted, wrong, over, commands, longest_s;
};

static struct outcome play(const struct limit *limit, const struct pattern *p, unsigned hosts)
{
	double seconds = full_s(limit) * (bench_quick ? 2 : 10);
	size_t each = (size_t)(4 * p->demand * seconds / full_s(limit) * (double)limit->capacity) + 100, n = 0;
	struct request *requests = malloc(KEYS * each * sizeof(*requests));
	struct bucket one[KEYS], really[KEYS], owed[KEYS];
	struct outcome o = { 0 };
	int rule = hosts_begin(limit, hosts);

	if (requests == NULL)
		bench_fail("requests", "no memory");
	for (unsigned key = 0; key < KEYS; key++) {
		one[key] = really[key] = owed[key] = (struct bucket){ (double)limit->capacity, now_ns, 0 };
		n += draw(limit, p, key, seconds, requests + n, each);
	}
	qsort(requests, n, sizeof(*requests), by_time);
	commands = 0;
	for (size_t i = 0; i < n; i++) {
		unsigned key = requests[i].key, host = (unsigned)rng_below(&rng, hosts);
		char text[16];
		int length = snprintf(text, sizeof(text), "%u", key), answer;

		now_ns = requests[i].at_ns > now_ns ? requests[i].at_ns : now_ns;
		answer = shmlimit_global_take(handles[host], rule, text, (size_t)length, 1, NULL);
		if (answer < 0)
			bench_fail("take", shmlimit_strerror(answer));
		if (refill(&one[key], limit) >= 1) {
			one[key].tokens--;
			o.exact++;
		}
		refill(&really[key], limit);
		if (answer == SHMLIMIT_ALLOWED) {
			o.admitted++;
			o.over += really[key].tokens < 0.99;
			really[key].tokens--;
			really[key].denied_ns = 0;
			refill(&owed[key], limit);
			owed[key].tokens = fmax(0, owed[key].tokens - 1);
		} else {
			o.wrong += is_wrong(&owed[key], limit, hosts);
			o.longest_s = fmax(o.longest_s, denied_s(&really[key]));
		}
	}
	o.requests = (double)n;
	o.commands = (double)commands;
	hosts_end(hosts);
	free(requests);
	return o;
}

int main(int argc, char **argv)
{
	double usable_least = 1, wrong_most = 0, over = 0, slow = 0, part_most = 0;

	bench_begin(argc, argv, "hosts");
	rng.state = 7919;
	printf("%-14s %-12s %5s %9s %9s %9s %6s %10s %9s\n", "limit", "requests", "hosts", "number", "usable", "wrong",
	       "over", "commands", "longest");
	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
		for (size_t j = 0; j < sizeof(patterns) / sizeof(patterns[0]); j++)
			for (unsigned hosts = 1; hosts <= HOSTS_MAX; hosts *= 2) {
				struct outcome o = play(&limits[i], &patterns[j], hosts);
				double usable = o.admitted / o.exact, wrong = o.wrong / o.requests;
				char subject[64], at[16];

				printf("%-14s %-12s %5u %9.0f %9.4f %9.4f %6.0f %10.3f %9.3f\n", limits[i].name,
				       patterns[j].name, hosts, o.requests, usable, wrong, o.over,
				       o.commands / o.requests, o.longest_s);
				snprintf(subject, sizeof(subject), "%s, %s", limits[i].name, patterns[j].name);
				snprintf(at, sizeof(at), "%u", hosts);
				bench_row(subject, at, "usable", usable);
				bench_row(subject, at, "wrong", wrong);
				bench_row(subject, at, "over", o.over);
				bench_row(subject, at, "commands / request", o.commands / o.requests);
				bench_row(subject, at, "longest, s", o.longest_s);
				over += o.over;
				part_most = fmax(part_most, o.longest_s / longest_s(&limits[i]));
				if (limits[i].capacity == 600 && patterns[j].demand == 0.1 && hosts == 4)
					slow = o.commands / o.requests;
				if (full_s(&limits[i]) < FULL_MIN_S)
					continue;
				usable_least = fmin(usable_least, usable);
				wrong_most = fmax(wrong_most, wrong);
			}
	printf("least usable %.4f (demanded: %.2f), most wrong %.4f (demanded: %.2f), over %.0f, commands %.3f (demanded: %.1f), "
	       "longest %.2f of what is proved\n",
	       usable_least, USABLE_MIN, wrong_most, WRONG_MAX, over, slow, COMMANDS_MAX, part_most);
	if (over != 0 || part_most > 1 ||
	    (!bench_quick && (usable_least < USABLE_MIN || wrong_most > WRONG_MAX || slow > COMMANDS_MAX)))
		bench_fail("hosts", "a figure is not what is demanded");
	return bench_end();
}
