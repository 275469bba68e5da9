/*
 * signal: a signal handler decides on the same handle and the same keys as the decision that it interrupts: I10, and
 * with it I1 and I2. Exactly the capacity is admitted, and every decision is counted.
 *
 * A timer ticks every 50 microseconds. Each round has a key of its own, whose slot is to be claimed. The clock is the
 * round's number, so all keys of earlier rounds have refilled. It is one shared number, on which main program and
 * handler always agree. Two processes do this to one table of 16 slots, until enough ticks came inside a call.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "ticks.h"

#define WORKERS 2
#define CAPACITY 20u
#define FILL_NS 1000000u
#define HOT_CAPACITY 1000000u
#define HOT_PERIOD_NS 3600000000000u /* so slow that no round sees a token come back */
#define START_NS 1000000000000u
#define TICKS_INSIDE 2000 /* a worker, at the least */
#define TICKS_MAX 1000000 /* for contention to be seen */

struct play {
	struct shmlimit *l;
	int rule, hot_rule;
	_Atomic uint64_t round;
	_Atomic int over;
	_Atomic uint64_t admitted; /* of the key of this round */
	_Atomic uint64_t hot;      /* of the key of all rounds */
	uint64_t off;              /* rounds with another sum than the capacity */
	_Atomic uint64_t allowed, denied, errors;
	struct {
		_Atomic uint64_t ticks, inside, idle;
	} __attribute__((aligned(64))) worker[WORKERS];
};

static struct play *play;

static volatile sig_atomic_t calling;
static int own_number;

static int take(int rule, const void *key, size_t key_len, uint64_t now_ns)
{
	int answer = shmlimit_take(at_time(play->l, now_ns), rule, key, key_len, 1, NULL);

	if (answer == SHMLIMIT_ALLOWED)
		atomic_fetch_add(&play->allowed, 1);
	else if (answer == SHMLIMIT_DENIED)
		atomic_fetch_add(&play->denied, 1);
	else
		atomic_fetch_add(&play->errors, 1);
	return answer;
}

/* The key of the round, then one that is used in all of them, at a time that stands still. */
static int take_both(uint64_t round)
{
	int answer = take(play->rule, &round, sizeof(round), START_NS + 2 * round * FILL_NS);

	if (answer == SHMLIMIT_ALLOWED)
		atomic_fetch_add(&play->admitted, 1);
	if (take(play->hot_rule, "hot", 3, START_NS) == SHMLIMIT_ALLOWED)
		atomic_fetch_add(&play->hot, 1);
	return answer;
}

static void tick(int number)
{
	uint64_t round = atomic_load(&play->round);
	int before = errno;

	(void)number;
	errno = 12345;
	atomic_fetch_add(&play->worker[own_number].ticks, 1);
	atomic_fetch_add(&play->worker[own_number].inside, (uint64_t)calling);
	take_both(round);
	shmlimit_peek(at_time(play->l, START_NS + 2 * round * FILL_NS), play->rule, &round, sizeof(round), 1, NULL);
	if (errno != 12345)
		atomic_fetch_add(&play->errors, 1);
	ticks_next();
	errno = before;
}

/* Enough was seen, or more than that in vain. */
static int is_over(void)
{
	struct shmlimit_counters c = counters_of(play->l, SHMLIMIT_ALL_RULES);
	uint64_t least = UINT64_MAX, ticks = 0;

	for (int i = 0; i < WORKERS; i++) {
		uint64_t inside = atomic_load(&play->worker[i].inside);

		least = inside < least ? inside : least;
		ticks += atomic_load(&play->worker[i].ticks);
	}
	return ticks > TICKS_MAX || (least >= scaled(TICKS_INSIDE) && c.failed_cas > 0 && c.reclaims > 0 &&
	                             atomic_load(&play->hot) >= scaled(TICKS_INSIDE));
}

