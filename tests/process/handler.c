/*
 * handler: operations of every kind under every algorithm, in a signal handler that interrupts the same, on the same
 * handle, keys and rules (I10). Time stands still, so what was taken and not given back, plus what is left, is
 * each key's capacity: exactly in a window. A funnel gets less from a denied take_all whose slot was changed in between, by
 * what refills in the slack, since the time of another caller may be later. tests/process/signal does the same with takes
 * that claim slots.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "../by_limit.h"
#include "ticks.h"

#define WORKERS 2
#define KEYS 3
#define RULES 4
#define AMPLE 100           /* tokens; more than handlers and others take at once */
#define TICKS_INSIDE 500    /* of each verb, at the least, of all workers */
#define CALLS_MAX 100000000 /* in vain */
#define NOW_NS ((uint64_t)1000000000000)
#define SECOND ((uint64_t)1000000000)
#define HOUR_NS (3600 * SECOND)

enum verb { TAKE, PEEK, RESERVE, CHARGE, REFUND, TAKE_SOME, TAKE_ALL, TAKE_MANY, VERBS };

static const char *const titles[VERBS] = { "take",   "peek",      "reserve",  "charge",
	                                   "refund", "take_some", "take_all", "take_many" };

/* Of the first two all tokens can be accounted for: a charge goes nowhere but into the quota. */
#define ACCOUNTED 2

static const struct shmlimit_rule rules[RULES] = {
	{ .algorithm = SHMLIMIT_FUNNEL, .capacity = 200, .refill = 1, .period_ns = 24 * HOUR_NS },
	{ .algorithm = SHMLIMIT_WINDOW, .capacity = 200, .period_ns = 24 * HOUR_NS },
	{ .algorithm = SHMLIMIT_WARMUP,
	  .refill = 100,
	  .period_ns = HOUR_NS,
	  .warmup_ns = HOUR_NS,
	  .max_wait_ns = HOUR_NS },
	{ .algorithm = SHMLIMIT_FUNNEL,
	  .capacity = 20,
	  .refill = 1,
	  .period_ns = HOUR_NS,
	  .max_wait_ns = 10 * HOUR_NS,
	  .flags = SHMLIMIT_RULE_NEXT_PAYS },
};

struct play {
	struct shmlimit *l;
	int id[RULES];
	uint64_t seed;
	_Atomic int64_t out[ACCOUNTED][KEYS]; /* tokens taken and not given back */
	_Atomic uint64_t denied[KEYS];        /* take_all calls with the funnel of a key, that were denied */
	_Atomic uint64_t inside[VERBS];       /* handlers that interrupted this verb ... */
	_Atomic uint64_t decided[VERBS];      /* ... and those that decided by it */
	_Atomic uint64_t wrong;
	_Atomic int error;
	_Atomic uint64_t calls;
};

static struct play *play;

static volatile sig_atomic_t calling = VERBS;
static struct rng handlers_rng;

static void note(int answer)
{
	if (answer == SHMLIMIT_ALLOWED || answer == SHMLIMIT_DENIED)
		return;
	atomic_fetch_add(&play->wrong, 1);
	atomic_store(&play->error, answer);
}

static void book(unsigned rule, uint32_t key, int64_t tokens)
{
	if (rule < ACCOUNTED)
		atomic_fetch_add(&play->out[rule][key], tokens);
}

/*
 * Where a rule's tokens are accounted for, a charge is made only while the funnel has enough tokens to stay out of
 * debt, whichever process is quicker. A refund gives back what the same call took, and neither is recorded, so that no
 * other call gives it back.
 */
