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
	int64_t leased, retry_us, left, full_us, lasts_us;
};

static redisReply *ask(const struct script_params *t, const struct script_question *q, uint64_t now_us)
{
	char text[SCRIPT_ARGUMENTS_MAX][SCRIPT_ARGUMENT_MAX];

	script_arguments(t, q, 1, text);
	return redisCommand(backend, "EVAL %s 1 key %s %s %s %s %s %s %s %llu", lasting_script(), text[0], text[1],
	                    text[2], text[3], text[4], text[5], text[6], (unsigned long long)now_us);
}

static struct reply lease_most(const struct script_params *t, const struct script_question *q, uint64_t now_us)
{
	redisReply *raw = ask(t, q, now_us);
	struct reply reply;

	if (raw == NULL || raw->type != REDIS_REPLY_ARRAY || raw->elements != 5)
		bail("the script says: %s", raw == NULL ? backend->errstr : raw->str != NULL ? raw->str : "?");
	reply = (struct reply){ raw->element[0]->integer, raw->element[1]->integer, raw->element[2]->integer,
		                raw->element[3]->integer, raw->element[4]->integer };
	freeReplyObject(raw);
	return reply;
}

static struct reply lease(const struct script_params *t, uint64_t need, uint64_t want, uint64_t now_us)
{
	return lease_most(t, &(struct script_question){ need, want, 0 }, now_us);
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
	is(r.full_us, 2000000, "a funnel that leased one is full after the time of a token");
	r = lease(&t, 14, 14, now_us);
	is(r.leased, 14, "all that is left can be needed");
	r = lease(&t, 1, 1, now_us);
	is(r.leased, 0, "an empty funnel leases nothing");
	is(r.retry_us, 2000000, "an empty funnel says when it will lease");
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
	is(lease(&t, 0, 0, DAY_US + 99999).left, 250, "while leases may be spent their room is not filled");
	r = lease(&t, 0, 0, DAY_US + 250000);
	ok(r.left > 250 && r.left <= 300, "once leases are over their room is filled from then on: %d left",
	   (int)r.left);
	command("DEL key");
	lease(&t, 750, 750, DAY_US);
	is(lease(&t, 250, 250, DAY_US).leased, 250, "all that is left is leased to one host, if it is needed");
	is(lease(&t, 0, 0, DAY_US + 99000).left, 99, "what is spent at once comes back at once");
}

static void chance(void)
{
	struct script_params t = params_of(1000, 1000, 1000000000, 100000),
			     small = params_of(100, 100, 1000000000, 100000);
	int granted = 0;

	command("FLUSHALL");
	is(lease(&small, 1, 50, DAY_US).leased, 3, "of a small limit a host gets two tokens beyond what it needs");
	command("DEL key");
	lease(&t, 1, 20, DAY_US);
	is(lease(&t, 0, 0, DAY_US + 250000).left, 980, "few tokens are lent for three leases");
	for (int i = 0; i < 1000; i++) {
		command("DEL key");
		lease(&t, 900, 900, DAY_US + (uint64_t)i * 37);
		granted += lease(&t, 1, 1, DAY_US + (uint64_t)i * 37).leased == 1;
	}
	ok(granted > 150 && granted < 400, "of a scarce limit a part of the questions is granted: %d of 1000", granted);
}

/* A funnel that is far from empty gives more, for longer. */
static void generous(void)
{
	struct script_params t = params_of(100, 100, 60000000000, 100000);
	struct reply r;
	int64_t lent = 0;

	command("FLUSHALL");
	r = lease_most(&t, &(struct script_question){ 1, 1, 9 }, DAY_US);
	is(r.leased, 4, "a full funnel of 100 gives an eighth of what is above three quarters beside what is needed");
	ok(r.lasts_us >= 15000000 && r.lasts_us <= 15000003, "they last for a quarter of the time to full: %d",
	   (int)r.lasts_us);
	for (lent = r.leased; r.lasts_us != 0; lent += r.leased)
		r = lease_most(&t, &(struct script_question){ 1, 1, 9 }, DAY_US);
	ok(lent <= 25, "no more than a quarter of the funnel is lent so: %d", (int)lent);
	is(r.leased, 1, "below three quarters a host gets what it asks for");
	is(lease(&t, 0, 0, DAY_US + 14999999).left, 100 - lent + 1, "while they may be spent their room is not filled");
	is(lease(&t, 0, 0, DAY_US + 80000000).left, 100, "at last the funnel is full again");
	command("DEL key");
	r = lease_most(&t, &(struct script_question){ 100, 100, 900 }, DAY_US);
	ok(r.leased == 100 && r.left == 0 && r.lasts_us == 0, "no more is given than there is");
}

#define GRANTS 400

