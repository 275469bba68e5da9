/*
 * growth: eight processes decide and a ninth lets the table grow, from 2^10 slots
 * to 2^20, changes rules and verifies; all are killed at random and replaced.
 * For 10 seconds, or the environment's SECONDS, each round with a segment of its own.
 *
 * Keys of the watched rules are only taken from, so that their history can be
 * judged (I1): through all growths no stretch of time has more than the rule ever
 * permitted. Others are reserved, refunded and reset, and refill, so that slots
 * are reclaimed on the way. At the end of each round the segment is sound (I4), and
 * when no process is left to ask, the last table can be left as soon as all has refilled.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "../process/process.h"

#include "history.h"

#define WORKERS 8
#define GROWER WORKERS
#define SLOTS_FIRST (1 << 10)
#define SLOTS_LAST (1 << 20)
#define RING 4
#define KEYS 40 /* of each watched rule */
#define WILD_KEYS 500
#define KILLS_A_ROUND 20
#define CALLS_A_KILL 8000
#define SECONDS_MORE 600 /* for a round to come to the last size */
#define MILLISECOND ((uint64_t)1000000)

static const struct watched {
	const char *name;
	struct shmlimit_rule version[2]; /* the second gives more */
} watched[] = {
	{ "funnel",
	  { { .capacity = 20, .refill = 1, .period_ns = MILLISECOND },
	    { .capacity = 20, .refill = 2, .period_ns = MILLISECOND } } },
	{ "window",
	  { { .algorithm = SHMLIMIT_WINDOW, .capacity = 3, .period_ns = 5 * MILLISECOND },
	    { .algorithm = SHMLIMIT_WINDOW, .capacity = 4, .period_ns = 5 * MILLISECOND } } },
	/* Of these the first change needs larger cells. */
	{ "window.large",
	  { { .algorithm = SHMLIMIT_WINDOW, .capacity = 10, .period_ns = 5 * MILLISECOND },
	    { .algorithm = SHMLIMIT_WINDOW, .capacity = 300, .period_ns = 5 * MILLISECOND } } },
	{ "hold",
	  { { .algorithm = SHMLIMIT_HOLD, .capacity = 2, .period_ns = 5 * MILLISECOND },
	    { .algorithm = SHMLIMIT_HOLD, .capacity = 100, .period_ns = 5 * MILLISECOND } } },
};
#define WATCHED (sizeof(watched) / sizeof(watched[0]))

struct play {
	struct shmlimit *l;
	int id[WATCHED], wild;
	uint64_t seed;
	_Atomic uint64_t calls, growths, put_off, changes, unsound;
	struct history history;
	struct story story;
};

static struct play *play;

static struct {
	uint64_t rounds, whole, kills, admitted, excesses, truncated, left;
	int ended_badly;
} sum;

static void watched_take(struct rng *rng)
{
	uint32_t i = (uint32_t)rng_below(rng, WATCHED), key = (uint32_t)rng_below(rng, KEYS);
	int has_places = watched[i].version[0].algorithm == SHMLIMIT_HOLD;
	uint64_t tokens = has_places ? 1 : 1 + rng_below(rng, 3), began_ns = shmlimit_now(play->l);
	int answer = shmlimit_take(play->l, play->id[i], &key, sizeof(key), tokens, NULL);

	worker_check(answer >= 0, "%s: %s", watched[i].name, shmlimit_strerror(answer));
	if (answer == SHMLIMIT_ALLOWED)
		history_add(&play->history, i, key, tokens, began_ns, shmlimit_now(play->l));
}

static void wild_call(struct rng *rng)
{
	uint64_t key = rng_below(rng, WILD_KEYS), n = 1 + rng_below(rng, 3);
	int answer;

	switch (rng_below(rng, 5)) {
	case 0:
		answer = shmlimit_refund(play->l, play->wild, &key, sizeof(key), n, NULL);
		break;
	case 1:
		answer = shmlimit_reserve(play->l, play->wild, &key, sizeof(key), n, MILLISECOND, NULL);
		break;
	case 2:
		answer = shmlimit_reset(play->l, play->wild, &key, sizeof(key));
		break;
	case 3:
		answer = shmlimit_peek(play->l, play->wild, &key, sizeof(key), n, NULL);
		break;
	default:
		answer = shmlimit_take(play->l, play->wild, &key, sizeof(key), n, NULL);
	}
	worker_check(answer >= 0, "wild: %s", shmlimit_strerror(answer));
}