static void decide_under_signals(struct crew *crew, int index)
{
	uint64_t round;

	own_number = index;
	ticks_start(tick);
	do {
		int answer;

		gate_pass(crew->gate);
		round = atomic_load(&play->round);
		do {
			calling = 1;
			answer = take_both(round);
			calling = 0;
		} while (answer == SHMLIMIT_ALLOWED);
		/* Denied once, denied for good in this round; more of them for the ticks' sake. */
		for (int i = 0; i < 500; i++) {
			calling = 1;
			take_both(round);
			calling = 0;
		}
		/* A handler must not decide in a round that is being summed up. */
		ticks_hold(SIG_BLOCK);
		gate_pass(crew->gate);
		if (index == 0) {
			play->off += atomic_exchange(&play->admitted, 0) != CAPACITY;
			atomic_store(&play->round, round + 1);
			atomic_store(&play->over, is_over());
		}
		gate_pass(crew->gate);
		ticks_hold(SIG_UNBLOCK);
	} while (!atomic_load(&play->over));
}

/* Other calls, of which only decisions are for handlers, are interrupted as well. */
static void look_under_signals(struct crew *crew, int index)
{
	struct shmlimit_rule rule = { .struct_size = sizeof(rule), .capacity = 7, .refill = 1, .period_ns = 1000 };
	struct shmlimit_slot slot = { .struct_size = sizeof(slot) };
	uint64_t seen = atomic_load(&play->worker[index].inside);

	(void)crew;
	own_number = index;
	ticks_start(tick);
	for (uint32_t i = 0; atomic_load(&play->worker[index].inside) < seen + scaled(TICKS_INSIDE) / 4; i++) {
		calling = 1;
		rule.mode = i % 3;
		worker_check(shmlimit_rule_set(play->l, "other", &rule) >= 0, "rule_set fails under signals");
		for (uint64_t j = 0; j < 16; j++)
			worker_check(shmlimit_slot(play->l, j, &slot, START_NS) == 0, "slot fails under signals");
		counters_of(play->l, SHMLIMIT_ALL_RULES);
		worker_check(shmlimit_verify(stage_name, NULL, 0) == 0, "verify finds fault under signals");
		calling = 0;
	}
	ticks_hold(SIG_BLOCK);
}

int main(void)
{
	uint64_t rounds, inside = 0;
	struct shmlimit_counters c;
	struct shmlimit_result r;

	if (SWAPS_ARE_PRIVATE)
		return tap_skip_all("ThreadSanitizer does not swap atomically between processes");
	stage_begin("signal");
	play = shared_memory(sizeof(*play));
	play->l = stage_create(16, 4, SHMLIMIT_FULL_EVICT);
	play->rule = stage_rule(play->l, "signal", CAPACITY, CAPACITY, FILL_NS);
	play->hot_rule = stage_rule(play->l, "hot", HOT_CAPACITY, 1, HOT_PERIOD_NS);

	is(crew_run(WORKERS, decide_under_signals, NULL), 0, "workers end well");
	rounds = atomic_load(&play->round);
	c = counters_of(play->l, SHMLIMIT_ALL_RULES);
	for (int i = 0; i < WORKERS; i++)
		inside += atomic_load(&play->worker[i].inside);
	diag("%" PRIu64 " rounds, %" PRIu64 " ticks inside a call, %" PRIu64 " failed compare-and-swaps", rounds,
	     inside, c.failed_cas);
	is(play->off, 0, "a key that is decided on in handlers too is admitted exactly its capacity");
	shmlimit_peek(at_time(play->l, START_NS), play->hot_rule, "hot", 3, 1, &r);
	is(play->hot + r.remaining, HOT_CAPACITY, "a key that all rounds share has what is left");
	ok(play->hot >= scaled(TICKS_INSIDE), "of which much was taken");
	is(play->errors, 0, "no call fails, and none touches errno");
	is(c.allowed, play->allowed, "the counter of allowed is the sum of the answers");
	is(c.denied, play->denied, "the counter of denied is the sum of the answers");
	ok(c.reclaims > 0, "slots were claimed from keys that had refilled");
	ok(inside >= scaled(TICKS_INSIDE), "ticks did come inside calls");
	ok(c.failed_cas > 0, "handlers did make compare-and-swaps fail");

	is(crew_run(WORKERS, look_under_signals, NULL), 0,
	   "handlers decide also while rules are set, and all is looked at");
	is(play->errors, 0, "no decision fails");
	is(shmlimit_verify(stage_name, NULL, 0), 0, "the segment is sound");
	stage_hide();
	shmlimit_close(play->l);
	return tap_done();
}
