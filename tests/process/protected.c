/*
 * protected: processes flood a full table with keys of an ordinary rule, are killed anywhere, and the table
 * grows under them: no key of a protected rule loses its slot (I9).
 *
 * The clock stands still, so no key is full again by itself. Eight bans are at most half of a probe window, even of one
 * that has all their lines twice: no look at it can find more.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "process.h"

#define SECOND ((uint64_t)1000000000)
#define T0 (1000 * SECOND)
#define WORKERS 4
#define BANS 8
#define SLOTS 64
#define KILLS 200
#define EVICTIONS 20000 /* at least */
#define KILLS_MAX 100000

struct play {
	struct shmlimit *l;
	int bans, page;
	_Atomic uint64_t next, undone, errors;
};

static struct play *play;

static int is_banned(uint64_t key)
{
	return shmlimit_take(at_time(play->l, T0), play->bans, &key, sizeof(key), 1, NULL) == SHMLIMIT_DENIED;
}

static void flood(struct crew *crew, int index)
{
	(void)crew;
	(void)index;
	for (;;) {
		uint64_t key = atomic_fetch_add(&play->next, 1);

		if (shmlimit_take(at_time(play->l, T0), play->page, &key, sizeof(key), 3, NULL) != SHMLIMIT_ALLOWED)
			atomic_fetch_add(&play->errors, 1);
		if (!is_banned(key % BANS))
			atomic_fetch_add(&play->undone, 1);
	}
}

static int set(const char *name, uint32_t algorithm, uint64_t capacity, uint64_t period_ns, uint32_t flags)
{
	struct shmlimit_rule rule = { .struct_size = sizeof(rule),
		                      .algorithm = algorithm,
		                      .flags = flags,
		                      .capacity = capacity,
		                      .refill = capacity,
		                      .period_ns = period_ns };

	return shmlimit_rule_set(at_time(play->l, T0), name, &rule);
}

/* A table of SLOTS slots that is flooded while workers are killed. After half of the kills it grows, if it is to. */
static void round_of(int grows)
{
	uint64_t kills = scaled(KILLS), enough = scaled(EVICTIONS), killed = 0, banned = 0, before = 0;
	struct crew crew;
	int bad = 0, grown = !grows;

	play->l = stage_create(SLOTS, 4, SHMLIMIT_FULL_EVICT);
	play->bans = set("ban", SHMLIMIT_COUNTER, 1, 600 * SECOND, SHMLIMIT_RULE_PROTECTED);
	play->page = set("page", SHMLIMIT_FUNNEL, 3, 3600 * SECOND, 0);
	for (uint64_t key = 0; key < BANS; key++)
		shmlimit_take(at_time(play->l, T0), play->bans, &key, sizeof(key), 1, NULL);
	crew_start(&crew, WORKERS, flood, NULL);
	while (killed < KILLS_MAX &&
	       (killed < kills || counters_of(play->l, play->page).evictions - before < enough || !grown)) {
		int index = (int)(killed % WORKERS);

		crew_await();
		bad += !crew_kill(&crew, index);
		crew_spawn(&crew, index, 0);
		killed++;
		if (!grown && killed >= kills / 2 && shmlimit_grow(at_time(play->l, T0), (uint64_t)SLOTS * 4) == 0) {
			grown = 1;
			before = counters_of(play->l, play->page).evictions;
		}
	}
	for (int i = 0; i < WORKERS; i++)
		bad += !crew_kill(&crew, i);
	for (uint64_t key = 0; key < BANS; key++)
		banned += is_banned(key);
	is(bad, 0, "%s: %" PRIu64 " processes were killed, and ended by nothing else", grows ? "grown" : "full",
	   killed);
	ok(grown && counters_of(play->l, play->page).evictions - before >= enough,
	   "%s: the table was full, and %" PRIu64 " keys were evicted", grows ? "grown" : "full",
	   counters_of(play->l, play->page).evictions - before);
	is(play->errors, 0, "%s: each new key was allowed its capacity", grows ? "grown" : "full");
	is(play->undone + BANS - banned, 0, "%s: no ban was undone", grows ? "grown" : "full");
	is(shmlimit_verify(stage_name, NULL, 0), 0, "%s: the segment is sound", grows ? "grown" : "full");
	shmlimit_close(play->l);
	stage_hide();
}

int main(void)
{
	stage_begin("protected");
	play = shared_memory(sizeof(*play));
	round_of(0);
	round_of(1);
	return tap_done();
}
