/*
 * grow: while eight processes decide the table grows, 2^10 slots to 2^20, and each
 * key is admitted what it would have been: I1 and I2, to the token; no call fails.
 *
 * As in conserve the clock is a shared number, and a round ends with taking what
 * is left; the table grows in the middle of each, and only when all keys have
 * moved does the next round begin. Keys are of a funnel, and of a window that
 * nothing ever leaves. One process slept through all of it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "process.h"

#include "limiter.h"

#define WORKERS 8
#define KEYS 300
#define CAPACITY 1000
#define PERIOD_NS 1000000u
#define WINDOW 4
#define FIRST_NS ((uint64_t)1000000000 * PERIOD_NS)
#define ROUND_NS 400000000u /* below half the time to full, and a second: an older reading is honest */
#define STEP_NS 2000u
#define SLOTS_FIRST (1 << 10)
#define SLOTS_LAST (1 << 20)

enum { FUNNEL, WINDOWED, RULES };

struct play {
	struct shmlimit *l;
	int rule[RULES];
	uint64_t seed;
	_Atomic uint64_t now_ns, end_ns, decisions, errors;
	_Atomic int stop;
	_Atomic int64_t admitted[RULES][KEYS];
};

static struct play *play;

static int take(struct shmlimit *l, int which, uint64_t key, uint64_t cost, uint64_t now_ns)
{
	int answer = shmlimit_take(at_time(l, now_ns), play->rule[which], &key, sizeof(key), cost, NULL);

	if (answer < 0)
		atomic_fetch_add(&play->errors, 1);
	else if (answer == SHMLIMIT_ALLOWED)
		atomic_fetch_add(&play->admitted[which][key], (int64_t)cost);
	return answer;
}

static void refund(struct shmlimit *l, uint64_t key, uint64_t tokens, uint64_t now_ns)
{
	/* Booked before it is done: what comes back may be taken again at once. */
	atomic_fetch_sub(&play->admitted[FUNNEL][key], (int64_t)tokens);
	if (shmlimit_refund(at_time(l, now_ns), play->rule[FUNNEL], &key, sizeof(key), tokens, NULL) != 0)
		atomic_fetch_add(&play->errors, 1);
}

static void decide_for_ever(struct crew *crew, int index)
{
	struct rng rng = { play->seed ^ (uint64_t)index ^ atomic_load(&play->end_ns) };
	uint64_t now_ns = atomic_load(&play->now_ns);
	struct shmlimit *l = play->l;
	struct shmlimit_result r;

	/* Half of them have a mapping of their own, the others learn of each table by themselves. */
	if (index % 2 == 1)
		worker_check(shmlimit_open(stage_name, 0, NULL, &l) == 0, "worker %d cannot open the segment", index);
	preempt_often();
	gate_pass(crew->gate);
	while (!atomic_load(&play->stop)) {
		uint64_t step_ns = rng_below(&rng, 2 * STEP_NS), key = rng_below(&rng, KEYS);
		uint64_t cost = 1 + rng_below(&rng, 9);

		if (rng_below(&rng, 4) != 0 &&
		    atomic_load(&play->now_ns) + 2 * STEP_NS * WORKERS < atomic_load(&play->end_ns))
			now_ns = atomic_fetch_add(&play->now_ns, step_ns) + step_ns;
		if (take(l, FUNNEL, key, cost, now_ns) == SHMLIMIT_ALLOWED && rng_below(&rng, 4) == 0)
			refund(l, key, rng_below(&rng, cost + 1), now_ns);
		if (rng_below(&rng, 8) == 0)
			take(l, WINDOWED, key, 1 + rng_below(&rng, 2), now_ns);
		if (shmlimit_peek(at_time(l, now_ns), play->rule[FUNNEL], &key, sizeof(key), 0, &r) != 0)
			atomic_fetch_add(&play->errors, 1);
		atomic_fetch_add(&play->decisions, 1);
	}
}

static void take_rest(struct shmlimit *l)
{
	uint64_t now_ns = atomic_load(&play->now_ns);

	for (uint64_t key = 0; key < KEYS; key++) {
		while (take(l, FUNNEL, key, 100, now_ns) == SHMLIMIT_ALLOWED)
			;
		for (int which = 0; which < RULES; which++)
			while (take(l, which, key, 1, now_ns) == SHMLIMIT_ALLOWED)
				;
	}
}

static unsigned keys_off(int which, int64_t want)
{
	unsigned off = 0;

	for (int key = 0; key < KEYS; key++) {
		int64_t got = atomic_load(&play->admitted[which][key]);

		if (got != want && off++ < 5)
			diag("key %d of rule %d: admitted %" PRId64 ", want %" PRId64, key, which, got, want);
	}
	return off;
}