static void decide_one(enum verb verb, unsigned rule, uint32_t key, uint64_t tokens)
{
	struct shmlimit_result r;
	int id = play->id[rule], answer;

	switch (verb) {
	case PEEK:
		note(shmlimit_peek(at_time(play->l, NOW_NS), id, &key, sizeof(key), tokens, &r));
		return;
	case RESERVE:
		answer = shmlimit_reserve(at_time(play->l, NOW_NS), id, &key, sizeof(key), tokens, HOUR_NS, &r);
		break;
	case CHARGE:
		answer = shmlimit_peek(at_time(play->l, NOW_NS), id, &key, sizeof(key), AMPLE, &r);
		if (answer == SHMLIMIT_ALLOWED || rule >= ACCOUNTED)
			answer = shmlimit_charge(at_time(play->l, NOW_NS), id, &key, sizeof(key), tokens, &r);
		break;
	case TAKE_SOME:
		answer =
			by_limit(at_time(play->l, NOW_NS), SHMLIMIT_TAKE_SOME, id, &key, sizeof(key), tokens, NULL, &r);
		tokens = r.granted;
		break;
	default:
		answer = shmlimit_take(at_time(play->l, NOW_NS), id, &key, sizeof(key), tokens, &r);
	}
	note(answer);
	if (answer != SHMLIMIT_ALLOWED)
		return;
	if (verb == REFUND)
		note(shmlimit_refund(at_time(play->l, NOW_NS), id, &key, sizeof(key), tokens, NULL));
	else
		book(rule, key, (int64_t)tokens);
}

static void decide_several(enum verb verb, struct rng *rng)
{
	struct shmlimit_request requests[3] = { 0 };
	uint32_t keys[3];
	unsigned rule[3];
	int answers[3], answer;

	for (unsigned i = 0; i < 3; i++) {
		keys[i] = (uint32_t)rng_below(rng, KEYS);
		rule[i] = (unsigned)rng_below(rng, RULES);
		requests[i] = (struct shmlimit_request){
			.rule = play->id[rule[i]], .key = &keys[i], .key_len = sizeof(keys[i]), .cost = 1
		};
	}
	if (verb == TAKE_ALL) {
		answer = shmlimit_take_all(at_time(play->l, NOW_NS), requests, 3, NULL, NULL);
		note(answer);
		for (unsigned i = 0; i < 3; i++) {
			book(rule[i], keys[i], answer == SHMLIMIT_ALLOWED);
			if (rule[i] == 0 && answer == SHMLIMIT_DENIED)
				atomic_fetch_add(&play->denied[keys[i]], 1);
		}
		return;
	}
	note(shmlimit_take_many(at_time(play->l, NOW_NS), requests, 3, answers, NULL));
	for (unsigned i = 0; i < 3; i++) {
		note(answers[i]);
		book(rule[i], keys[i], answers[i] == SHMLIMIT_ALLOWED);
	}
}

static enum verb decide(struct rng *rng)
{
	enum verb verb = (enum verb)rng_below(rng, VERBS);

	if (calling == VERBS + 1)
		calling = (sig_atomic_t)verb;
	if (verb >= TAKE_ALL)
		decide_several(verb, rng);
	else
		decide_one(verb, (unsigned)rng_below(rng, RULES), (uint32_t)rng_below(rng, KEYS),
		           1 + rng_below(rng, 3));
	return verb;
}

static void tick(int number)
{
	sig_atomic_t interrupted = calling;
	enum verb verb;

	(void)number;
	verb = decide(&handlers_rng);
	if (interrupted < VERBS) {
		atomic_fetch_add(&play->inside[interrupted], 1);
		atomic_fetch_add(&play->decided[verb], 1);
	}
	ticks_next();
}

static int seen_enough(void)
{
	for (int verb = 0; verb < VERBS; verb++)
		if (atomic_load(&play->inside[verb]) < scaled(TICKS_INSIDE) ||
		    atomic_load(&play->decided[verb]) < scaled(TICKS_INSIDE))
			return 0;
	return counters_of(play->l, SHMLIMIT_ALL_RULES).failed_cas > 0;
}

