/*
 * sliding: WINDOW rules under eight processes: no stretch of a period has more than the capacity (I1), nor less if that
 * is asked for (I2), also when workers are killed (I4).
 *
 * First on a given clock that stands still while all workers drain a few keys, then moves on by a period less a
 * nanosecond, and then by that nanosecond. Next on the limiter's own clock, at full speed, judged from outside: a call
 * is admitted at some moment between its beginning and its end, so of all calls that lie in a stretch shorter than a
 * period, at most the capacity is admitted. Last, the first part again, with workers killed at random, until some were
 * killed between the state word and its log entries.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "process.h"

#include "hash.h"
#include "ring.h"
#include "table.h"

#define WORKERS 8
#define KEYS 3
#define RING 32
#define LOG_MAX 100000
#define KILLS_MAX 20000 /* rounds, for a worker to be killed inside a call */
#define SECOND ((uint64_t)1000000000)
#define T0 (1000000 * SECOND)

struct entry {
	uint32_t key;
	uint64_t began_ns, ended_ns;
};

struct play {
	struct shmlimit *l;
	int rule;
	uint64_t seed, capacity, period_ns, max_cost;
	_Atomic uint64_t now_ns, logged, errors;
	_Atomic int64_t admitted[KEYS];
	_Atomic int begun[WORKERS];
	struct entry log[LOG_MAX];
};

static struct play *play;

static void begin(uint64_t capacity, uint64_t period_ns, uint64_t max_cost)
{
	struct shmlimit_options options = { .struct_size = sizeof(options), .slots = 16, .rules = 2 };
	struct shmlimit_rule rule = {
		.struct_size = sizeof(rule), .algorithm = SHMLIMIT_WINDOW, .capacity = capacity, .period_ns = period_ns
	};
	uint64_t seed = play->seed;
	int error;

	memset(play, 0, sizeof(*play));
	/* Not as one literal: the log is more than a stack has, and a compiler may build it there. */
	play->seed = seed + 1;
	play->capacity = capacity;
	play->period_ns = period_ns;
	play->max_cost = max_cost;
	error = shmlimit_create(stage_name, &options, &play->l);
	if (error != 0)
		bail("create: %s", shmlimit_strerror(error));
	play->rule = stage_rule_of(play->l, "sliding", rule);
	atomic_store(&play->now_ns, T0);
}

static void end(void)
{
	shmlimit_close(play->l);
	shmlimit_destroy(stage_name);
}

/* Every key, until one token is denied; now and then one is given back at once. */
static void drain(struct crew *crew, int index)
{
	struct rng rng = { play->seed ^ (uint64_t)index << 32 ^ atomic_load(&play->now_ns) };
	uint64_t now_ns = atomic_load(&play->now_ns);

	(void)crew;
	for (uint32_t i = 0; i < KEYS; i++) {
		uint32_t key = (i + (uint32_t)index) % KEYS;
		uint64_t cost;
		int answer;

		do {
			cost = 1 + rng_below(&rng, play->max_cost);
			atomic_store(&play->begun[index], 1);
			answer = shmlimit_take(at_time(play->l, now_ns), play->rule, &key, sizeof(key), cost, NULL);
			if (answer == SHMLIMIT_ALLOWED)
				atomic_fetch_add(&play->admitted[key], (int64_t)cost);
			else if (answer != SHMLIMIT_DENIED)
				atomic_fetch_add(&play->errors, 1);
			if (answer == SHMLIMIT_ALLOWED && rng_below(&rng, 8) == 0) {
				atomic_fetch_sub(&play->admitted[key], (int64_t)cost);
				shmlimit_refund(at_time(play->l, now_ns), play->rule, &key, sizeof(key), cost, NULL);
			}
			atomic_store(&play->begun[index], 0);
		} while (answer == SHMLIMIT_ALLOWED || cost > 1);
	}
}

/* How many keys were not admitted just so much since the last time. */
static unsigned keys_off(int64_t want)
{
	unsigned off = 0;

	for (uint32_t key = 0; key < KEYS; key++) {
		int64_t got = atomic_exchange(&play->admitted[key], 0);

		if (got == want)
			continue;
		diag("key %u: admitted %" PRId64 ", want %" PRId64, key, got, want);
		off++;
	}
	return off;
}