/* This many more decisions. */
static void let_decide(uint64_t n)
{
	uint64_t before = atomic_load(&play->decisions);

	while (atomic_load(&play->decisions) < before + n)
		crew_await();
}

/* One round: the table grows to `slots`. Returns how often it was asked until all keys had moved. */
static unsigned grow_beside(uint64_t slots, unsigned *bad)
{
	struct crew crew;
	unsigned asked = 0;
	int error;

	atomic_store(&play->stop, 0);
	atomic_store(&play->end_ns, atomic_load(&play->now_ns) + ROUND_NS);
	crew_start(&crew, WORKERS, decide_for_ever, NULL);
	let_decide(scaled(4000));
	error = shmlimit_grow(at_time(play->l, atomic_load(&play->now_ns)), slots);
	if (error != 0)
		bail("grow: %s", shmlimit_strerror(error));
	do {
		let_decide(200);
		error = shmlimit_grow(at_time(play->l, atomic_load(&play->now_ns)), 0);
		asked++;
	} while (error == -EALREADY);
	if (error != 0)
		bail("finish growing: %s", shmlimit_strerror(error));
	let_decide(scaled(2000));
	atomic_store(&play->stop, 1);
	*bad += (unsigned)crew_wait(&crew);
	return asked;
}

int main(void)
{
	struct shmlimit_options options = { .struct_size = sizeof(options),
		                            .slots = SLOTS_FIRST,
		                            .slots_max = SLOTS_LAST };
	struct shmlimit_rule window = { .struct_size = sizeof(window),
		                        .algorithm = SHMLIMIT_WINDOW,
		                        .capacity = WINDOW,
		                        .period_ns = FIRST_NS / 1000 };
	struct shmlimit_info info = { .struct_size = sizeof(info) };
	unsigned bad = 0, off = 0, asked = 0, rounds = 0;
	struct shmlimit_counters c;
	struct shmlimit *sleeper;

	if (SWAPS_ARE_PRIVATE)
		return tap_skip_all("ThreadSanitizer does not swap atomically between processes");
	stage_begin("grow");
	play = shared_memory(sizeof(*play));
	play->seed = rng_seed();
	if (shmlimit_create(stage_name, &options, &play->l) != 0 || shmlimit_open(stage_name, 0, NULL, &sleeper) != 0)
		bail("create");
	atomic_store(&play->now_ns, FIRST_NS);
	play->rule[FUNNEL] = stage_rule(play->l, "funnel", CAPACITY, 1, PERIOD_NS);
	play->rule[WINDOWED] = stage_rule_of(play->l, "window", window);
	/* From here on no funnel is ever full: nothing that comes back is lost. */
	take_rest(play->l);
	for (uint64_t slots = SLOTS_FIRST * 4; slots <= SLOTS_LAST && off == 0 && bad == 0; slots *= 4) {
		uint64_t refilled;

		asked += grow_beside(slots, &bad);
		take_rest(play->l);
		refilled = (atomic_load(&play->now_ns) - FIRST_NS) / PERIOD_NS;
		off += keys_off(FUNNEL, (int64_t)(CAPACITY + refilled)) + keys_off(WINDOWED, WINDOW);
		rounds++;
	}
	is(bad, 0, "workers end well while the table grows");
	is(atomic_load(&play->errors), 0, "no call fails");
	is(off, 0, "a key is admitted its capacity and what refilled, to the token, through %u growths", rounds);
	shmlimit_info(play->l, &info);
	is(info.slots, SLOTS_LAST, "the table has 2^20 slots");
	ok(asked > rounds, "keys were moving while others were asked for");
	take_rest(sleeper);
	is(keys_off(WINDOWED, WINDOW), 0, "a process that was stopped while the table grew decides on the new table");
	is(keys_off(FUNNEL, (int64_t)(CAPACITY + (atomic_load(&play->now_ns) - FIRST_NS) / PERIOD_NS)), 0,
	   "a process that was stopped while the table grew counts what refilled in the funnel since");
	c = counters_of(play->l, SHMLIMIT_ALL_RULES);
	is(c.claims, 2 * KEYS, "each key was given a slot once");
	ok(c.evictions == 0 && c.no_slot == 0, "none was taken from another");
	ok(c.failed_cas > 0, "workers did contend");
	is(shmlimit_verify(stage_name, NULL, 0), 0, "the segment is sound");
	stage_hide();
	shmlimit_close(sleeper);
	shmlimit_close(play->l);
	return tap_done();
}
