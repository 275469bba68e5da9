/*
 * refund: hosts that lease from one backend, spend and give back, on a clock of the test's own. Over all of them no
 * stretch of time sees more than capacity + rate * (time + lease) admitted, less what refunds restored in it: a token that is
 * given back may be spent a lease after it was debited.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "server.h"

#include "policy.h"

#define HOSTS 3
#define STEPS 4000
#define DAY_US UINT64_C(1790000000000000)
#define MS UINT64_C(1000000)

static struct server server;
static redisContext *backend;
static struct shmlimit *l;

/* A host is a key of its own here: its slot is all that a host has. */
static const char *const host[HOSTS] = { "a", "b", "c" };

struct net {
	__int128 best, most; /* in parts of a token, 1 / period_ns each */
	__int128 spent;
	uint64_t count, period_ns;
};

/* Before tokens are spent, or (negative) after they were restored, at a time. */
static void net_add(struct net *net, int64_t tokens, uint64_t at_ns)
{
	__int128 refilled = (__int128)(at_ns - DAY_US * 1000) * net->count;

	if (refilled - net->spent > net->best)
		net->best = refilled - net->spent;
	net->spent += (__int128)tokens * net->period_ns;
	if (net->spent - refilled + net->best > net->most)
		net->most = net->spent - refilled + net->best;
}

struct play {
	int rule;
	uint64_t lease_ns;
	struct script_params params;
	struct rng rng;
	struct net net;
	unsigned allowed, restored;
};

/* What a host does that asks the backend. */
static int lease(struct play *p, const char *key, uint64_t cost, const struct shmlimit_lease *asked, uint64_t now_us)
{
	const struct script_params *t = &p->params;
	char text[SCRIPT_ARGUMENTS_MAX][SCRIPT_ARGUMENT_MAX];
	redisReply *reply;
	uint64_t leased, retry_us;

	script_arguments(t, &(struct script_question){ asked->need, asked->want, 0 }, 1, text);
	reply = redisCommand(backend, "EVAL %s 1 key %s %s %s %s %s %s %s %llu", lasting_script(), text[0], text[1],
	                     text[2], text[3], text[4], text[5], text[6], (unsigned long long)now_us);
	if (reply == NULL || reply->type != REDIS_REPLY_ARRAY || reply->elements != 5)
		bail("the script says: %s", reply == NULL ? backend->errstr : reply->str != NULL ? reply->str : "?");
	leased = (uint64_t)reply->element[0]->integer;
	retry_us = (uint64_t)reply->element[1]->integer;
	freeReplyObject(reply);
	if (leased == 0)
		return shmlimit_lease_deny(
			at_time(l, now_us * 1000), p->rule, key, 1, cost,
			policy_denied_ns(t, asked->need, asked->want, retry_us, 0, rng_draw(&p->rng)), NULL);
	return shmlimit_lease_deposit(at_time(l, now_us * 1000), p->rule, key, 1, leased, cost, 0,
	                              script_lease_us(t, leased) * 1000, NULL);
}

static void take(struct play *p, const char *key, uint64_t cost, uint64_t now_us)
{
	struct shmlimit_lease asked = { .struct_size = sizeof(asked) };
	int answer = shmlimit_lease_take(
		at_time(l, now_us * 1000), p->rule, key, 1,
		&(struct shmlimit_lease_request){ .struct_size = sizeof(struct shmlimit_lease_request),
	                                          .cost = cost,
	                                          .lease_ns = p->lease_ns,
	                                          .claim_ns = MS },
		&asked, NULL);

	if (answer == SHMLIMIT_LEASE_ASK)
		answer = lease(p, key, cost, &asked, now_us);
	if (answer != SHMLIMIT_ALLOWED)
		return;
	p->allowed++;
	net_add(&p->net, (int64_t)cost, now_us * 1000);
}

static void refund(struct play *p, const char *key, uint64_t tokens, uint64_t now_us)
{
	struct shmlimit_result before, after;

	shmlimit_peek(at_time(l, now_us * 1000), p->rule, key, 1, 0, &before);
	shmlimit_refund(at_time(l, now_us * 1000), p->rule, key, 1, tokens, &after);
	p->restored += after.remaining > before.remaining;
	net_add(&p->net, -(int64_t)(after.remaining - before.remaining), now_us * 1000);
}

/* Requests come at about the rate, in bursts; of what is admitted some is given back, now or much later. */
static unsigned history(struct play *p, uint64_t capacity, uint64_t count, uint64_t period_ns)
{
	uint64_t now_us = DAY_US, mean_us;
	char name[32];

	snprintf(name, sizeof(name), "refund%d", (int)rng_below(&p->rng, 1000000));
	p->rule = lease_rule(l, name, capacity, count, period_ns);
	p->lease_ns = policy_lease_ns(capacity, count, period_ns, 100 * MS, 5 * MS) / 1000 * 1000;
	p->net = (struct net){ .count = count, .period_ns = period_ns };
	if (script_params(&p->params, capacity, count, period_ns, p->lease_ns / 1000) != 0)
		bail("no such params");
	mean_us = period_ns / 1000 / count + 1;
	freeReplyObject(redisCommand(backend, "FLUSHALL"));
	for (int i = 0; i < STEPS; i++) {
		const char *key = host[rng_below(&p->rng, HOSTS)];
		uint64_t cost = 1 + rng_below(&p->rng, rng_below(&p->rng, 4) ? 2 : capacity);

		if (rng_below(&p->rng, 3) == 0)
			refund(p, key, cost, now_us);
		else
			take(p, key, cost, now_us);
		/* Whatever can be had is taken at once. */
		for (uint64_t j = 0; i % 20 == 0 && j < 40; j++)
			take(p, host[rng_below(&p->rng, HOSTS)], 1 + rng_below(&p->rng, capacity / 8 + 1), now_us);
		if (rng_below(&p->rng, 4) == 0)
			now_us += rng_below(&p->rng, rng_below(&p->rng, 20) ? 4 * mean_us : 4 * capacity * mean_us);
	}
	shmlimit_rule_remove(l, name);
	return p->net.most > (__int128)capacity * period_ns + (__int128)count * script_lease_us(&p->params, 1) * 1000;
}

int main(void)
{
	struct play p = { 0 };
	unsigned over = 0;

	if (server_missing())
		return tap_skip_all("no redis-server");
	stage_begin("global.refund");
	server_begin(&server, NULL);
	backend = redisConnectUnix(server.socket);
	l = stage_create(64, 0, 0);
	p.rng.state = rng_seed();
	for (uint64_t i = 0; i < scaled(10); i++)
		over += history(&p, 1 + rng_below(&p.rng, i % 2 ? 10 : 2000), 1 + rng_below(&p.rng, 100),
		                10 * MS + rng_below(&p.rng, 10000 * MS));
	is(over, 0,
	   "no stretch of time sees more than the capacity, what refills in it and in a lease, and what was given back in it");
	ok(p.allowed > 1000 && p.restored > 1000, "requests are admitted and given back: %u, %u", p.allowed,
	   p.restored);
	shmlimit_close(l);
	return tap_done();
}
