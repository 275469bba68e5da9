/*
 * audit: what must hold of the segment at each point of a call at which its process is stopped or killed. An audit
 * tries all of these, and then restores the bytes.
 *
 *	sound   shmlimit_verify() finds nothing, and no key has two slots (I3)
 *	keys    each key of each rule is as before the call or as after it, both in a peek and by requests until it is
 *	        denied (I1; and I3 for all keys but the call's)
 *	stuck   fresh processes finish calls on the same key; where their steps are counted, in at most AUDIT_TIMES
 *	        those that they take on a calm segment, plus AUDIT_STEPS (I4)
 *	swept   after a take by a fresh process nothing else is in the table, and it is not due to be swept at once (for a
 *	        table of which all is over)
 *	lost    once funnels have refilled, new keys find a place in every slot (I4)
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_CRASH_AUDIT_H
#define TESTS_CRASH_AUDIT_H

#include <sys/resource.h>

#include "call.h"
#include "states.h"

#define AUDIT_TIMES 4
/* Freezing a window of the old table, slot by slot, and judging one of the present table, which no calm segment has: 64 slots. */
#define AUDIT_STEPS 14000
/* In each such audit the instructions of one call are counted, by single steps: that takes a hundred times as long. */
#define AUDIT_COUNTED 16
/* BOUND: what a call that is not counted may use of a processor. */
#define AUDIT_CPU_SECONDS 30
#define LATER_NS (2 * DAY_NS) /* all but what is held has refilled */
#define DRAIN_MAX 64          /* after this many requests a key that is never denied counts as a fault */

/* How a key looks. */
struct sight {
	int answer;               /* of a peek */
	struct shmlimit_result r; /* its times only where those were given */
	unsigned drained;         /* how many more are admitted */
};

#define WATCHED (4 + 2 * (SLOTS - 2))

struct watched {
	int rule;
	char key[8];
};

struct sights {
	struct sight key[WATCHED];
};

/* Of all that was audited. */
struct audit {
	struct sights before, after;
	uint64_t gives_back; /* tokens that may be missing during the call: taken, and to be given back */
	int left_behind;     /* a lease may be gone during the call, with the table that it was in */
	int sweeps;          /* all keys are over, and the table is to be swept at once */
	unsigned sound, keys, stuck, swept, lost; /* faults */
};

static uint64_t audit_steps_most; /* that a call of a fresh process took, in hundredths of the calm one */

/* The calls' keys, and all that fill the table. */
static inline struct watched audit_watched(unsigned i)
{
	struct watched watched = { i == 2 ? OTHER : SUBJECT, "k" };

	if (i == 1)
		strcpy(watched.key, "l");
	else if (i == 3)
		strcpy(watched.key, "m");
	else if (i >= 4) {
		watched.rule = i % 2 == 0 ? OTHER : HELD;
		snprintf(watched.key, sizeof(watched.key), "n%u", (i - 4) / 2);
	}
	return watched;
}

