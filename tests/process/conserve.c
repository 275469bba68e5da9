/*
 * conserve: over all processes a key is admitted its capacity and what has
 * came back, to the token: I1 (conservation) and I2 (utilisation).
 *
 * Workers hammer one key, 8 keys that share one window, or 10,000 keys, on an
 * injected clock: a shared number. In the first round it stands still, so that
 * exactly the capacity is admitted, and nothing after the first denial. In
 * later rounds workers advance it by random steps and decide with what they
 * read, or with an older reading; a round ends with taking what is left. Its
 * steps stay below the slack of the rule (half its time to full, a second at
 * the most), so that an older reading is an honest one. Admitted in total is then
 *
 *	capacity + floor((last time - first time) * count / period)
 *
 * and the first time is a multiple of the period, so that no fraction of a
 * tick can blur it. What the workers were answered is what the counters say.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "process.h"

#include "hash.h"
#include "table.h"

#define KEYS_MAX 10000
#define ROUNDS_MIN 16
#define ROUNDS_MAX 1000 /* for contention to be seen */

struct scene {
	const char *title;
	int workers;
	uint64_t slots;
	unsigned keys;
	int one_window; /* choose keys that share their window */
	uint64_t capacity, count, period_ns;
	uint64_t max_cost;
	unsigned decisions; /* in a moving round, over all workers and keys */
};

/* A worker's own line of answers. */
struct tally {
	uint64_t allowed, denied;
	uint64_t late; /* admitted though another was denied before: only looked at while time stands */
	uint64_t errors;
} __attribute__((aligned(64)));

struct play {
	const struct scene *scene;
	struct shmlimit *l;
	int rule;
	uint64_t seed, round, round_end_ns, step_ns;
	_Atomic uint64_t now_ns;
	struct tally tally[CREW_MAX];
	_Atomic int64_t admitted[KEYS_MAX];
	_Atomic uint8_t dry[KEYS_MAX];
	char key[KEYS_MAX][16];
};

static struct play *play;

/* Take, and keep the books. */
static int take(struct shmlimit *l, struct tally *tally, unsigned key, uint64_t cost, uint64_t now_ns)
{
	int was_dry = atomic_load(&play->dry[key]);
	int answer = shmlimit_take(at_time(l, now_ns), play->rule, play->key[key], strlen(play->key[key]), cost, NULL);

	if (answer == SHMLIMIT_ALLOWED) {
		tally->allowed++;
		tally->late += was_dry != 0;
		atomic_fetch_add(&play->admitted[key], (int64_t)cost);
	} else if (answer == SHMLIMIT_DENIED) {
		tally->denied++;
		if (cost == 1)
			atomic_store(&play->dry[key], 1);
	} else {
		tally->errors++;
	}
	return answer;
}

static void refund(struct shmlimit *l, struct tally *tally, unsigned key, uint64_t tokens, uint64_t now_ns)
{
	const char *text = play->key[key];

	/* Booked before it is done: what comes back may be taken again at once. */
	atomic_fetch_sub(&play->admitted[key], (int64_t)tokens);
	tally->errors += shmlimit_refund(at_time(l, now_ns), play->rule, text, strlen(text), tokens, NULL) != 0;
}

/* Half of the workers have a mapping of their own. */
static struct shmlimit *own_handle(int index)
{
	struct shmlimit *l = play->l;

	if (index % 2 == 1)
		worker_check(shmlimit_open(stage_name, 0, NULL, &l) == 0, "worker %d cannot open the segment", index);
	return l;
}

/* While time stands: every key, until it is denied a single token. */
static void drain_frozen(struct crew *crew, int index)
{
	struct rng rng = { play->seed + (uint64_t)index };
	struct shmlimit *l = own_handle(index);
	uint64_t now_ns = atomic_load(&play->now_ns);
	unsigned keys = play->scene->keys, first = index % 4 == 3 ? (unsigned)rng_below(&rng, keys) : 0;

	gate_pass(crew->gate);
	for (unsigned i = 0; i < keys; i++) {
		unsigned key = (first + i) % keys;
		uint64_t cost;

		do {
			cost = 1 + rng_below(&rng, play->scene->max_cost);
		} while (take(l, &play->tally[index], key, cost, now_ns) == SHMLIMIT_ALLOWED || cost > 1);
	}
}

