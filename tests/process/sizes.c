/*
 * sizes: logs of all sizes in one table, while workers are killed.
 *
 * Set: a window of 10 is left alone, and another one beside it is set 1,000 times in a row, from 1 to 3,000. No time passes. No
 * decision is refused for want of room or of the rule, no key of either is admitted more than its largest limit was, and in
 * the end each gets exactly the rest of it, less what killed workers held.
 *
 * Turns: five rules, of 1 to 1,000 at once or in a window, and few slots. When all keys have been used up, time passes and new
 * keys take the slots, of other rules than before. In each turn each key gets its limit, less what killed workers held.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "process.h"

#define WORKERS 4
#define START_NS 1000000000000000u
#define PERIOD_NS 3600000000000u

#define SETS 1000u
#define MOST 3000u /* the largest limit of the rule that is set, at the end */
#define SET_KEYS 8
#define KILLS 100u
#define SET_CALLS 30u /* between two sets */

#define RULES 5
#define TURN_KEYS 6
#define TURNS 40u

static const struct {
	const char *name;
	uint32_t algorithm;
	uint64_t capacity;
} rules[RULES] = { { "one", SHMLIMIT_WINDOW, 1 },
	           { "few", SHMLIMIT_HOLD, 7 },
	           { "some", SHMLIMIT_WINDOW, 50 },
	           { "places", SHMLIMIT_HOLD, 130 },
	           { "many", SHMLIMIT_WINDOW, 1000 } };

struct play {
	struct shmlimit *l;
	int id[RULES], ten, changing;
	uint64_t seed;
	_Atomic uint64_t errors, sets, calls, turn, done[WORKERS];
	_Atomic uint64_t of_ten[SET_KEYS], of_changing[SET_KEYS];
	_Atomic uint64_t granted[RULES][TURN_KEYS];
};

static struct play *play;

static struct {
	uint64_t kills, badly, over, short_of, lost, no_slot;
} sum;

static int set(const char *name, uint32_t algorithm, uint64_t capacity)
{
	struct shmlimit_rule rule = {
		.struct_size = sizeof(rule), .algorithm = algorithm, .capacity = capacity, .period_ns = PERIOD_NS
	};

	return shmlimit_rule_set(at_time(play->l, START_NS), name, &rule);
}

static void make(uint64_t slots)
{
	struct shmlimit_options o = {
		.struct_size = sizeof(o), .slots = slots, .slots_max = slots, .on_full = SHMLIMIT_FULL_DENY
	};

	(void)shmlimit_destroy(stage_name);
	if (shmlimit_create(stage_name, &o, &play->l) != 0)
		bail("create");
}

static int ask(int id, uint32_t algorithm, uint64_t key, uint64_t now_ns)
{
	struct shmlimit_place place = { .struct_size = sizeof(place) };
	int answer = algorithm == SHMLIMIT_HOLD
	                     ? shmlimit_enter(at_time(play->l, now_ns), id, &key, sizeof(key), &place, NULL)
	                     : shmlimit_take(at_time(play->l, now_ns), id, &key, sizeof(key), 1, NULL);

	if (answer < 0)
		atomic_fetch_add(&play->errors, 1);
	return answer == SHMLIMIT_ALLOWED;
}

static uint64_t without_slot(void)
{
	struct shmlimit_info info = { .struct_size = sizeof(info) };
	uint64_t n = 0;

	shmlimit_info(play->l, &info);
	for (uint32_t id = 0; id < info.rules; id++) {
		struct shmlimit_counters c = { .struct_size = sizeof(c) };

		if (shmlimit_counters(play->l, (int)id, &c) == 0)
			n += c.no_slot;
	}
	return n;
}

/* Kill a worker after some more calls, and start another. */
static void kill_one(struct crew *crew, int index, struct rng *rng, uint64_t most)
{
	uint64_t until = atomic_load(&play->calls) + rng_below(rng, most);

	/* BOUND: the worker may have nothing left to do. */
	for (int i = 0; i < 1000 && atomic_load(&play->calls) < until; i++)
		sched_yield();
	sum.badly += !crew_kill(crew, index);
	sum.kills++;
	crew_spawn(crew, index, 0);
}

/* ---- Set ---- */

static void set_work(struct crew *crew, int index)
{
	struct rng rng = { play->seed + (uint64_t)getpid() };

	(void)crew;
	/* The last worker is the one that sets. */
	while (index == WORKERS - 1) {
		if (atomic_load(&play->calls) < SET_CALLS * atomic_load(&play->sets)) {
			sched_yield();
			continue;
		}
		worker_check(set("changing", SHMLIMIT_WINDOW, 1 + rng_below(&rng, rng_below(&rng, MOST) + 1)) >= 0,
		             "set");
		atomic_fetch_add(&play->sets, 1);
	}
	for (;;) {
		uint64_t key = rng_below(&rng, SET_KEYS);

		if (atomic_load(&play->calls) > SET_CALLS * (atomic_load(&play->sets) + 1)) {
			sched_yield();
			continue;
		}
		if (ask(play->ten, SHMLIMIT_WINDOW, key, START_NS))
			atomic_fetch_add(&play->of_ten[key], 1);
		if (ask(play->changing, SHMLIMIT_WINDOW, key, START_NS))
			atomic_fetch_add(&play->of_changing[key], 1);
		atomic_fetch_add(&play->calls, 1);
	}
}

