/*
 * interval: on the limiter's own clock, from outside: over every interval a key
 * is admitted no more than its capacity and what leaks in that time (I1).
 *
 * Each worker reads the clock before and after each call and keeps both where
 * the call was admitted. Of all calls that began at a or later and ended at b
 * or earlier there may be at most
 *
 *	capacity + count * (b - a) / period
 *
 * for every a < b. (As many ended by b, less as many began before a, is what
 * is compared: one pass over the sorted times, exact but for the few calls
 * that began before a and ended after it.) The rules are fast, some so fast
 * that a call takes longer than a funnel takes to fill: then the clock that a
 * call read is old when it decides, now and then by a whole time slice.
 *
 * With more keys than slots, funnels refill and are reclaimed all the time.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "process.h"

#define WORKERS 8
#define LOG_MAX 1000000                   /* admissions, over all workers */
#define CALLS 400000                      /* a round, over all workers */
#define ROUNDS_MIN 3
#define ROUNDS_MAX 1000                   /* for contention to be seen */

struct scene {
	const char *title;
	unsigned keys;
	uint64_t capacity, count, period_ns;
};

struct entry {
	uint32_t key;
	uint64_t began_ns, ended_ns;
};

static struct play {
	const struct scene *scene;
	struct shmlimit *l;
	int rule;
	uint64_t seed;
	_Atomic uint64_t calls, admitted;
	struct entry log[LOG_MAX];
} *play;

static void hammer(struct crew *crew, int index)
{
	struct dice dice = { play->seed + (uint64_t)index };
	uint64_t n = scaled(CALLS) / (uint64_t)crew->n;

	for (uint64_t i = 0; i < n; i++) {
		uint32_t key = (uint32_t)dice_below(&dice, play->scene->keys);
		uint64_t began_ns = shmlimit_now(play->l), at;
		int answer = shmlimit_take(play->l, play->rule, &key, sizeof(key), 1, NULL);
		uint64_t ended_ns = shmlimit_now(play->l);

		worker_check(answer >= 0, "take: %s", shmlimit_strerror(answer));
		atomic_fetch_add(&play->calls, 1);
		if (answer != SHMLIMIT_ALLOWED)
			continue;
		at = atomic_fetch_add(&play->admitted, 1);
		if (at < LOG_MAX)
			play->log[at] = (struct entry){ key, began_ns, ended_ns };
	}
}