static int set_rule(const char *name, struct shmlimit_rule rule)
{
	int id;

	rule.struct_size = sizeof(rule);
	id = shmlimit_rule_set(play->l, name, &rule);
	worker_check(id >= 0, "rule_set %s: %s", name, shmlimit_strerror(id));
	return id;
}

static void grow(struct rng *rng)
{
	struct shmlimit_info info = { .struct_size = sizeof(info) };
	uint32_t i = (uint32_t)rng_below(rng, WATCHED);
	struct shmlimit_problem problem;
	int error;

	switch (rng_below(rng, 4)) {
	case 0:
		set_rule(watched[i].name, watched[i].version[rng_below(rng, 2)]);
		atomic_fetch_add(&play->changes, 1);
		break;
	case 1:
		if (rng_below(rng, 8) == 0 && shmlimit_verify(stage_name, &problem, 1) != 0 &&
		    atomic_fetch_add(&play->unsound, 1) == 0)
			diag("verify: %s", problem.text);
		break;
	default:
		shmlimit_info(play->l, &info);
		error = shmlimit_grow(play->l, info.slots == SLOTS_LAST ? 0 : 4 * info.slots);
		worker_check(error == 0 || error == -EALREADY, "grow: %s", shmlimit_strerror(error));
		atomic_fetch_add(error == 0 ? &play->growths : &play->put_off, 1);
	}
	sched_yield();
}

static void work(struct crew *crew, int index)
{
	struct rng rng = { play->seed ^ (uint64_t)getpid() << 16 };

	(void)crew;
	for (;;) {
		if (index == GROWER)
			grow(&rng);
		else if (rng_below(&rng, 3) == 0 || history_is_nearly_full(&play->history))
			wild_call(&rng); /* is not written down: a fast machine would fill the history within a round */
		else
			watched_take(&rng);
		atomic_fetch_add(&play->calls, index != GROWER);
	}
}

/* Did a key get more than the version that gives more permits? */
static int exceeds(uint32_t i, uint32_t key)
{
	const struct shmlimit_rule *rule = &watched[i].version[1];
	uint64_t got;

	history_tell(&play->history, i, key, &play->story);
	if (rule->algorithm != SHMLIMIT_FUNNEL)
		got = story_most(&play->story, rule->period_ns);
	else
		got = story_burst(&play->story, rule->refill, rule->period_ns, 1000);
	if (got > rule->capacity)
		diag("rule %s, key %u: %" PRIu64 " tokens where %" PRIu64 " are permitted", watched[i].name, key, got,
		     rule->capacity);
	return got > rule->capacity;
}

/* Does the table have its last size? */
static int is_whole(void)
{
	struct shmlimit_info info = { .struct_size = sizeof(info) };

	shmlimit_info(play->l, &info);
	return info.slots == SLOTS_LAST;
}

static void judge(void)
{
	for (uint32_t i = 0; i < WATCHED; i++)
		for (uint32_t key = 0; key < KEYS; key++)
			sum.excesses += (uint64_t)exceeds(i, key);
	sum.admitted += history_length(&play->history);
	sum.truncated += history_length(&play->history) != atomic_load(&play->history.n);
	sum.whole += (uint64_t)is_whole();
	/* An hour later no key lacks a token. */
	sum.left += shmlimit_grow(at_time(play->l, shmlimit_now(play->l) + 3600000 * MILLISECOND), 0) == 0;
	at_clock(play->l);
	play->unsound += shmlimit_verify(stage_name, NULL, 0) != 0;
}