static void settle(_Atomic uint64_t *granted, int id, uint64_t most)
{
	for (uint64_t key = 0; key < SET_KEYS; key++) {
		uint64_t n = atomic_load(&granted[key]);

		sum.over += n > most;
		while (ask(id, SHMLIMIT_WINDOW, key, START_NS))
			n++;
		sum.over += n > most;
		sum.lost += n < most ? most - n : 0;
	}
}

static void sets(struct rng *rng)
{
	struct crew crew;

	make(64);
	play->ten = set("ten", SHMLIMIT_WINDOW, 10);
	play->changing = set("changing", SHMLIMIT_WINDOW, 50);
	crew_start(&crew, WORKERS, set_work, NULL);
	while (atomic_load(&play->sets) < SETS || sum.kills < KILLS)
		kill_one(&crew, (int)rng_below(rng, WORKERS), rng, 8 * SET_CALLS);
	for (int i = 0; i < WORKERS; i++)
		sum.badly += !crew_kill(&crew, i);
	is(set("changing", SHMLIMIT_WINDOW, MOST), play->changing, "the rule is set a last time");
	settle(play->of_ten, play->ten, 10);
	settle(play->of_changing, play->changing, MOST);
	is(sum.badly, 0, "set: no worker dies of another signal, in %llu kills", (unsigned long long)sum.kills);
	is(play->errors, 0, "set: no decision fails while a window is set %llu times beside another",
	   (unsigned long long)play->sets);
	is(without_slot(), 0, "set: none finds no room");
	is(sum.over, 0, "set: no key is admitted more than the largest limit");
	ok(sum.lost <= sum.kills + WORKERS, "set: in the end keys get the rest of it; %llu are lost by %llu kills",
	   (unsigned long long)sum.lost, (unsigned long long)sum.kills + WORKERS);
	is(shmlimit_verify(stage_name, NULL, 0), 0, "set: the segment is sound");
	shmlimit_close(play->l);
}

/* ---- Turns ---- */

static void turn_work(struct crew *crew, int index)
{
	(void)crew;
	for (;;) {
		uint64_t turn = atomic_load(&play->turn);

		if (atomic_load(&play->done[index]) > turn) {
			sched_yield();
			continue;
		}
		for (int r = 0; r < RULES; r++)
			for (uint64_t k = 0; k < TURN_KEYS; k++)
				while (ask(play->id[r], rules[r].algorithm, turn * TURN_KEYS + k,
				           START_NS + turn * 3 * PERIOD_NS)) {
					atomic_fetch_add(&play->granted[r][k], 1);
					atomic_fetch_add(&play->calls, 1);
				}
		atomic_store(&play->done[index], turn + 1);
	}
}

static int all_done(uint64_t turn)
{
	for (int i = 0; i < WORKERS; i++)
		if (atomic_load(&play->done[i]) <= turn)
			return 0;
	return 1;
}

static void turns(struct rng *rng)
{
	struct crew crew;

	memset(&sum, 0, sizeof(sum));
	/*
	 * 64 slots for the 30 keys of a turn, so that those of the next ones take them. WHY NOT fewer: a key whose two homes
	 * are close has 16 slots to choose from, and of 36 slots these are all taken in one run of 40.
	 */
	make(64);
	for (int r = 0; r < RULES; r++)
		play->id[r] = set(rules[r].name, rules[r].algorithm, rules[r].capacity);
	crew_start(&crew, WORKERS, turn_work, NULL);
	for (uint64_t turn = 0; turn < scaled(TURNS); turn++) {
		uint64_t before = sum.kills, missing = 0;

		for (int i = 0; i < 3; i++)
			kill_one(&crew, (int)rng_below(rng, WORKERS), rng, 3000);
		while (!all_done(turn))
			sched_yield();
		for (int r = 0; r < RULES; r++)
			for (int k = 0; k < TURN_KEYS; k++) {
				uint64_t n = atomic_exchange(&play->granted[r][k], 0);

				sum.over += n > rules[r].capacity;
				missing += n < rules[r].capacity ? rules[r].capacity - n : 0;
			}
		sum.short_of += missing > sum.kills - before;
		sum.lost += missing;
		atomic_store(&play->turn, turn + 1);
	}
	for (int i = 0; i < WORKERS; i++)
		sum.badly += !crew_kill(&crew, i);
	is(sum.badly, 0, "turns: no worker dies of another signal, in %llu kills", (unsigned long long)sum.kills);
	is(play->errors, 0, "turns: no decision fails");
	is(without_slot(), 0, "turns: each key has a slot, and memory for its log or places");
	is(sum.over, 0, "turns: no key is admitted more than its limit");
	is(sum.short_of, 0, "turns: each key gets all of it, less what killed workers held (%llu)",
	   (unsigned long long)sum.lost);
	is(shmlimit_verify(stage_name, NULL, 0), 0, "turns: the segment is sound");
	shmlimit_close(play->l);
}

int main(void)
{
	struct rng rng = { rng_seed() };

	stage_begin("sizes");
	play = shared_memory(sizeof(*play));
	play->seed = rng_draw(&rng);
	sets(&rng);
	turns(&rng);
	return tap_done();
}
