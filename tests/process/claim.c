/*
 * claim: many processes race to claim a slot for the same new keys. A key is
 * admitted exactly its capacity, and never has two slots (I1, I2, I3).
 *
 * Each round has new keys, and a time at which those of earlier rounds are full
 * again, so that slots are reclaimed all the time. The workers' clocks differ by
 * less than a token takes to come back. Where rounds follow closely, the keys of the
 * last round are full by one clock and not by another: so two claimers see
 * other slots free, and choose other ones. In the crowded table most of the 16
 * slots are held by keys that don't refill, and two new keys race for the three
 * that are left. Between rounds, while no process decides, the whole table is
 * searched for duplicates.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "process.h"

#include "limiter.h"
#include "rule.h"

#define CAPACITY 3u
#define FILL_NS 3000u
#define SKEW_NS 900u /* between clocks: less than a token, and than the slack */
#define START_NS 1000000000000u
#define YEAR_NS 31536000000000000u
#define ROUNDS 2000
#define ROUNDS_MAX 100 /* times ROUNDS, for contention to be seen */
#define KEYS_MAX 4

struct scene {
	const char *title;
	int workers;
	unsigned keys; /* new ones a round */
	unsigned held; /* slots that never come free */
	uint64_t slots;
	uint64_t round_ns; /* from one to the next */
};

struct play {
	const struct scene *scene;
	struct shmlimit *l;
	int rule, held_rule;
	uint64_t seed, first_round, rounds;
	_Atomic uint64_t admitted[KEYS_MAX];
	_Atomic uint64_t allowed, denied, errors;
	uint64_t off, duplicates, tentative;
};

static struct play *play;

/* What stands in the table: a key with two committed slots, or (in *tentative) something tentative. */
static int has_duplicate(const struct shmlimit *l, uint64_t *tentative)
{
	const struct layout_slot *slots = l->tables[0].slots;
	uint64_t n = l->tables[0].lines * SLOTS_PER_LINE;
	int duplicate = 0;

	for (uint64_t i = 0; i < n; i++) {
		if (slots[i].tag & TAG_TENTATIVE)
			++*tentative;
		if (slots[i].tag == 0 || (slots[i].tag & TAG_TENTATIVE) != 0)
			continue;
		for (uint64_t j = 0; j < i; j++)
			duplicate |= (slots[j].tag & TAG_TENTATIVE) == 0 &&
			             tag_same_key(rule_plain(l, slots[i].tag), rule_plain(l, slots[j].tag));
	}
	return duplicate;
}

static void race(struct crew *crew, int index)
{
	struct rng rng = { play->seed + (uint64_t)index };
	uint64_t allowed = 0, denied = 0, errors = 0;
	const struct scene *scene = play->scene;

	for (uint64_t i = 0; i < play->rounds; i++) {
		uint64_t round = play->first_round + i, now_ns = START_NS + round * scene->round_ns;
		unsigned first = (unsigned)rng_below(&rng, scene->keys);
		uint64_t delay = rng_below(&rng, 8);

		now_ns += rng_below(&rng, SKEW_NS);
		gate_pass(crew->gate);
		while (delay-- > 0)
			relax();
		for (unsigned k = 0; k < scene->keys; k++) {
			unsigned which = (first + k) % scene->keys;
			uint64_t key[2] = { round, which };
			int answer;

			while ((answer = shmlimit_take(at_time(play->l, now_ns), play->rule, key, sizeof(key), 1,
			                               NULL)) == SHMLIMIT_ALLOWED) {
				atomic_fetch_add(&play->admitted[which], 1);
				allowed++;
			}
			denied += answer == SHMLIMIT_DENIED;
			errors += answer < 0;
		}
		gate_pass(crew->gate);
		if (index != 0)
			continue;
		for (unsigned k = 0; k < scene->keys; k++)
			play->off += atomic_exchange(&play->admitted[k], 0) != CAPACITY;
		play->duplicates += (uint64_t)has_duplicate(play->l, &play->tentative);
	}
	atomic_fetch_add(&play->allowed, allowed);
	atomic_fetch_add(&play->denied, denied);
	atomic_fetch_add(&play->errors, errors);
}