static void begin(void)
{
	struct shmlimit_options options = { .struct_size = sizeof(options),
		                            .slots = SLOTS_FIRST,
		                            .slots_max = SLOTS_LAST };
	int error = shmlimit_create(stage_name, &options, &play->l);

	if (error != 0)
		bail("create: %s", shmlimit_strerror(error));
	for (uint32_t i = 0; i < WATCHED; i++)
		play->id[i] = set_rule(watched[i].name, watched[i].version[0]);
	play->wild = set_rule(
		"wild", (struct shmlimit_rule){
				.capacity = 5, .refill = 1, .period_ns = 2 * MILLISECOND, .max_wait_ns = MILLISECOND });
}

/*
 * A table can grow again when its keys have moved or refilled, which takes time,
 * however fast calls are: so a round goes on until one has come to the last size,
 * as long as there is room for its history.
 */
static int goes_on(int kills)
{
	return kills < KILLS_A_ROUND ||
	       (sum.whole == 0 && !is_whole() && history_length(&play->history) < HISTORY_MAX / 2);
}

static void round_of(struct rng *rng)
{
	struct crew crew;
	int kills;

	begin();
	play->seed = rng_draw(rng);
	history_clear(&play->history);
	crew_start(&crew, WORKERS + 1, work, NULL);
	for (kills = 0; goes_on(kills); kills++) {
		uint64_t until = atomic_load(&play->calls) + rng_below(rng, CALLS_A_KILL);
		/* Every third time the grower. */
		int victim = rng_below(rng, 3) == 0 ? GROWER : (int)rng_below(rng, WORKERS);

		while (atomic_load(&play->calls) < until)
			crew_await();
		sum.ended_badly += !crew_kill(&crew, victim);
		crew_spawn(&crew, victim, 0);
	}
	for (int i = 0; i <= WORKERS; i++)
		kill(crew.pid[i], SIGKILL);
	for (int i = 0; i <= WORKERS; i++)
		sum.ended_badly += !crew_kill(&crew, i);
	munmap(crew.gate, sizeof(*crew.gate));
	sum.kills += (uint64_t)kills + WORKERS + 1;
	sum.rounds++;
	judge();
	stage_hide();
	shmlimit_close(play->l);
}

static int seen_enough(void)
{
	return sum.whole > 0 && atomic_load(&play->put_off) > 0 && atomic_load(&play->changes) > 0;
}

int main(void)
{
	const char *given = getenv("SECONDS");
	uint64_t seconds = given != NULL ? strtoull(given, NULL, 10) : scaled(5), passed = 0;
	struct rng rng;
	time_t began = time(NULL);

	if (SWAPS_ARE_PRIVATE)
		return tap_skip_all("ThreadSanitizer does not swap atomically between processes");
	stage_begin("growth");
	alarm((unsigned)seconds + SECONDS_MORE + WATCHDOG_SECONDS);
	play = shared_memory(sizeof(*play));
	rng.state = rng_seed();
	while (sum.excesses == 0 && sum.ended_badly == 0 &&
	       (passed < seconds || (passed < seconds + SECONDS_MORE && !seen_enough()))) {
		round_of(&rng);
		passed = (uint64_t)(time(NULL) - began);
	}
	diag("%" PRIu64 " rounds, %" PRIu64 " to the last size, %" PRIu64 " kills, %" PRIu64 " calls, %" PRIu64
	     " admitted, %" PRIu64 " growths, %" PRIu64 " put off, %" PRIu64 " rule changes",
	     sum.rounds, sum.whole, sum.kills, atomic_load(&play->calls), sum.admitted, atomic_load(&play->growths),
	     atomic_load(&play->put_off), atomic_load(&play->changes));
	is(sum.ended_badly, 0, "nine processes die by the killer alone");
	is(sum.excesses, 0, "no key is admitted more in any stretch of time than its rule ever permitted");
	is(play->unsound, 0, "the segment is sound all the while");
	is(sum.truncated, 0, "the histories are complete");
	is(sum.left, sum.rounds, "nothing that the killed left keeps a table from being left");
	ok(sum.whole > 0, "tables grew from 2^10 slots to 2^20");
	ok(atomic_load(&play->put_off) > 0, "keys were on the way meanwhile");
	ok(atomic_load(&play->changes) > 0, "rules were changed while the table grew");
	return tap_done();
}