/* While time moves: random keys, random costs, some given back in part, some decided with an old clock. */
static void take_moving(struct crew *crew, int index)
{
	struct rng rng = { play->seed ^ (play->round << 32) ^ (uint64_t)index };
	struct tally *tally = &play->tally[index];
	struct shmlimit *l = own_handle(index);
	unsigned n = play->scene->decisions / (unsigned)crew->n + 1;
	uint64_t now_ns = atomic_load(&play->now_ns);

	gate_pass(crew->gate);
	for (unsigned i = 0; i < n; i++) {
		uint64_t step_ns = rng_below(&rng, 2 * play->step_ns);
		unsigned key = (unsigned)rng_below(&rng, play->scene->keys);
		uint64_t cost = 1 + rng_below(&rng, play->scene->max_cost);

		if (rng_below(&rng, 4) != 0) {
			if (atomic_load(&play->now_ns) + step_ns * (unsigned)crew->n > play->round_end_ns)
				break;
			now_ns = atomic_fetch_add(&play->now_ns, step_ns) + step_ns;
		}
		if (take(l, tally, key, cost, now_ns) != SHMLIMIT_ALLOWED)
			continue;
		/* All of it where there are fewer tokens than workers: else the funnel, mostly empty, is seldom swapped. */
		if (play->scene->capacity < (uint64_t)crew->n)
			refund(l, tally, key, cost, now_ns);
		else if (rng_below(&rng, 8) == 0)
			refund(l, tally, key, rng_below(&rng, cost + 1), now_ns);
	}
}

/* Take all that is left of every key. */
static void drain_rest(struct tally *tally)
{
	uint64_t now_ns = atomic_load(&play->now_ns);

	for (unsigned key = 0; key < play->scene->keys; key++) {
		struct shmlimit_result r;

		if (take(play->l, tally, key, 1, now_ns) != SHMLIMIT_ALLOWED)
			continue;
		if (shmlimit_peek(at_time(play->l, now_ns), play->rule, play->key[key], strlen(play->key[key]), 1,
		                  &r) == 0)
			take(play->l, tally, key, r.remaining, now_ns);
		take(play->l, tally, key, 1, now_ns);
	}
}

/* Keys are numbered, or are those numbers whose windows are that of the first. */
static void choose_keys(void)
{
	const struct scene *scene = play->scene;
	struct table_window first = { { 0, 0 } };
	unsigned n = 0;

	for (unsigned i = 0; n < scene->keys; i++) {
		char *text = play->key[n];
		struct table_window window;

		snprintf(text, sizeof(play->key[n]), "user:%u", i);
		window = table_window(play->l->tables,
		                      hash_bytes(play->l->secret, (uint32_t)play->rule, text, strlen(text)));
		if (n == 0)
			first = window;
		n += !scene->one_window || (window.home[0] == first.home[0] && window.home[1] == first.home[1]);
	}
}

static unsigned keys_off(int64_t want)
{
	unsigned off = 0;

	for (unsigned key = 0; key < play->scene->keys; key++) {
		int64_t got = atomic_load(&play->admitted[key]);

		if (got == want)
			continue;
		if (off++ < 5)
			diag("%s: admitted %" PRId64 ", want %" PRId64, play->key[key], got, want);
	}
	return off;
}

static unsigned live_slots(void)
{
	struct shmlimit_slot slot = { .struct_size = sizeof(slot) };
	unsigned n = 0;

	for (uint64_t i = 0; shmlimit_slot(play->l, i, &slot, atomic_load(&play->now_ns)) == 0; i++)
		n += slot.state == SHMLIMIT_SLOT_LIVE;
	return n;
}

static void check_counters(const char *title)
{
	struct shmlimit_counters c = counters_of(play->l, play->rule);
	struct tally sum = { 0 };

	for (int i = 0; i < CREW_MAX; i++) {
		sum.allowed += play->tally[i].allowed;
		sum.denied += play->tally[i].denied;
		sum.errors += play->tally[i].errors;
	}
	is(c.allowed, sum.allowed, "%s: the counter of allowed is the sum of the answers", title);
	is(c.denied, sum.denied, "%s: the counter of denied is the sum of the answers", title);
	is(sum.errors, 0, "%s: no call failed", title);
	is(c.claims, play->scene->keys, "%s: each key was given a slot once", title);
	ok(c.reclaims == 0 && c.evictions == 0 && c.no_slot == 0 && c.shadow_denied == 0,
	   "%s: none of them was taken from another", title);
	if (play->scene->workers > 1)
		ok(c.failed_cas > 0, "%s: workers did contend", title);
}

