/*
 * script: the funnel in the backend, on a clock of the test's own.
 *
 * I1 over all hosts: whatever was leased up to a lease before a stretch of time, or in
 * it, can be spent in it, and is not more than capacity + rate * time.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "server.h"

static struct server server;
static redisContext *backend;

struct reply {
	int64_t leased, retry_us, left, full_us, older;
};

static redisReply *ask(const struct script_params *t, uint64_t need, uint64_t want, uint64_t now_us)
{
	return redisCommand(backend, "EVAL %s 1 key %llu %llu/%llu %llu %llu %llu %llu %llu %llu %llu",
	                    lasting_script(), (unsigned long long)t->capacity, (unsigned long long)t->count,
	                    (unsigned long long)t->period_ns, (unsigned long long)t->num, (unsigned long long)t->den,
	                    (unsigned long long)t->lease_us, (unsigned long long)need, (unsigned long long)want,
	                    (unsigned long long)t->set_us, (unsigned long long)now_us);
}

static struct reply lease(const struct script_params *t, uint64_t need, uint64_t want, uint64_t now_us)
{
	redisReply *raw = ask(t, need, want, now_us);
	struct reply reply;

	if (raw == NULL || raw->type != REDIS_REPLY_ARRAY || raw->elements != 5)
		bail("the script says: %s", raw == NULL ? backend->errstr : raw->str != NULL ? raw->str : "?");
	reply = (struct reply){ raw->element[0]->integer, raw->element[1]->integer, raw->element[2]->integer,
		                raw->element[3]->integer, raw->element[4]->integer };
	freeReplyObject(raw);
	return reply;
}

static void command(const char *text)
{
	freeReplyObject(redisCommand(backend, text));
}

static struct script_params params_of(uint64_t capacity, uint64_t count, uint64_t period_ns, uint64_t lease_us)
{
	struct script_params params;

	if (script_params(&params, capacity, count, period_ns, lease_us) != 0)
		bail("no such params");
	return params;
}

/* Some day of 2026, as TIME has it. */
#define DAY_US UINT64_C(1790000000000000)

static void exact(void)
{
	struct script_params t = params_of(15, 30, 60000000000, 100000);
	uint64_t now_us = DAY_US;
	struct reply r;

	command("FLUSHALL");
	r = lease(&t, 1, 1, now_us);
	is(r.leased, 1, "a funnel that is not there is full");
	is(r.left, 14, "a funnel that leased one of 15 has 14 left");
	ok(r.full_us > 2100000 && r.full_us <= 2133336,
	   "a funnel that leased one is full after its lease and the time of a token: %d", (int)r.full_us);
	r = lease(&t, 14, 14, now_us);
	is(r.leased, 14, "all that is left can be needed");
	r = lease(&t, 1, 1, now_us);
	is(r.leased, 0, "an empty funnel leases nothing");
	ok(r.retry_us > 2100000 && r.retry_us <= 2133336, "an empty funnel says when it will lease: %d",
	   (int)r.retry_us);
	now_us += (uint64_t)r.retry_us;
	is(lease(&t, 1, 1, now_us - 1).leased, 0, "not a microsecond before");
	is(lease(&t, 1, 1, now_us).leased, 1, "a token has come back, exactly then");
	is(lease(&t, 1, 1, now_us + 1999999).leased, 0, "being asked often does not make it leak faster");
	is(lease(&t, 1, 1, now_us + 2000000).leased, 1, "being asked often does not make a token come back later");
	r = lease(&t, 16, 16, now_us);
	is(r.retry_us, -1, "more than the capacity never fits");
	r = lease(&t, 0, 0, now_us + 1000000000);
	is(r.left, 15, "a long time fills it, and no further");
	command("DEL key");
	lease(&t, 0, 0, now_us);
	{
		redisReply *raw = redisCommand(backend, "EXISTS key");

		is(raw->integer, 0, "a look leaves nothing behind");
		freeReplyObject(raw);
	}
	lease(&t, 15, 15, now_us);
	now_us += 1000000000;
	is(lease(&t, 15, 15, now_us).leased, 15, "full again, it can be had whole");
	is(lease(&t, 1, 1, now_us - 500000000).leased, 0, "a clock that steps back gives nothing");
	is(lease(&t, 1, 1, now_us - 500000000 + 2200000).leased, 1, "nothing waits for a clock to come back");
}

/* What was lent is not filled again before it is over. */
static void lent(void)
{
	struct script_params t = params_of(1000, 1000, 1000000000, 100000);
	struct reply r;

	command("FLUSHALL");
	is(lease(&t, 1, 1000, DAY_US).leased, 750, "of what is left three quarters are leased to one host");
	is(lease(&t, 250, 250, DAY_US).leased, 250, "all that is left is leased to one host, if it is needed");
	r = lease(&t, 1, 1, DAY_US + 99999);
	is(r.leased + r.left, 0, "while leases may be spent their room is not filled");
	r = lease(&t, 1, 1, DAY_US + 150000);
	ok(r.leased == 1 && r.left < 50, "once leases are over their room is filled from then on: %d left",
	   (int)r.left);
}