/* As many keys as shall be held, empty for years. */
static unsigned hold(unsigned n)
{
	unsigned held = 0;

	for (uint64_t key = 0; key < n; key++)
		held += shmlimit_take(at_time(play->l, START_NS), play->held_rule, &key, sizeof(key), 1, NULL) ==
		        SHMLIMIT_ALLOWED;
	return held;
}

static void perform(const struct scene *scene, uint64_t seed)
{
	const char *title = scene->title;
	struct shmlimit_counters c;
	uint64_t rounds = 0;
	int bad = 0;

	memset(play, 0, sizeof(*play));
	play->scene = scene;
	play->rounds = scaled(ROUNDS);
	play->l = stage_create(scene->slots, 2, SHMLIMIT_FULL_DENY);
	play->rule = stage_rule(play->l, "claim", CAPACITY, CAPACITY, FILL_NS);
	play->held_rule = stage_rule(play->l, "held", 1, 1, YEAR_NS);
	is(hold(scene->held), scene->held, "%s: %u slots are held", title, scene->held);
	for (int i = 0; i < ROUNDS_MAX && bad == 0; i++) {
		play->seed = seed + rounds;
		play->first_round = rounds;
		bad = crew_run(scene->workers, race, NULL);
		rounds += play->rounds;
		if (counters_of(play->l, play->rule).failed_cas > 0)
			break;
	}
	c = counters_of(play->l, play->rule);
	is(bad, 0, "%s: workers end well", title);
	is(play->off, 0, "%s: a new key is admitted exactly its capacity", title);
	is(play->duplicates, 0, "%s: no key has two slots", title);
	is(c.claims, rounds * scene->keys, "%s: each key is given a slot once", title);
	ok(c.reclaims > 0, "%s: slots were reclaimed", title);
	ok(c.evictions == 0 && c.no_slot == 0, "%s: there is room for all", title);
	is(play->errors, 0, "%s: no call fails", title);
	is(c.allowed, play->allowed, "%s: the counter of allowed is the sum of the answers", title);
	is(c.denied, play->denied, "%s: the counter of denied is the sum of the answers", title);
	ok(c.failed_cas > 0, "%s: workers did contend", title);
	is(counters_of(play->l, play->held_rule).allowed, scene->held, "%s: a key whose slot is held was not asked for",
	   title);
	is(shmlimit_verify(stage_name, NULL, 0), 0, "%s: the segment is sound", title);
	diag("%s: %" PRIu64 " failed compare-and-swaps, %" PRIu64 " slots left tentative after a round", title,
	     c.failed_cas, play->tentative);
	stage_hide();
	shmlimit_close(play->l);
}

int main(void)
{
	static const struct scene scenes[] = {
		{ "2 processes, a new key", 2, 1, 0, 16, FILL_NS },
		{ "2 processes, 4 new keys", 2, 4, 0, 16, FILL_NS },
		{ "2 processes, 2 new keys, a crowded table", 2, 2, 13, 16, 2 * FILL_NS },
		{ "3 processes, 2 new keys, a crowded table", 3, 2, 13, 16, 2 * FILL_NS },
		{ "8 processes, a new key", 8, 1, 0, 16, FILL_NS },
		{ "8 processes, 4 new keys, 64 slots", 8, 4, 0, 64, FILL_NS },
	};
	uint64_t seed;

	if (SWAPS_ARE_PRIVATE)
		return tap_skip_all("ThreadSanitizer does not swap atomically between processes");
	stage_begin("claim");
	seed = rng_seed();
	play = shared_memory(sizeof(*play));
	for (size_t i = 0; i < sizeof(scenes) / sizeof(scenes[0]); i++)
		perform(&scenes[i], seed + i * 1000003);
	return tap_done();
}