static void perform(const struct scene *scene, uint64_t seed)
{
	const char *title = scene->title;
	uint64_t first_ns, slack_ns, late = 0;
	unsigned round, off = 0, bad = 0;

	memset(play, 0, sizeof(*play));
	play->scene = scene;
	play->seed = seed;
	play->l = stage_create(scene->slots, 4, SHMLIMIT_FULL_EVICT);
	play->rule = stage_rule(play->l, "conserve", scene->capacity, scene->count, scene->period_ns);
	choose_keys();
	first_ns = scene->period_ns * (1000000000000000u / scene->period_ns);
	slack_ns = scene->capacity * scene->period_ns / scene->count / 2;
	if (slack_ns > 1000000000)
		slack_ns = 1000000000;

	atomic_store(&play->now_ns, first_ns);
	is(crew_run(scene->workers, drain_frozen, NULL), 0, "%s: workers end well", title);
	is(keys_off((int64_t)scene->capacity), 0, "%s: while time stands a key is admitted its capacity", title);
	for (int i = 0; i < CREW_MAX; i++)
		late += play->tally[i].late;
	is(late, 0, "%s: while time stands nothing is admitted after a denial", title);

	/* Nine tenths of the slack a round. */
	for (round = 1; round <= ROUNDS_MAX && bad == 0 && off == 0; round++) {
		uint64_t round_ns = slack_ns / 10 * 9, refilled;

		play->round = round;
		play->round_end_ns = atomic_load(&play->now_ns) + round_ns;
		play->step_ns = round_ns / scene->decisions + 1;
		bad = (unsigned)crew_run(scene->workers, take_moving, NULL);
		drain_rest(&play->tally[0]);
		refilled = (uint64_t)((unsigned __int128)(atomic_load(&play->now_ns) - first_ns) * scene->count /
		                      scene->period_ns);
		off = keys_off((int64_t)(scene->capacity + refilled));
		if (round >= scaled(ROUNDS_MIN) &&
		    (scene->workers == 1 || counters_of(play->l, play->rule).failed_cas > 0))
			break;
	}
	is(bad, 0, "%s: workers end well in each round", title);
	is(off, 0, "%s: while time moves a key is admitted its capacity and what refilled, to the token", title);
	ok(atomic_load(&play->now_ns) > first_ns, "%s: time did move", title);
	is(live_slots(), scene->keys, "%s: each key has one slot", title);
	is(shmlimit_verify(stage_name, NULL, 0), 0, "%s: the segment is sound", title);
	check_counters(title);
	stage_hide();
	shmlimit_close(play->l);
}

int main(void)
{
	static const struct scene scenes[] = {
		{ "1 process, 1 key", 1, 64, 1, 0, 100000, 1, 1000, 1, 40000 },
		{ "2 processes, 1 key", 2, 64, 1, 0, 100000, 1, 1000, 1, 40000 },
		{ "8 processes, 1 key", 8, 64, 1, 0, 100000, 1, 1000, 1, 40000 },
		{ "64 processes, 1 key", 64, 64, 1, 0, 100000, 1, 1000, 1, 40000 },
		{ "1 process, 1 key, random costs", 1, 64, 1, 0, 300000, 3, 7000, 20, 10000 },
		{ "2 processes, 1 key, random costs", 2, 64, 1, 0, 300000, 3, 7000, 20, 10000 },
		{ "8 processes, 1 key, random costs", 8, 64, 1, 0, 300000, 3, 7000, 20, 10000 },
		{ "64 processes, 1 key, random costs", 64, 64, 1, 0, 300000, 3, 7000, 20, 10000 },
		{ "64 processes, a small funnel", 64, 64, 1, 0, 10, 1, 100000007, 3, 20000 },
		{ "8 processes, 8 keys in the smallest table", 8, 16, 8, 1, 1000, 7, 3000000, 3, 20000 },
		{ "8 processes, 8 keys of one window", 8, 256, 8, 1, 1000, 7, 3000000, 3, 20000 },
		/* Of these the words have no quota. */
		{ "8 processes, 1 key of many tokens", 8, 64, 1, 0, 3000000, 3, 7000, 200, 10000 },
		{ "8 processes, 8 keys of many tokens", 8, 16, 8, 1, 1000000, 1, 1000, 2000, 20000 },
		{ "8 processes, 10,000 keys", 8, 16384, 10000, 0, 20, 1, 1000000, 1, 50000 },
		{ "8 processes, 10,000 keys, random costs", 8, 16384, 10000, 0, 20, 1, 1000000, 5, 50000 },
	};
	uint64_t seed;

	if (SWAPS_ARE_PRIVATE)
		return tap_skip_all("ThreadSanitizer does not swap atomically between processes");
	stage_begin("conserve");
	seed = rng_seed();
	play = shared_memory(sizeof(*play));
	for (size_t i = 0; i < sizeof(scenes) / sizeof(scenes[0]); i++)
		perform(&scenes[i], seed + i * 1000003);
	return tap_done();
}