#define GRANTS 400

static void conserve(struct rng *rng)
{
	uint64_t capacity = 1 + rng_below(rng, rng_below(rng, 2) ? 20 : 5000), at[GRANTS], tokens[GRANTS];
	uint64_t period_ns = 1 + rng_below(rng, 1000000000), count = 1 + rng_below(rng, 1000);
	uint64_t lease_us = 1 + rng_below(rng, 200000), now_us = DAY_US, sum = 0, mean_us;
	struct script_params t = params_of(capacity, count, period_ns, lease_us);
	int over = 0, early = 0, wanting = 0, granted = 0;
	uint64_t retried = 0;

	command("FLUSHALL");
	mean_us = period_ns / 1000 * (1 + rng_below(rng, 5)) / count + 1;
	for (int i = 0; i < GRANTS; i++) {
		uint64_t need = 1 + rng_below(rng, rng_below(rng, 3) ? 2 : capacity);
		uint64_t want = need + rng_below(rng, rng_below(rng, 2) ? 1 : capacity);
		struct reply r;

		need = need <= capacity ? need : capacity;
		want = want <= capacity ? want : capacity;
		want = want >= need ? want : need;
		r = lease(&t, need, want, now_us);
		at[i] = now_us;
		tokens[i] = (uint64_t)r.leased;
		sum += tokens[i];
		granted += r.leased > 0;
		wanting += r.leased > 0 && ((uint64_t)r.leased < need || (uint64_t)r.leased > want);
		early += r.leased == 0 && r.retry_us <= 0;
		/* In which nothing else is leased. */
		if (r.leased == 0 && want == need && rng_below(rng, 4) == 0) {
			now_us += (uint64_t)r.retry_us;
			early += lease(&t, need, 0, now_us).left < (int64_t)need;
			retried++;
		}
		now_us += rng_below(rng, 2 * mean_us);
	}
	/* From just before lease i until lease j: what was leased up to a lease earlier can be spent in it, if need be again. */
	for (int i = 0; i < GRANTS; i++) {
		uint64_t spent = 0;
		int first = i;

		while (first > 0 && at[first - 1] + lease_us > at[i])
			spent += tokens[--first];
		for (int j = i; j < GRANTS; j++) {
			spent += tokens[j];
			over += (unsigned __int128)(spent - (spent < capacity ? spent : capacity)) * period_ns >
			        (unsigned __int128)(at[j] - at[i]) * 1000 * count;
		}
	}
	is(over, 0,
	   "capacity %d, %d every %d ns, leases of %d us: no stretch of time can see more than its due (%d leased)",
	   (int)capacity, (int)count, (int)period_ns, (int)lease_us, (int)sum);
	is(wanting, 0, "what is leased is between what is needed and what is wanted");
	is(early, 0, "what is denied can be had when it was said (%d times)", (int)retried);
	ok(granted > 0, "something was leased");
}

/* Hosts change a rule one after the other. */
static void newest(void)
{
	struct script_params old = params_of(15, 30, 60000000000, 100000), new = params_of(6, 60, 60000000000, 200000);
	struct script_params larger = params_of(20, 30, 60000000000, 50000),
			     ahead = params_of(30, 30, 60000000000, 100000);
	uint64_t now_us = DAY_US;
	struct reply r;

	old.set_us = DAY_US - 3000000;
	new.set_us = DAY_US - 2000000;
	larger.set_us = DAY_US - 1000000;
	ahead.set_us = DAY_US + 1000000000;
	command("FLUSHALL");
	r = lease(&old, 2, 2, now_us);
	is(r.left, 13, "a host has a rule");
	is(r.older, 0, "a host's newest rule is in force");
	r = lease(&new, 1, 1, now_us);
	is(r.left, 3, "a newer rule is in force at once: its capacity less what is lent");
	r = lease(&old, 1, 1, now_us);
	is(r.left, 2, "a host with the older one is served by it");
	is(r.older, 1, "a host with an older rule is told so");
	r = lease(&old, 7, 7, now_us);
	ok(r.leased == 0 && r.retry_us > 0, "more than the newer capacity is denied to it, but not for ever: %d",
	   (int)r.retry_us);
	is(lease(&new, 7, 7, now_us).retry_us, -1, "to a host with the newer rule it is denied for ever");
	r = lease(&old, 2, 2, now_us);
	is(r.left, 0, "all that is left can be leased");
	now_us += 100000;
	is(lease(&old, 0, 0, now_us).left, 0, "leases count as lent for the longest time of any host");
	r = lease(&larger, 1, 1, now_us + 1200000);
	is(r.leased, 1, "the rate was the newer rule's: a token a second");
	is(r.older, 0, "a rule that is newer still is in force");
	r = lease(&larger, 0, 0, now_us + 3600000000);
	is(r.left, 20, "a newer rule's funnel fills to its capacity");
	is(lease(&new, 0, 0, now_us + 3600000000).left, 20, "for all hosts");
	command("FLUSHALL");
	lease(&ahead, 1, 1, DAY_US);
	larger.set_us = DAY_US + 1000;
	r = lease(&larger, 1, 1, DAY_US + 2000);
	is(r.older, 0, "a rule of a host whose clock is ahead is not newer for ever");
}