static inline int same_sight(const struct sight *a, const struct sight *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

static inline unsigned audit_drain(int rule, const char *key)
{
	struct shmlimit_result r;
	unsigned n = 0;

	while (n < DRAIN_MAX &&
	       shmlimit_take(at_time(scene.l, scene.look_ns), rule, key, strlen(key), 1, &r) == SHMLIMIT_ALLOWED &&
	       r.retry_after_ns == 0)
		n++;
	return n;
}

/* All keys as they are now. */
static inline void audit_see(struct sights *out)
{
	static unsigned char *kept;

	kept = scene_keep(kept);
	memset(out, 0, sizeof(*out));
	for (unsigned i = 0; i < WATCHED; i++) {
		struct watched watched = audit_watched(i);
		struct sight *sight = &out->key[i];

		scene_restore(kept);
		sight->answer = shmlimit_peek(at_time(scene.l, scene.look_ns), watched.rule, watched.key,
		                              strlen(watched.key), 1, &sight->r);
		if (scene.look_ns != scene.now_ns)
			sight->r.retry_after_ns = sight->r.reset_after_ns = 0;
		sight->drained = audit_drain(watched.rule, watched.key);
	}
	scene_restore(kept);
}

static inline int has_duplicate(const struct shmlimit *l)
{
	const struct layout_slot *slot = l->tables[0].slots;
	struct rule_view ignored;

	for (unsigned i = 0; i < SLOTS; i++)
		for (unsigned j = 0; j < i; j++)
			if (slot[i].tag != 0 && tag_same_key(rule_plain(l, slot[i].tag), rule_plain(l, slot[j].tag)) &&
			    rule_load_tag(l, slot[i].tag, &ignored) == 0 &&
			    rule_load_tag(l, slot[j].tag, &ignored) == 0)
				return 1;
	return 0;
}

static inline int is_sound(void)
{
	struct shmlimit_problem problem;
	int found = shmlimit_verify(stage_name, &problem, 1);

	if (found > 0)
		diag("%s", problem.text);
	return found == 0 && !has_duplicate(scene.l);
}

/* As before or as after; in between, if the call takes first and gives back then; nothing, of what is left behind. */
static inline int is_due(const struct audit *audit, const struct sights *now, unsigned i)
{
	const struct sight *before = &audit->before.key[i], *after = &audit->after.key[i], *sight = &now->key[i];

	return same_sight(sight, before) || same_sight(sight, after) ||
	       (audit->gives_back != 0 && sight->drained < before->drained &&
	        sight->drained + audit->gives_back >= before->drained) ||
	       (audit->left_behind && sight->drained == 0);
}

static inline unsigned audit_keys(const struct audit *audit)
{
	struct sights now;
	unsigned bad = 0;

	audit_see(&now);
	for (unsigned i = 0; i < WATCHED; i++) {
		if (is_due(audit, &now, i))
			continue;
		diag("key %s of rule %d: answer %d, %u left; before %d, %u; after %d, %u", audit_watched(i).key,
		     audit_watched(i).rule, now.key[i].answer, now.key[i].drained, audit->before.key[i].answer,
		     audit->before.key[i].drained, audit->after.key[i].answer, audit->after.key[i].drained);
		bad++;
	}
	return bad;
}

/* Calls of a fresh process, in what others left. */
static const struct call audit_calls[] = {
	{ TAKE, "k", 1 },     { REFUND, "k", 1 }, { CHARGE, "k", 1 }, { RESERVE, "k", 1 }, { PEEK, "k", 1 },
	{ TAKE_ALL, "k", 1 }, { TAKE, "l", 1 },   { RESET_KEY, "k" }, { RESET_RULE },      { RESET_ALL },
};

#define AUDIT_CALLS (sizeof(audit_calls) / sizeof(audit_calls[0]))

static uint64_t audit_calm[AUDIT_CALLS]; /* instructions of each, on the segment as it was made */

static inline void audit_calibrate(void)
{
	unsigned char *kept = scene_keep(NULL);

	for (unsigned i = 0; i < AUDIT_CALLS; i++) {
		audit_calm[i] = tracee_count(call_make, &audit_calls[i]);
		scene_restore(kept);
	}
	free(kept);
}

static inline int is_finished(unsigned which, const unsigned char *kept)
{
	uint64_t calm = audit_calm[which], steps;

	scene_restore(kept);
	steps = tracee_count(call_make, &audit_calls[which]);
	scene_restore(kept);
	if (steps * 100 / calm > audit_steps_most)
		audit_steps_most = steps * 100 / calm;
	if (steps <= AUDIT_TIMES * calm + AUDIT_STEPS)
		return 1;
	diag("call %u took %" PRIu64 " instructions, %" PRIu64 " on a calm segment", which, steps, calm);
	return 0;
}

/* A call that does not end is killed, and the test with it. */
static inline int audit_call(const void *arg)
{
	struct rlimit limit = { .rlim_cur = AUDIT_CPU_SECONDS, .rlim_max = AUDIT_CPU_SECONDS };

	setrlimit(RLIMIT_CPU, &limit);
	return call_make(arg);
}

/* Each call is made to its end. Of some audits one is counted, all in turn; `all`: each in each audit. */
static inline unsigned audit_stuck(const unsigned char *kept, int all)
{
	static unsigned audits, turn;
	unsigned stuck = 0;

	for (unsigned i = 0; i < AUDIT_CALLS; i++) {
		if (all) {
			stuck += !is_finished(i, kept);
			continue;
		}
		tracee_run(audit_call, &audit_calls[i]);
		scene_restore(kept);
	}
	if (!all && audits++ % AUDIT_COUNTED == 0)
		stuck += !is_finished(turn++ % AUDIT_CALLS, kept);
	return stuck;
}

/* A fresh process takes: it finishes the round, also one that the stopped process began. How much is found besides its own key. */
static inline unsigned audit_unswept(const unsigned char *kept)
{
	static const struct call take = { TAKE, "k", 1 };
	const struct layout_header *header = scene.l->header;
	const struct layout_slot *slot;
	struct generation tables;
	const struct table *t;
	unsigned found = 0;

	tracee_run(audit_call, &take);
	if (scene.now_ns - header->swept.ns >= 2 * header->sweep_after_ns)
		found++;
	generation_read(scene.l, &tables);
	for (uint64_t i = 0; (slot = generation_slot(&tables, i, &t)) != NULL; i++)
		found += (slot->tag & ~TAG_FROZEN) != 0;
	scene_restore(kept);
	return found > 1 ? found - 1 : 0;
}

/* Slots that new keys cannot claim when everything that can has refilled. */
static inline unsigned audit_lost(void)
{
	static unsigned char *kept;
	uint64_t later_ns = scene.now_ns + LATER_NS;
	uint32_t on_full = scene.l->on_full;
	struct shmlimit_info info = { .struct_size = sizeof(info) };
	unsigned held = 0, claimed = 0, tried;
	char key[16];

	kept = scene_keep(kept);
	scene.l->on_full = SHMLIMIT_FULL_DENY;
	shmlimit_enable(scene.l, 1);
	shmlimit_info(scene.l, &info);
	/* A key's window is all of the first table, and half of the next or more. */
	tried = info.slots == SLOTS ? SLOTS + 1 : 32 * GROWN;
	for (uint64_t i = 0; i < info.slots; i++) {
		struct shmlimit_slot slot = { .struct_size = sizeof(slot) };

		shmlimit_slot(scene.l, i, &slot, later_ns);
		held += slot.state == SHMLIMIT_SLOT_LIVE && slot.rule == HELD;
	}
	for (unsigned i = 0; i < tried; i++) {
		int n = snprintf(key, sizeof(key), "new %u", i);

		claimed +=
			shmlimit_take(at_time(scene.l, later_ns), OTHER, key, (size_t)n, 1, NULL) == SHMLIMIT_ALLOWED;
	}
	scene.l->on_full = on_full;
	scene_restore(kept);
	return (unsigned)info.slots - held - claimed;
}

/* Audit the segment as it is. */
static inline void audit_state(struct audit *audit, int all)
{
	static unsigned char *kept;

	kept = scene_keep(kept);
	audit->sound += !is_sound();
	audit->keys += audit_keys(audit);
	audit->stuck += audit_stuck(kept, all);
	audit->swept += audit->sweeps && audit_unswept(kept) != 0;
	audit->lost += audit_lost() != 0;
}

#endif