static void in_step(uint64_t capacity, uint64_t max_cost)
{
	uint64_t rounds = scaled(150);
	unsigned off = 0, bad = 0;

	begin(capacity, SECOND, max_cost);
	for (uint64_t i = 0; off + bad == 0 && (i < rounds || counters_of(play->l, play->rule).failed_cas == 0); i++) {
		bad += (unsigned)crew_run(WORKERS, drain, NULL);
		off += keys_off((int64_t)capacity);
		atomic_fetch_add(&play->now_ns, SECOND - 1);
		drain(NULL, 0);
		off += keys_off(0);
		atomic_fetch_add(&play->now_ns, 1);
	}
	is(bad, 0, "window of %" PRIu64 ": workers end well", capacity);
	is(off, 0, "in each period a key is admitted just the capacity");
	is(play->errors, 0, "no call fails");
	ok(counters_of(play->l, play->rule).failed_cas > 0, "workers did contend");
	is(shmlimit_verify(stage_name, NULL, 0), 0, "the segment is sound");
	end();
}

/* ---- From outside ---- */

static void hammer(struct crew *crew, int index)
{
	struct rng rng = { play->seed + (uint64_t)index };
	uint64_t n = scaled(LOG_MAX) / (uint64_t)crew->n;

	if (n > LOG_MAX / WORKERS)
		n = LOG_MAX / WORKERS;
	for (uint64_t i = 0; i < n; i++) {
		uint32_t key = (uint32_t)rng_below(&rng, KEYS);
		uint64_t began_ns = shmlimit_now(play->l), ended_ns;
		int answer = shmlimit_take(play->l, play->rule, &key, sizeof(key), 1, NULL);

		ended_ns = shmlimit_now(play->l);
		if (answer < 0)
			atomic_fetch_add(&play->errors, 1);
		if (answer == SHMLIMIT_ALLOWED)
			play->log[atomic_fetch_add(&play->logged, 1)] = (struct entry){ key, began_ns, ended_ns };
	}
}

static int by_beginning(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	return x->began_ns < y->began_ns ? -1 : x->began_ns > y->began_ns;
}

/* The most admissions of a key that lie, from beginning to end, in a stretch shorter than the period. */
static uint64_t most_in_a_period(uint32_t key)
{
	uint64_t most = 0, n = atomic_load(&play->logged);

	for (uint64_t i = 0; i < n; i++) {
		uint64_t in = 0;

		if (play->log[i].key != key)
			continue;
		for (uint64_t j = i; j < n && play->log[j].began_ns < play->log[i].began_ns + play->period_ns; j++)
			in += play->log[j].key == key &&
			      play->log[j].ended_ns < play->log[i].began_ns + play->period_ns;
		if (in > most)
			most = in;
	}
	return most;
}

static void from_outside(uint64_t capacity, uint64_t period_ns)
{
	uint64_t most = 0, rounds = 0, admitted = 0;
	int bad = 0;

	begin(capacity, period_ns, 1);
	while (bad == 0 &&
	       (rounds < 2 || counters_of(play->l, play->rule).failed_cas == 0 || admitted <= KEYS * capacity)) {
		atomic_store(&play->logged, 0);
		bad = crew_run(WORKERS, hammer, NULL);
		qsort(play->log, atomic_load(&play->logged), sizeof(play->log[0]), by_beginning);
		for (uint32_t key = 0; key < KEYS; key++)
			if (most_in_a_period(key) > most)
				most = most_in_a_period(key);
		admitted += atomic_load(&play->logged);
		rounds++;
	}
	is(bad, 0, "%" PRIu64 " in %" PRIu64 " ns: workers end well", capacity, period_ns);
	ok(most <= capacity, "no stretch of the period has more than the capacity (%" PRIu64 ")", most);
	ok(admitted > KEYS * capacity, "windows did slide (%" PRIu64 " admitted)", admitted);
	is(play->errors, 0, "no call fails");
	is(counters_of(play->l, play->rule).allowed, admitted, "what was counted is what was answered");
	end();
}

/* ---- Killed ---- */

/* The key's slot and ring, or NULL. */
static struct layout_slot *look(uint32_t key, struct rule_view *view, struct slot_seen *seen, struct ring *ring)
{
	uint64_t hash = hash_bytes(play->l->secret, (uint32_t)play->rule, &key, sizeof(key));
	struct table_slot found;
	struct table_key wanted;
	struct look k;

