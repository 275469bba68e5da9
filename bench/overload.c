/*
 * overload: tenants that share the places of a service, in simulated time. Requests come at random
 * (Poisson), each holds a place for a random time (exponential, 1 s in the mean), and one that is
 * denied is gone. One tenant asks for ten times all places; others for a tenth of them each.
 *
 *	served   requests of the small tenants admitted / their requests
 *	used     places held, in the mean / places
 *	alone    the same where the greedy tenant is the only one
 *	off      most that a greedy tenant's places differ from share * C / (1 + share * k), of k that
 *	         ask for all of them and never leave
 *
 * The limits are the library's; nothing waits, so that the same is printed each time.
 *
 *	overload [--quick] [--rows FILE]     fails if a figure is not what is demanded;
 *	                                     --quick: the total alone, and the share of that
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kit/bench.h"
#include "kit/rng.h"

#define PLACES 64u
#define SMALL 4u
#define DAY UINT64_C(86400000000000)
#define DEMANDED (4 * SHMLIMIT_SHARE_ONE) /* the share of which this is demanded: */
#define SERVED_MIN 0.99
#define USED_MIN 0.89
#define ALONE_MIN 0.81
#define OFF_MAX 1.0

/* How the places are limited. */
struct policy {
	const char *name;
	uint64_t each;  /* places of a tenant; 0: no such limit */
	uint32_t share; /* of a tenant, in thousandths; 0: none */
	int is_quick;
};

static const struct policy policies[] = {
	{ "total alone", 0, 0, 1 },
	{ "a fifth each", PLACES / (SMALL + 1) + 1, 0, 0 },
	{ "share 1", 0, 1 * SHMLIMIT_SHARE_ONE, 0 },
	{ "share 2", 0, 2 * SHMLIMIT_SHARE_ONE, 0 },
	{ "share 4", 0, 4 * SHMLIMIT_SHARE_ONE, 1 },
	{ "share 8", 0, 8 * SHMLIMIT_SHARE_ONE, 0 },
	{ "share 16", 0, 16 * SHMLIMIT_SHARE_ONE, 0 },
};

/* A request that holds places. */
struct visit {
	double ends;
	uint32_t tenant;
	struct shmlimit_place place[2];
};

static struct shmlimit *l;
static int total_rule, tenant_rule;
static struct visit visits[PLACES];
static unsigned held;

static void fill(struct shmlimit_request q[2], struct visit *v, const struct policy *p,
                 const struct shmlimit_limit *each)
{
	q[0] = (struct shmlimit_request){
		.rule = total_rule, .key = "all", .key_len = 3, .cost = 1, .place = &v->place[0]
	};
	q[1] = (struct shmlimit_request){ .rule = tenant_rule,
		                          .share = p->share,
		                          .key = &v->tenant,
		                          .key_len = sizeof(v->tenant),
		                          .cost = 1,
		                          .limit = p->each != 0 ? each : NULL,
		                          .place = &v->place[1] };
}

static int enter(const struct policy *p, uint32_t tenant, double ends)
{
	struct shmlimit_limit each = { .struct_size = sizeof(each),
		                       .flags = SHMLIMIT_LIMIT_PLACES,
		                       .capacity = p->each };
	struct visit v = { .ends = ends, .tenant = tenant };
	struct shmlimit_request q[2];
	int answer;

	v.place[0].struct_size = v.place[1].struct_size = sizeof(v.place[0]);
	fill(q, &v, p, &each);
	answer = shmlimit_take_all(l, q, 2, NULL, NULL);
	if (answer == SHMLIMIT_ALLOWED && held == PLACES)
		bench_fail("total", "more are admitted than there are places");
	if (answer < 0)
		bench_fail("take_all", shmlimit_strerror(answer));
	if (answer == SHMLIMIT_ALLOWED)
		visits[held++] = v;
	return answer == SHMLIMIT_ALLOWED;
}

static void leave(unsigned i)
{
	const struct visit *v = &visits[i];

	bench_expect(shmlimit_leave(l, tenant_rule, &v->tenant, sizeof(v->tenant), &v->place[1]), 0);
	bench_expect(shmlimit_leave(l, total_rule, "all", 3, &v->place[0]), 0);
	visits[i] = visits[--held];
}

static double exponential(struct rng *rng, double mean)
{
	return -mean * log(1 - rng_unit(rng));
}

