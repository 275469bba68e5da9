/*
 * undo: a denied take_all that is slow, between other calls for its first key. An oracle for FUNNEL, COUNTER, GCRA and WINDOW is
 * a second key of which all is taken that was taken of the first one, except by the denied calls: it never has less (I1),
 * and it has no more than refilled during those calls. WARMUP, LEASE and changes of rules are looked at one by one;
 * tests/schedule/undo stops such calls before each access to memory.
 *
 * SEED=n repeats a run; TEST_SCALE=n makes it n times as long.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <time.h>

#include "../rng.h"
#include "unit.h"

#define KEY "user:42"
#define ORACLE "user:43"
#define DEPTH 3
#define HISTORIES 4000

/* The reading of the clock at which the second key is claimed: after the first one was taken from, which has a slot or is new. */
#define KNOWN 2u
#define NEW 3u

static struct shmlimit *l;
static struct rng rng;
static struct shmlimit_result r;
static int denying;
static uint64_t wrong;

/* ---- The library's own clock is ours: a call stops at one of its readings, and others run ---- */

static uint64_t clock_ns;
static unsigned stops; /* at this reading; 0: at none */
static void (*in_between)(void);

int clock_gettime(clockid_t id, struct timespec *time)
{
	(void)id;
	if (stops != 0 && --stops == 0)
		in_between();
	time->tv_sec = (time_t)(clock_ns / SECOND);
	time->tv_nsec = (long)(clock_ns % SECOND);
	return 0;
}

/*
 * Ask for the key and for one that has too little. The clock is read at the beginning, for each key that is new, and when
 * something is to be given back.
 */
static int ask_in_vain(int rule, const char *key, uint64_t cost, unsigned stop)
{
	static unsigned names;
	char name[16];
	int answer, length = snprintf(name, sizeof(name), "new%u", names++ % 1000);
	const struct shmlimit_request all[] = {
		{ .rule = rule, .key = key, .key_len = strlen(key), .cost = cost },
		{ .rule = denying, .key = name, .key_len = (size_t)length, .cost = 1 },
		{ .rule = denying, .key = name, .key_len = (size_t)length, .cost = 1 },
	};

	stops = stop;
	answer = shmlimit_take_all(l, all, 3, NULL, NULL);
	stops = 0;
	return answer;
}

static int take(int rule, const char *key, uint64_t cost)
{
	return shmlimit_take(l, rule, key, strlen(key), cost, &r);
}

static uint64_t left(int rule, const char *key)
{
	shmlimit_peek(l, rule, key, strlen(key), 1, &r);
	return r.remaining;
}

/* ---- Beside the oracle ---- */

struct kind {
	const char *name;
	struct shmlimit_rule rule;
	uint64_t token_ns; /* FUNNEL: in which one refills, rounded down */
	int id;
};

/* clang-format off */
static struct kind kinds[] = {
	{ "50 at 2,000 a second", { .capacity = 50, .refill = 2000, .period_ns = SECOND }, 500000, 0 },
	{ "5 at 3 in 7 microseconds", { .capacity = 5, .refill = 3, .period_ns = 7000 }, 2333, 0 },
	{ "10 at 1 a day", { .capacity = 10, .refill = 1, .period_ns = 86400 * SECOND }, 86400 * SECOND, 0 },
	{ "20 at 7 a nanosecond", { .capacity = 20, .refill = 7, .period_ns = 1 }, 0, 0 },
	{ "10 million at 125 million a second", { .capacity = 10000000, .refill = 125000000, .period_ns = SECOND }, 8, 0 },
	{ "COUNTER of 30 in 10 ms",
	  { .algorithm = SHMLIMIT_COUNTER, .capacity = 30, .period_ns = 10000000 }, 300000, 0 },
	{ "GCRA of 50 at 2,000 a second",
	  { .algorithm = SHMLIMIT_GCRA, .capacity = 50, .refill = 2000, .period_ns = SECOND }, 500000, 0 },
	/* WHY NOT longer: the clock would come round. */
	{ "GCRA of 10 at 1 an hour",
	  { .algorithm = SHMLIMIT_GCRA, .capacity = 10, .refill = 1, .period_ns = 3600 * SECOND }, 3600 * SECOND, 0 },
	{ "WINDOW of 30 in 10 ms",
	  { .algorithm = SHMLIMIT_WINDOW, .capacity = 30, .period_ns = 10000000 }, 300000, 0 },
};
/* clang-format on */