/* Now and then all is given back, so that there is something to take. */
static void refill(struct rng *rng)
{
	uint32_t key = (uint32_t)rng_below(rng, KEYS);

	for (unsigned rule = 0; rule < RULES; rule++) {
		uint64_t tokens = rule < ACCOUNTED ? 1 + rng_below(rng, 3) : 0;
		int64_t out = rule < ACCOUNTED ? atomic_load(&play->out[rule][key]) : 0;

		/* Recorded as given back before it is: no other call gives the same back. */
		while (tokens > 0 && out >= (int64_t)tokens)
			if (atomic_compare_exchange_strong(&play->out[rule][key], &out, out - (int64_t)tokens)) {
				note(shmlimit_refund(at_time(play->l, NOW_NS), play->id[rule], &key, sizeof(key),
				                     tokens, NULL));
				break;
			}
		if (rule >= ACCOUNTED && shmlimit_reset(play->l, play->id[rule], &key, sizeof(key)) < 0)
			note(-1);
	}
}

static void work(struct crew *crew, int index)
{
	struct rng rng = { play->seed + (uint64_t)index };

	(void)crew;
	handlers_rng.state = ~rng.state;
	ticks_start(tick);
	while (!seen_enough() && atomic_fetch_add(&play->calls, 1) < CALLS_MAX) {
		calling = VERBS + 1;
		decide(&rng);
		calling = VERBS;
		refill(&rng);
	}
	ticks_hold(SIG_BLOCK);
}

int main(void)
{
	struct shmlimit_options options = { .struct_size = sizeof(options), .slots = 64, .rules = RULES };
	unsigned off = 0;

	if (SWAPS_ARE_PRIVATE)
		return tap_skip_all("ThreadSanitizer does not swap atomically between processes");
	stage_begin("handler");
	play = shared_memory(sizeof(*play));
	play->seed = rng_seed();
	if (shmlimit_create(stage_name, &options, &play->l) != 0)
		bail("create");
	for (unsigned i = 0; i < RULES; i++) {
		struct shmlimit_rule rule = rules[i];
		char name[8];

		rule.struct_size = sizeof(rule);
		snprintf(name, sizeof(name), "r%u", i);
		play->id[i] = shmlimit_rule_set(at_time(play->l, NOW_NS), name, &rule);
		if (play->id[i] < 0)
			bail("rule_set: %s", shmlimit_strerror(play->id[i]));
	}
	is(crew_run(WORKERS, work, NULL), 0, "workers whose handlers decide end well");
	for (int verb = 0; verb < VERBS; verb++)
		ok(play->inside[verb] >= scaled(TICKS_INSIDE) && play->decided[verb] >= scaled(TICKS_INSIDE),
		   "handlers did interrupt %s, and did decide by it", titles[verb]);
	if (!ok(play->wrong == 0, "no decision fails"))
		diag("%" PRIu64 " did, the last with %d", play->wrong, play->error);
	for (unsigned rule = 0; rule < ACCOUNTED; rule++) {
		for (uint32_t key = 0; key < KEYS; key++) {
			/* A second of each denied call is not given back, and a part of a token is not seen. */
			uint64_t lost_ns = rule == 0 ? play->denied[key] * SECOND : 0;
			uint64_t most = lost_ns == 0 ? 0 : 1 + lost_ns / rules[0].period_ns;
			struct shmlimit_result r;
			uint64_t there;

			shmlimit_peek(at_time(play->l, NOW_NS), play->id[rule], &key, sizeof(key), 1, &r);
			there = r.remaining + (uint64_t)play->out[rule][key];
			if (there > rules[rule].capacity || there + most < rules[rule].capacity) {
				diag("rule %u, key %u: %" PRIu64 " left, %" PRId64 " out, %" PRIu64 " may be lost",
				     rule, key, r.remaining, play->out[rule][key], most);
				off++;
			}
		}
	}
	is(off, 0,
	   "of funnels and windows what was taken and what is left is the capacity, to what refills in the slack");
	ok(counters_of(play->l, SHMLIMIT_ALL_RULES).failed_cas > 0, "compare-and-swaps did fail");
	is(shmlimit_verify(stage_name, NULL, 0), 0, "the segment is sound");
	stage_hide();
	shmlimit_close(play->l);
	return tap_done();
}