/* Whatever the order of hosts and rules, no more is leased than the most generous of the rules allows. */
static void changes(struct rng *rng)
{
	struct script_params t[3];
	uint64_t capacity = 0, now_us = DAY_US;
	int over = 0, leased = 0;

	command("FLUSHALL");
	for (int i = 0; i < 3; i++) {
		uint64_t of = 1 + rng_below(rng, 100);

		t[i] = params_of(of, 1, UINT64_C(86400000000000), 1 + rng_below(rng, 200000));
		t[i].set_us = DAY_US - rng_below(rng, 1000);
		capacity = of > capacity ? of : capacity;
	}
	for (int i = 0; i < 100; i++) {
		struct reply r = lease(&t[rng_below(rng, 3)], 1, 1 + rng_below(rng, 5), now_us);

		leased += (int)r.leased;
		over += leased > (int)capacity + 1 || r.left < 0 || (uint64_t)(r.left + leased) > capacity + 1;
		now_us += rng_below(rng, 100000);
	}
	is(over, 0, "hosts with three rules lease %d of %d in ten seconds", leased, (int)capacity);
}

static void refusals(void)
{
	struct script_params t = params_of(15, 30, 60000000000, 100000);
	redisReply *raw;

	command("FLUSHALL");
	command("HSET key name value");
	raw = ask(&t, 1, 1, DAY_US);
	ok(raw->type == REDIS_REPLY_ERROR && strstr(raw->str, SCRIPT_FOREIGN) != NULL,
	   "somebody else's hash is refused");
	freeReplyObject(raw);
	for (const char **part = (const char *[]){ "quota", "time", "part", "lent", "parts", "set", NULL };
	     *part != NULL; part++) {
		command("DEL key");
		lease(&t, 1, 1, DAY_US);
		freeReplyObject(redisCommand(backend, "HSET key %s ?", *part));
		raw = ask(&t, 1, 1, DAY_US);
		ok(raw->type == REDIS_REPLY_ERROR && strstr(raw->str, SCRIPT_FOREIGN) != NULL,
		   "a funnel that somebody wrote into is none: %s", *part);
		freeReplyObject(raw);
		freeReplyObject(redisCommand(backend, "HDEL key %s", *part));
		raw = ask(&t, 1, 1, DAY_US);
		ok(raw->type == REDIS_REPLY_ERROR && strstr(raw->str, SCRIPT_FOREIGN) != NULL,
		   "a funnel with a part missing is refused: %s", *part);
		freeReplyObject(raw);
	}
	command("SET key value");
	raw = ask(&t, 1, 1, DAY_US);
	ok(raw->type == REDIS_REPLY_ERROR && strstr(raw->str, "WRONGTYPE") != NULL,
	   "a key that is a string is refused with WRONGTYPE");
	freeReplyObject(raw);
}

static void limits(void)
{
	struct script_params t;

	is(script_params(&t, 1, 1, 1000, 1), 0, "a token a microsecond can be counted");
	is(t.num, 1, "a token a microsecond is counted as one");
	is(t.den, 1, "of one part");
	is(script_params(&t, 1000000, 7, UINT64_C(86400000000000), 1), -ERANGE, "too many parts of a token cannot");
	is(script_params(&t, 100000, 7, UINT64_C(86400000000000), 1), 0, "fewer can");
	is(script_params(&t, UINT64_MAX, 1, 1, 1), -ERANGE, "a capacity beyond 2^53 cannot");
	is(script_params(&t, 1, UINT64_MAX, 1, 1), -ERANGE, "a rate beyond 2^53 cannot be counted");
}

int main(void)
{
	struct rng rng;

	if (server_missing())
		return tap_skip_all("no redis-server");
	stage_begin("global.script");
	server_begin(&server, NULL);
	backend = redisConnectUnix(server.socket);
	rng.state = rng_seed();
	exact();
	lent();
	for (uint64_t i = 0; i < scaled(20); i++)
		conserve(&rng);
	newest();
	for (int i = 0; i < 10; i++)
		changes(&rng);
	refusals();
	limits();
	return tap_done();
}