static const struct kind *kind;
static unsigned depth;
static uint64_t slow_ns;   /* in which denied calls were stopped */
static uint64_t contended; /* others took while one was stopped */

static uint64_t some_tokens(void)
{
	uint64_t capacity = kind->rule.capacity, most = rng_below(&rng, 4) == 0 ? capacity : capacity / 4 + 1;

	return 1 + rng_below(&rng, most);
}

/* From none to more than it takes to refill. */
static void pass_time(void)
{
	uint64_t token_ns = kind->token_ns + 1;

	switch (rng_below(&rng, 6)) {
	case 0:
		clock_ns += rng_below(&rng, token_ns);
		break;
	case 1:
		clock_ns += rng_below(&rng, 8 * token_ns);
		break;
	case 2:
		clock_ns += rng_below(&rng, 2 * kind->rule.capacity * token_ns);
		break;
	default:
		break;
	}
}

/* What one has the other must have, too. */
static void compare(const char *when)
{
	uint64_t here = left(kind->id, KEY), there = left(kind->id, ORACLE);

	if (here > there && ++wrong <= 3)
		diag("%s, %s: it has %" PRIu64 ", not %" PRIu64, kind->name, when, here, there);
	if (slow_ns == 0 && here != there && ++wrong <= 3)
		diag("%s, %s: it has %" PRIu64 ", not %" PRIu64 ", though time stood", kind->name, when, here, there);
}

static void take_both(uint64_t cost)
{
	if (take(kind->id, KEY, cost) != SHMLIMIT_ALLOWED)
		return;
	contended += depth != 0;
	if (take(kind->id, ORACLE, cost) != SHMLIMIT_ALLOWED && ++wrong <= 3)
		diag("%s: %" PRIu64 " were taken that were not there", kind->name, cost);
}

static void denied_call(void);

static void others(void)
{
	uint64_t began_ns = clock_ns;

	for (uint64_t n = rng_below(&rng, 4); n > 0; n--) {
		pass_time();
		if (depth < DEPTH && rng_below(&rng, 3) == 0)
			denied_call();
		else
			take_both(some_tokens());
	}
	pass_time();
	slow_ns += clock_ns - began_ns;
}

static void denied_call(void)
{
	/* A count's time begins with its first request, so let that be one of both. */
	take_both(1);
	depth++;
	in_between = others;
	if (ask_in_vain(kind->id, KEY, some_tokens(), KNOWN + (unsigned)rng_below(&rng, 2)) != SHMLIMIT_DENIED)
		wrong++;
	depth--;
}

static void beside_the_oracle(void)
{
	uint64_t n = scaled(HISTORIES);

	wrong = contended = 0;
	for (uint64_t i = 0; i < n; i++) {
		shmlimit_reset(l, SHMLIMIT_ALL_RULES, NULL, 0);
		clock_ns += SECOND + rng_below(&rng, SECOND);
		slow_ns = 0;
		for (int calls = 0; calls < 4; calls++) {
			denied_call();
			compare("after a denied call");
			pass_time();
			take_both(some_tokens());
			compare("after another one");
		}
	}
	is(wrong, 0, "%s: a slow call that is denied gives back no more than it took, and in no time all of it",
	   kind->name);
	ok(contended > n / 4, "%s: others took while it was slow", kind->name);
}

/* ---- One by one ---- */