	if (rule_load(play->l, (uint32_t)play->rule, view) != 0)
		bail("rule_load");
	wanted = table_key(hash, (uint32_t)play->rule, rule_version(view));
	if (!table_find_any(play->l, play->l->tables, &wanted, 0, &found))
		return NULL;
	k = look_make(play->l, found.t, found.slot, &view->params, when_given(atomic_load(&play->now_ns)));
	*ring = ring_read(&k, found.seen.word);
	*seen = found.seen;
	return found.slot;
}

/* Keys whose latest admission has not been written to the ring. */
static unsigned unfinished(void)
{
	unsigned n = 0;

	for (uint32_t key = 0; key < KEYS; key++) {
		struct rule_view view;
		struct slot_seen seen;
		struct ring ring;

		n += look(key, &view, &seen, &ring) != NULL && !ring.complete;
	}
	return n;
}

/*
 * Leave an empty window as a process does that takes one token and is killed between the word and its cell. That is a
 * few instructions, which chance does not meet in every run. Returns how many tokens were admitted: 0 or 1.
 */
static uint64_t leave_open(uint32_t key)
{
	struct window w = { .n = 1, .k = 1, .last_ns = atomic_load(&play->now_ns) };
	struct rule_view view;
	struct slot_seen seen;
	struct ring ring;
	struct layout_slot *slot = look(key, &view, &seen, &ring);

	return slot != NULL && ring.valid == 0 && slot_cas(slot, seen, seen.tag, window_pack(&view.params, w));
}

static void killed(uint64_t capacity, uint64_t max_cost)
{
	uint64_t rounds = scaled(200), inside = 0, left_open = 0, met_open = 0, over = 0, lost = 0, in_hand = 0;
	struct rng rng = { play->seed };
	int unsound = 0, badly = 0;

	begin(capacity, SECOND, max_cost);
	for (uint64_t i = 0; i < KILLS_MAX && (i < rounds || inside == 0); i++) {
		uint64_t open[KEYS];
		struct crew crew;

		for (uint32_t key = 0; key < KEYS; key++)
			left_open += open[key] = leave_open(key);
		crew_start(&crew, WORKERS, drain, NULL);
		for (uint64_t wait = rng_below(&rng, 200); wait > 0; wait--)
			relax();
		for (int w = 0; w < WORKERS; w++)
			badly += crew_kill(&crew, w) != 1;
		met_open += unfinished();
		for (int w = 0; w < WORKERS; w++)
			inside += (uint64_t)atomic_exchange(&play->begun[w], 0);
		/* What the killed left is taken; each of the eight had one call's tokens in hand at the most. */
		drain(NULL, 0);
		for (uint32_t key = 0; key < KEYS; key++) {
			int64_t got = atomic_exchange(&play->admitted[key], 0) + (int64_t)open[key];

			over += got > (int64_t)capacity;
			lost += got < (int64_t)capacity - (int64_t)(WORKERS * max_cost);
			in_hand += got < (int64_t)capacity ? capacity - (uint64_t)got : 0;
		}
		munmap(crew.gate, sizeof(*crew.gate));
		unsound += shmlimit_verify(stage_name, NULL, 0) != 0;
		atomic_fetch_add(&play->now_ns, SECOND);
	}
	is(badly, 0, "killed at a window of %" PRIu64 ": workers die by the killer alone", capacity);
	ok(inside > 0, "some of them inside a call (%" PRIu64 ")", inside);
	ok(left_open > 0,
	   "rings are left open between the word and its cells (%" PRIu64 "; still so after the kills %" PRIu64 ")",
	   left_open, met_open);
	is(over, 0, "no key is admitted more than the capacity");
	is(lost, 0, "no key is admitted less, but for what the killed had in hand (%" PRIu64 " in all)", in_hand);
	is(unsound, 0, "the segment is sound after each");
	is(play->errors, 0, "no call fails");
	end();
}

int main(void)
{
	if (SWAPS_ARE_PRIVATE)
		return tap_skip_all("ThreadSanitizer does not swap atomically between processes");
	stage_begin("sliding");
	play = shared_memory(sizeof(*play));
	play->seed = rng_seed();
	in_step(1, 1);
	in_step(5, 3);
	in_step(RING, 8);
	from_outside(1, 1000);
	from_outside(3, 20000);
	from_outside(RING, 1000000);
	killed(3, 1);
	killed(RING, 4);
	return tap_done();
}
