/*
 * newcomer: keys get their slots while their rule is changed as fast as possible (I1, I3). A process that claims a slot
 * may have read the rule several versions ago, because it was stopped since. What it writes could then be mistaken for
 * a state word of another version, or of a rule that was removed, and the key could get a second slot.
 *
 * The clock stands still. The versions differ in their rates and in what the bits of a state word mean. All eight
 * workers ask for each key at about the same time: it is admitted its capacity and no more. (The capacity is the same
 * in all versions: a key that a lower one clamps is full, and may be forgotten, see shmlimit.7.)
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "process.h"

#define SECOND ((uint64_t)1000000000)
#define T0 (1000 * SECOND)
#define WORKERS 8
#define KEYS 400
#define ROUNDS 60
#define ROUNDS_MAX 2000 /* for enough changes to be seen */
#define CHANGES 20000
#define CAPACITY 7

struct play {
	struct shmlimit *l;
	int rule;
	_Atomic uint64_t round, done, changes, errors;
	_Atomic uint64_t admitted[KEYS];
};

static struct play *play;

static void ask(struct crew *crew, int index)
{
	uint64_t round = atomic_load(&play->round);

	(void)crew;
	(void)index;
	for (uint64_t i = 0; i < KEYS; i++) {
		uint64_t key[2] = { round, i };

		for (int tries = 0; tries < CAPACITY + 1; tries++) {
			int answer = shmlimit_take(at_time(play->l, T0), play->rule, key, sizeof(key), 1, NULL);

			if (answer == SHMLIMIT_ALLOWED)
				atomic_fetch_add(&play->admitted[i], 1);
			else if (answer != SHMLIMIT_DENIED)
				atomic_fetch_add(&play->errors, 1);
		}
	}
}

/* Five versions in turn: two bits of four tell none of them from the one five before. */
static int set_version(uint64_t n)
{
	static const uint64_t period_ns[5] = { SECOND, 3600 * SECOND, 7 * SECOND, 86400 * SECOND, SECOND / 1000 };
	struct shmlimit_rule rule = {
		.struct_size = sizeof(rule), .capacity = CAPACITY, .refill = 1 + n % 5, .period_ns = period_ns[n % 5]
	};

	return shmlimit_rule_set(at_time(play->l, T0), "newcomer", &rule);
}

static void change(struct crew *crew, int index)
{
	(void)crew;
	(void)index;
	/* It makes no room: several changes happen while another waits for its turn. */
	signal(SIGRTMIN, SIG_IGN);
	for (;;) {
		if (set_version(atomic_load(&play->changes)) != play->rule)
			atomic_fetch_add(&play->errors, 1);
		atomic_fetch_add(&play->changes, 1);
	}
}

int main(void)
{
	uint64_t over = 0, admitted = 0, round;
	struct crew writer;
	int bad = 0;

	if (SWAPS_ARE_PRIVATE)
		return tap_skip_all("ThreadSanitizer does not swap atomically between processes");
	stage_begin("newcomer");
	play = shared_memory(sizeof(*play));
	play->l = stage_create(1024, 1, SHMLIMIT_FULL_DENY);
	play->rule = set_version(0);
	crew_start(&writer, 1, change, NULL);
	for (round = 0; round < ROUNDS_MAX && over == 0 && bad == 0 &&
	                (round < scaled(ROUNDS) || atomic_load(&play->changes) < scaled(CHANGES));
	     round++) {
		atomic_store(&play->round, round);
		bad += crew_run(WORKERS, ask, NULL);
		for (int i = 0; i < KEYS; i++) {
			uint64_t got = atomic_exchange(&play->admitted[i], 0);

			over += got > CAPACITY;
			admitted += got;
		}
		shmlimit_reset(play->l, SHMLIMIT_ALL_RULES, NULL, 0);
	}
	bad += !crew_kill(&writer, 0);
	is(bad, 0, "processes end well");
	ok(atomic_load(&play->changes) >= scaled(CHANGES), "a rule is changed while keys get their slots (%" PRIu64 ")",
	   atomic_load(&play->changes));
	is(over, 0, "no key is admitted more than its capacity");
	ok(admitted > round * KEYS, "keys were admitted (%" PRIu64 ")", admitted);
	is(play->errors, 0, "no call fails");
	is(shmlimit_verify(stage_name, NULL, 0), 0, "the segment is sound, no key has two slots");
	shmlimit_close(play->l);
	return tap_done();
}