static int rule;
static int taken; /* what another one was answered while the call was stopped */

static void others_reserve(void)
{
	taken = shmlimit_reserve(l, rule, KEY, strlen(KEY), 5, UINT64_MAX, &r);
}

static void in_debt(void)
{
	uint64_t wait_ns;

	rule = unit_rule_of(
		l, "debt",
		(struct shmlimit_rule){ .capacity = 5, .refill = 1, .period_ns = SECOND, .max_wait_ns = 100 * SECOND });
	in_between = others_reserve;
	ask_in_vain(rule, KEY, 3, NEW);
	is(taken, SHMLIMIT_ALLOWED, "another one reserves behind a call that is denied");
	wait_ns = r.wait_ns;
	is(wait_ns, 3 * SECOND, "it waits for what that one took");
	clock_ns += wait_ns;
	is(take(rule, KEY, 1), SHMLIMIT_DENIED, "when it goes on there is nothing left for a third one");
}

static void others_take_later(void)
{
	clock_ns += SECOND / 4;
	taken = take(rule, KEY, 2);
}

static void in_parts(void)
{
	rule = unit_rule_of(l, "parts", (struct shmlimit_rule){ .capacity = 10, .refill = 1, .period_ns = SECOND });
	in_between = others_take_later;
	ask_in_vain(rule, KEY, 4, NEW);
	is(taken, SHMLIMIT_ALLOWED, "another one takes a quarter of a token's time later");
	is(left(rule, KEY), 8, "what is given back lacks that quarter, which a full key would not have got");
	clock_ns += SECOND - 1;
	is(left(rule, KEY), 8, "just before a token's time is over there is none more");
	clock_ns += 1;
	is(left(rule, KEY), 9, "when it is over there is one more");
}

static struct shmlimit_rule changed = {
	.struct_size = sizeof(changed), .capacity = 10, .refill = 1, .period_ns = SECOND
};

static void others_change_the_rule(void)
{
	changed.capacity = 20;
	taken = shmlimit_rule_set(l, "changed", &changed);
}

static void others_replace_the_rule(void)
{
	shmlimit_rule_remove(l, "replaced");
	taken = unit_rule_of(l, "replaced", (struct shmlimit_rule){ .capacity = 10, .refill = 1, .period_ns = SECOND });
	take(taken, KEY, 6);
}

static void under_another_rule(void)
{
	rule = shmlimit_rule_set(l, "changed", &changed);
	in_between = others_change_the_rule;
	ask_in_vain(rule, KEY, 4, NEW);
	is(taken, rule, "a rule is changed during a denied call");
	is(left(rule, KEY), 6, "what was taken under the old one does not come back");
	rule = unit_rule_of(l, "replaced", (struct shmlimit_rule){ .capacity = 10, .refill = 1, .period_ns = SECOND });
	in_between = others_replace_the_rule;
	ask_in_vain(rule, KEY, 4, NEW);
	is(taken, rule, "a rule is removed during a denied call, and its id given to another one");
	is(left(rule, KEY), 4, "the other one gets nothing back");
}

static void others_take_at_once(void)
{
	taken = take(rule, KEY, 3);
}

static void others_wait_their_turn(void)
{
	taken = shmlimit_reserve(l, rule, KEY, strlen(KEY), 3, UINT64_MAX, &r);
}