static int ascending(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* The most that any interval has above the capacity and what leaked in it: thousandths of a token, 0 or more. */
static uint64_t excess(const uint64_t *began, const uint64_t *ended, size_t n, uint64_t resolution_ps)
{
	const struct scene *scene = play->scene;
	__int128 best = 0, worst = 0;
	uint64_t since = n == 0 ? 0 : began[0];
	size_t i = 0;

	/* In units of 1 / period of a token. An interval may be off by a tick at either end. */
	for (size_t j = 0; j < n; j++) {
		__int128 over;

		for (; i < n && began[i] <= ended[j]; i++) {
			__int128 gained = (__int128)(began[i] - since) * scene->count - (__int128)i * scene->period_ns;

			if (gained > best)
				best = gained;
		}
		over = (__int128)(j + 1) * scene->period_ns - (__int128)(ended[j] - since) * scene->count + best -
		       (__int128)scene->capacity * scene->period_ns -
		       (__int128)(2 * resolution_ps / 1000 + 1) * scene->count;
		if (over > worst)
			worst = over;
	}
	return (uint64_t)(worst * 1000 / scene->period_ns);
}

/* The same, for the key that is worst. */
static uint64_t worst_key(uint64_t resolution_ps)
{
	uint64_t *began = calloc(LOG_MAX, sizeof(*began)), *ended = calloc(LOG_MAX, sizeof(*ended)), worst = 0;
	size_t logged = atomic_load(&play->admitted);

	if (began == NULL || ended == NULL)
		bail("no memory");
	for (uint32_t key = 0; key < play->scene->keys; key++) {
		uint64_t over;
		size_t n = 0;

		for (size_t i = 0; i < logged; i++) {
			if (play->log[i].key != key)
				continue;
			began[n] = play->log[i].began_ns;
			ended[n++] = play->log[i].ended_ns;
		}
		qsort(began, n, sizeof(*began), ascending);
		qsort(ended, n, sizeof(*ended), ascending);
		over = excess(began, ended, n, resolution_ps);
		if (over > worst)
			worst = over;
	}
	free(began);
	free(ended);
	return worst;
}

/* What was to be seen was. */
static int seen_enough(void)
{
	struct shmlimit_counters c = counters_of(play->l, play->rule);

	return (play->scene->keys > 1 || c.failed_cas > 0) && (play->scene->keys <= 16 || c.reclaims > 0);
}

static void perform(const struct scene *scene, uint64_t seed)
{
	struct shmlimit_range range = { .struct_size = sizeof(range) };
	const char *title = scene->title;
	struct shmlimit_counters c;
	uint64_t worst = 0, admitted = 0, complete = 1;
	int bad = 0;

	play->scene = scene;
	atomic_store(&play->calls, 0);
	play->l = stage_create(16, 1, SHMLIMIT_FULL_DENY);
	play->rule = stage_rule(play->l, "interval", scene->capacity, scene->count, scene->period_ns);
	stage_hide();
	if (shmlimit_rule_range(play->l, play->rule, &range) != 0)
		bail("no range");
	for (unsigned round = 0; round < ROUNDS_MAX && bad == 0 && worst == 0; round++) {
		if (round >= ROUNDS_MIN && seen_enough())
			break;
		play->seed = seed + round * 1009;
		atomic_store(&play->admitted, 0);
		bad = crew_run(WORKERS, hammer, NULL);
		complete &= atomic_load(&play->admitted) <= LOG_MAX;
		worst = worst_key(range.resolution_ps);
		admitted += atomic_load(&play->admitted);
	}
	is(bad, 0, "%s: workers end well", title);
	ok(complete, "%s: the log is complete", title);
	is(worst, 0, "%s: no interval has more than the capacity and what leaked", title);
	if (worst != 0)
		diag("%" PRIu64 " thousandths of a token too many, %" PRIu64 " admitted", worst,
		     atomic_load(&play->admitted));
	c = counters_of(play->l, play->rule);
	is(c.allowed, admitted, "%s: the counter of allowed is the sum of the answers", title);
	is(c.allowed + c.denied, atomic_load(&play->calls), "%s: every call was counted", title);
	if (scene->keys == 1)
		ok(c.failed_cas > 0, "%s: workers did contend", title);
	if (scene->keys > 16)
		ok(c.reclaims > 0, "%s: funnels did refill and were reclaimed", title);
	shmlimit_close(play->l);
}

int main(void)
{
	static const struct scene scenes[] = {
		{ "1 token, 1 a microsecond", 1, 1, 1, 1000 },
		{ "2 tokens, 1 in 100 ns", 1, 2, 1, 100 },
		{ "10 tokens, 1 a microsecond", 1, 10, 1, 1000 },
		{ "1,000 tokens, 3 in 7 microseconds", 1, 1000, 3, 7000 },
		{ "100 tokens, 1,000 a second", 1, 100, 1000, 1000000000 },
		{ "50 keys in 16 slots, 1 token, 1 a microsecond", 50, 1, 1, 1000 },
		{ "50 keys in 16 slots, 2 tokens, 1 in 50 microseconds", 50, 2, 1, 50000 },
	};
	uint64_t seed;

	if (SWAPS_ARE_PRIVATE)
		return tap_skip_all("ThreadSanitizer does not swap atomically between processes");
	stage_begin("interval");
	seed = dice_seed();
	play = shared_memory(sizeof(*play));
	for (size_t i = 0; i < sizeof(scenes) / sizeof(scenes[0]); i++)
		perform(&scenes[i], seed + i * 1000003);
	return tap_done();
}