struct outcome {
	double asked, served; /* of the small tenants */
	double used;
};

/* Tenant 0 asks for ten times all places, `small` others for a tenth each. */
static struct outcome play(const struct policy *p, unsigned small, double seconds)
{
	const double rate[2] = { 10.0 * PLACES, 0.1 * PLACES };
	double now = 0, total = rate[0] + small * rate[1], used = 0;
	struct outcome o = { 0 };
	struct rng rng = { 1 };

	shmlimit_reset(l, SHMLIMIT_ALL_RULES, NULL, 0);
	held = 0;
	while (now < seconds) {
		double next = now + exponential(&rng, 1 / total), which, lasts;
		uint32_t tenant;

		/* Those that end before it, one after the other. */
		for (;;) {
			unsigned first = held;

			for (unsigned i = 0; i < held; i++)
				if (visits[i].ends <= next && (first == held || visits[i].ends < visits[first].ends))
					first = i;
			if (first == held)
				break;
			used += held * (visits[first].ends - now);
			now = visits[first].ends;
			leave(first);
		}
		used += held * (next - now);
		now = next;
		which = rng_unit(&rng) * total;
		tenant = which < rate[0] ? 0 : 1 + (uint32_t)((which - rate[0]) / rate[1]);
		if (tenant > small)
			tenant = small;
		lasts = exponential(&rng, 1);
		if (tenant == 0) {
			(void)enter(p, 0, now + lasts);
			continue;
		}
		o.asked++;
		o.served += enter(p, tenant, now + lasts);
	}
	while (held > 0)
		leave(0);
	o.used = used / now / PLACES;
	return o;
}

/* k tenants ask in turn until none gets more. Returns the most that one's places are off. */
static double greedy(const struct policy *p, unsigned k)
{
	double share = (double)p->share / SHMLIMIT_SHARE_ONE, each = share * PLACES / (1 + share * k), off = 0;
	unsigned before, has[PLACES] = { 0 };

	held = 0;
	shmlimit_reset(l, SHMLIMIT_ALL_RULES, NULL, 0);
	do {
		before = held;
		for (uint32_t i = 0; i < k; i++)
			has[i] += (unsigned)enter(p, i, 0);
	} while (held > before);
	for (unsigned i = 0; i < k; i++)
		off = fmax(off, fabs(has[i] - each));
	while (held > 0)
		leave(0);
	return off;
}

static int set(const char *name)
{
	const struct shmlimit_rule rule = {
		.struct_size = sizeof(rule), .algorithm = SHMLIMIT_HOLD, .capacity = PLACES, .period_ns = DAY
	};
	int id = shmlimit_rule_set(l, name, &rule);

	if (id < 0)
		bench_fail(name, shmlimit_strerror(id));
	return id;
}

int main(int argc, char **argv)
{
	const struct shmlimit_options options = { .struct_size = sizeof(options), .slots = 1024 };
	double seconds;
	int wrong = 0;

	bench_begin(argc, argv, "overload");
	seconds = bench_quick ? 1000 : 3000;
	l = bench_create(&options);
	total_rule = set("total");
	tenant_rule = set("tenant");
	printf("%-14s %8s %8s %8s %8s\n", "64 places", "served", "used", "alone", "off");
	for (size_t i = 0; i < sizeof(policies) / sizeof(policies[0]); i++) {
		const struct policy *p = &policies[i];
		struct outcome all, alone;
		double served, off = 0;

		if (bench_quick && !p->is_quick)
			continue;
		all = play(p, SMALL, seconds);
		alone = play(p, 0, seconds);
		served = all.served / all.asked;

		for (unsigned k = 1; p->share != 0 && k <= 8; k++)
			off = fmax(off, greedy(p, k));
		printf("%-14s %8.4f %8.4f %8.4f %8.2f\n", p->name, served, all.used, alone.used, off);
		bench_row(p->name, "small tenants", "served", served);
		bench_row(p->name, "all", "used", all.used);
		bench_row(p->name, "one tenant", "alone", alone.used);
		bench_row(p->name, "greedy tenants", "off", off);
		wrong += off > OFF_MAX;
		if (p->share == DEMANDED)
			wrong += served < SERVED_MIN || all.used < USED_MIN || alone.used < ALONE_MIN;
	}
	shmlimit_close(l);
	if (wrong != 0)
		bench_fail("overload", "a figure is not what is demanded");
	return bench_end();
}