/* 10 a second, of which 100 s without requests make 3 tokens cost as 9: the store is as cold as it was. */
static void warming_up(void)
{
	uint64_t cold, wait_ns;

	rule = unit_rule_of(l, "warmup",
	                    (struct shmlimit_rule){ .algorithm = SHMLIMIT_WARMUP,
	                                            .refill = 10,
	                                            .period_ns = SECOND,
	                                            .warmup_ns = 100 * SECOND,
	                                            .max_wait_ns = 100 * SECOND });
	cold = left(rule, ORACLE);
	in_between = others_wait_their_turn;
	ask_in_vain(rule, KEY, 4, NEW);
	is(taken, SHMLIMIT_ALLOWED, "another one waits behind a denied call for a warm-up");
	wait_ns = r.wait_ns;
	ok(wait_ns >= 4 * SECOND / 10, "as long as what that call took costs");
	is(left(rule, KEY), cold - 3, "the store has all that the denied call took of it");
	is(shmlimit_reserve(l, rule, KEY, strlen(KEY), 1, UINT64_MAX, &r), SHMLIMIT_ALLOWED, "a third one waits, too");
	ok(r.wait_ns >= wait_ns + 3 * SECOND / 10, "the third one waits until the second one has paid");
}

static void others_lease_again(void)
{
	clock_ns += 2 * SECOND;
	shmlimit_lease_deposit(l, rule, KEY, strlen(KEY), 8, 6, 0, SECOND, NULL);
}

static void leased(void)
{
	rule = unit_rule_of(l, "lease",
	                    (struct shmlimit_rule){
				    .algorithm = SHMLIMIT_LEASE, .capacity = 100, .refill = 1, .period_ns = SECOND });
	shmlimit_lease_deposit(l, rule, KEY, strlen(KEY), 8, 0, 0, SECOND, NULL);
	in_between = others_take_at_once;
	ask_in_vain(rule, KEY, 4, KNOWN);
	is(taken, SHMLIMIT_ALLOWED, "another one takes of a lease during a denied call");
	is(left(rule, KEY), 5, "what the call took comes back into the same lease");
	in_between = others_lease_again;
	ask_in_vain(rule, KEY, 4, KNOWN);
	is(left(rule, KEY), 2, "nothing comes back into a later lease");
}

static uint64_t long_ns;

static void others_come_later(void)
{
	clock_ns += long_ns;
}

/*
 * The denied call is stopped, for up to years. What it took from was in force, and is over. The word of this count tells 34 s:
 * 16 bits of time beside 2^47.
 */
static void stopped_for_long(void)
{
	static const uint64_t stops_ns[] = { SECOND, 4 * SECOND, 18 * SECOND, 20 * SECOND, 34 * SECOND };

	rule = unit_rule_of(l, "long",
	                    (struct shmlimit_rule){ .algorithm = SHMLIMIT_COUNTER,
	                                            .capacity = (uint64_t)1 << 47,
	                                            .period_ns = SECOND });
	for (size_t i = 0; i < sizeof(stops_ns) / sizeof(stops_ns[0]) + 1; i++) {
		uint64_t began_ns = clock_ns;

		shmlimit_reset(l, rule, KEY, strlen(KEY));
		take(rule, KEY, 100);
		clock_ns += SECOND / 2;
		long_ns = i > 0 ? stops_ns[i - 1] : 10 * 366 * 86400 * SECOND;
		in_between = others_come_later;
		ask_in_vain(rule, KEY, 100, NEW);
		is(left(rule, KEY), (uint64_t)1 << 47,
		   "after %" PRIu64 " s what a denied call took from is over, and does not come back",
		   (clock_ns - began_ns) / SECOND);
	}
}

int main(void)
{
	struct shmlimit_options options = { .struct_size = sizeof(options), .slots = 64, .rules = 16 };

	rng = (struct rng){ rng_seed() };
	clock_ns = 1000000 * SECOND;
	l = unit_create("undo", &options);
	denying = unit_rule_of(l, "denying",
	                       (struct shmlimit_rule){ .capacity = 1, .refill = 1, .period_ns = 1000 * SECOND });
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		char name[16];

		kind = &kinds[i];
		snprintf(name, sizeof(name), "kind%zu", i);
		kinds[i].id = unit_rule_of(l, name, kind->rule);
		beside_the_oracle();
	}
	in_debt();
	in_parts();
	warming_up();
	leased();
	under_another_rule();
	stopped_for_long();
	shmlimit_close(l);
	return tap_done();
}