static void conserve(struct rng *rng)
{
	uint64_t capacity = 1 + rng_below(rng, rng_below(rng, 2) ? 20 : 5000), at[GRANTS], until[GRANTS],
		 tokens[GRANTS];
	uint64_t period_ns = 1 + rng_below(rng, 1000000000), count = 1 + rng_below(rng, 1000);
	uint64_t lease_us = 1 + rng_below(rng, 200000), now_us = DAY_US, sum = 0, mean_us;
	struct script_params t;
	int over = 0, early = 0, wanting = 0, granted = 0;
	uint64_t retried = 0;

	if (rng_below(rng, 2))
		period_ns *= 1000;
	t = params_of(capacity, count, period_ns, lease_us);
	command("FLUSHALL");
	mean_us = period_ns / 1000 * (1 + rng_below(rng, 5)) / count + 1;
	for (int i = 0; i < GRANTS; i++) {
		uint64_t need = 1 + rng_below(rng, rng_below(rng, 3) ? 2 : capacity);
		uint64_t want = need + rng_below(rng, rng_below(rng, 2) ? 1 : capacity), most;
		struct reply r;

		need = need <= capacity ? need : capacity;
		want = want <= capacity ? want : capacity;
		want = want >= need ? want : need;
		most = rng_below(rng, 2) ? 9 * need : 0;
		r = lease_most(&t, &(struct script_question){ need, want, most }, now_us);
		at[i] = now_us;
		tokens[i] = (uint64_t)r.leased;
		/* What is needed is spent at once. */
		until[i] = now_us;
		if (tokens[i] > need)
			until[i] += r.lasts_us != 0 ? (uint64_t)r.lasts_us : script_lease_us(&t, tokens[i]);
		sum += tokens[i];
		granted += r.leased > 0;
		wanting += r.leased > 0 && (tokens[i] < need || tokens[i] > (want > most ? want : most));
		early += r.leased == 0 && r.retry_us <= 0;
		/* In which nothing else is leased. */
		if (r.leased == 0 && want == need && rng_below(rng, 4) == 0) {
			now_us += (uint64_t)r.retry_us;
			early += lease(&t, need, 0, now_us).left < (int64_t)need;
			retried++;
		}
		now_us += rng_below(rng, 2 * mean_us);
	}
	/* From just before lease i until lease j: what may still be spent then can be spent in it, if need be again. */
	for (int i = 0; i < GRANTS; i++) {
		uint64_t spent = 0;

		for (int j = 0; j < i; j++)
			spent += until[j] > at[i] ? tokens[j] : 0;
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

/* Hosts with different rules share the time. */
static void mixed(void)
{
	struct script_params large = params_of(15, 30, 60000000000, 100000),
			     small = params_of(6, 60, 60000000000, 200000);
	struct reply r;

	command("FLUSHALL");
	is(lease(&large, 2, 2, DAY_US).left, 13, "a host takes two tokens of two seconds each");
	is(lease(&small, 1, 1, DAY_US).left, 1, "four seconds are four tokens of a host whose tokens take one");
	is(lease(&large, 0, 0, DAY_US).left, 12, "what the other host took is missing to the first one");
	r = lease(&small, 2, 2, DAY_US);
	ok(r.leased == 0 && r.retry_us == 1000000, "each host is denied by its own rule, for as long as that says");
	is(lease(&small, 7, 7, DAY_US).retry_us, -1, "more than its own capacity never fits");
	is(lease(&large, 7, 7, DAY_US).leased, 7, "a host with a larger rule can have more");
	is(lease(&small, 1, 1, DAY_US).retry_us, 14000000, "what it took is owed by the other one, too");
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
	static const char *const foreign[] = { "value",
		                               "7",
		                               "",
		                               "0000000000000001",
		                               "0000000000000001 x",
		                               "nan 1",
		                               "-inf             1",
		                               "0000000000000001 -1",
		                               "0000000000000001 nan",
		                               "0000000000000001 1 2 3",
		                               "0000000000000001 1 0 0 0 0 0",
		                               "0000000000000001 1 nan 0 0 0 0",
		                               "0000000000000001 1 9 0 0 0 x" };
	struct script_params t = params_of(15, 30, 60000000000, 100000);
	const struct script_question one = { 1, 1, 0 };
	redisReply *raw;

	for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++) {
		freeReplyObject(redisCommand(backend, "SET key %s", foreign[i]));
		raw = ask(&t, &one, DAY_US);
		ok(raw->type == REDIS_REPLY_ERROR && strstr(raw->str, SCRIPT_FOREIGN) != NULL,
		   "a string that is no funnel is refused: \"%s\"", foreign[i]);
		freeReplyObject(raw);
	}
	command("DEL key");
	command("HSET key name value");
	raw = ask(&t, &one, DAY_US);
	ok(raw->type == REDIS_REPLY_ERROR && strstr(raw->str, "WRONGTYPE") != NULL,
	   "a key that is a hash is refused with WRONGTYPE");
	freeReplyObject(raw);
}

static void limits(void)
{
	struct script_params t;

	is(script_params(&t, 3, 3, 7000000000, 1), 0, "tokens of a third of seven seconds can be counted");
	ok(t.token >= 7e6 / 3 && t.token < 7e6 / 3 + 1e-6 && t.full == 3 * t.token,
	   "a token is its time, rounded up by less than a millionth of a microsecond");
	is(script_params(&t, UINT64_MAX, 1, 1, 1), -ERANGE, "a capacity beyond 2^53 cannot be counted");
	is(script_params(&t, 1, UINT64_MAX, 1, 1), -ERANGE, "a rate beyond 2^53 cannot be counted");
	is(script_params(&t, 100000, 1, UINT64_C(86400000000000), 1), 0, "a time to full of years can be counted");
	is(script_params(&t, 1u << 20, 1, UINT64_C(31536000000000000), 1), -ERANGE,
	   "a time to full of a million years cannot be counted");
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
	chance();
	generous();
	for (uint64_t i = 0; i < scaled(20); i++)
		conserve(&rng);
	mixed();
	for (int i = 0; i < 10; i++)
		changes(&rng);
	refusals();
	limits();
	return tap_done();
}
