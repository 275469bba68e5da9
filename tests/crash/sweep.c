/*
 * sweep: a process is stopped after each instruction of a call that writes to the segment, and wherever that instruction
 * changed it, the segment is audited: I4, with I1 and I3. audit.h says what must hold.
 *
 * To other processes a stopped process is the same as a killed one: the calls here hold nothing of the kernel's except
 * the writers' lock, which the audits do not take. (kill.c kills, also a process that holds the lock.) To show that it
 * is the same, each call is made once more, and killed right after its first change.
 *
 * With CRASH_FULL=1 the steps of every call are counted in every state, instead of those of one call in some. CALL=swept makes
 * only those calls whose titles begin so.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "../tap.h"

#ifndef __x86_64__

int main(void)
{
	return tap_skip_all("instructions are read, and stopped at, as those of x86-64");
}

#else

#include "audit.h"

#define PREPARED 5
#define FOUND .law = SHMLIMIT_LAW_VEGAS, .least = 5 /* so that the number is always 5 */
#define MANY .capacity = 1000000000, .refill = 1000000000

static const struct scenario {
	const char *title;
	struct call before[PREPARED];
	struct call call;
	int answer;
	unsigned left[2]; /* how often "k" is admitted before and after */
	uint32_t on_full;
	enum {
		READS_ONLY = 1,
		GIVES_BACK = 2,
		OWN_CLOCK = 4,
		WINDOW = 8,
		WARMUP = 16,
		LEASED = 32,
		LEFT_BEHIND = 64,
		COUNTED = 128,
		PLACES = 256,
		SWEEPS = 512,
		TIMES = 1024,     /* a GCRA rule */
		REGISTERS = 2048, /* the number that it writes is of its pid */
		LASTS = 4096,     /* a place of a process that lives keeps its slot */
		CALENDAR = 8192   /* by the month, and the clock was set since the segment was made */
	} is;
} scenarios[] = {
	/* clang-format off */
	/* Taking, where there is room. */
	{ "take: a new key", { { 0 } }, { TAKE, "k", 1 }, 0, { 5, 4 } },
	{ "take: all of a new key", { { 0 } }, { TAKE, "k", 5 }, 0, { 5, 0 } },
	{ "take: a known key", { { TAKE, "k", 1 } }, { TAKE, "k", 1 }, 0, { 4, 3 } },
	{ "take: a known key, after an hour", { { TAKE, "k", 3, -(int64_t)HOUR_NS } }, { TAKE, "k", 2 }, 0,
	  { 3, 1 } },
	{ "take: a key that has refilled", { { TAKE, "k", 3, -(int64_t)DAY_NS } }, { TAKE, "k", 1 }, 0, { 5, 4 } },
	{ "take: denied", { { TAKE, "k", 5 } }, { TAKE, "k", 1 }, 1, { 0, 0 } },
	{ "take: denied, new and above the capacity", { { 0 } }, { TAKE, "k", 6 }, 1, { 5, 5 } },
	{ "take: nothing", { { TAKE, "k", 1 } }, { TAKE, "k", 0 }, 0, { 4, 4 }, 0, READS_ONLY },

	/* As many as fit: one swap decides how many. */
	{ "take_some: a new key", { { 0 } }, { TAKE_SOME, "k", 3 }, 0, { 5, 2 } },
	{ "take_some: more than a new key has", { { 0 } }, { TAKE_SOME, "k", 9 }, 0, { 5, 0 } },
	{ "take_some: a known key, of which a part fits", { { TAKE, "k", 3 } }, { TAKE_SOME, "k", 4 }, 0, { 2, 0 } },
	{ "take_some: denied", { { TAKE, "k", 5 } }, { TAKE_SOME, "k", 4 }, 1, { 0, 0 } },
	{ "take_some: converting, the capacity being lower",
	  { { TAKE, "k", 1 }, { SET_KILLED, .params = { .capacity = 3 } } }, { TAKE_SOME, "k", 4 }, 0, { 3, 0 } },
	{ "take_some: a window, of which a part fits", { { TAKE, "k", 3 } }, { TAKE_SOME, "k", 4 }, 0, { 2, 0 }, 0,
	  WINDOW },
	{ "take_some: a count, of which a part fits", { { TAKE, "k", 3 } }, { TAKE_SOME, "k", 4 }, 0, { 2, 0 }, 0, COUNTED },
	{ "take_some: gcra, a part", { { TAKE, "k", 3 } }, { TAKE_SOME, "k", 4 }, 0, { 2, 0 }, 0, TIMES },

	/* Pauses: there is one for another key, so their rule is there. */
	{ "pause: a new key", { { PAUSE, "m", 1 } }, { PAUSE, "k", 7 }, 0, { 5, 0 } },
	{ "pause: a known key", { { PAUSE, "m", 1 }, { TAKE, "k", 1 } }, { PAUSE, "k", 7 }, 0, { 4, 0 } },
	{ "pause: for longer", { { PAUSE, "k", 1 } }, { PAUSE, "k", 7 }, 0, { 0, 0 } },
	{ "pause: as long as it is", { { PAUSE, "k", 7 } }, { PAUSE, "k", 7 }, 0, { 0, 0 } },
	{ "pause: its end", { { TAKE, "k", 1 }, { PAUSE, "k", 7 } }, { PAUSE, "k", 0 }, 0, { 0, 4 } },
	{ "pause: a key of places", { { PAUSE, "m", 1 }, { ENTER, "k", 2 } }, { PAUSE, "k", 7 }, 0, { 3, 0 }, 0, PLACES },
	{ "pause: taking", { { TAKE, "k", 1 }, { PAUSE, "k", 7 } }, { TAKE, "k", 1 }, 1, { 0, 0 } },
	{ "pause: taking, when it is over", { { TAKE, "k", 1 }, { PAUSE, "k", 7, -(int64_t)8 * HOUR_NS } },
	  { TAKE, "k", 1 }, 0, { 4, 3 } },
	{ "pause: changing the rule", { { TAKE, "k", 1 }, { PAUSE, "k", 7 } },
	  { RULE_SET, .params = { .capacity = 4 } }, SUBJECT, { 0, 0 } },

	/* GCRA: a key is the time at which it was empty. */
	{ "gcra: a new key", { { 0 } }, { TAKE, "k", 1 }, 0, { 5, 4 }, 0, TIMES },
	{ "gcra: a known key", { { TAKE, "k", 1 } }, { TAKE, "k", 2 }, 0, { 4, 2 }, 0, TIMES },
	{ "gcra: after an hour", { { TAKE, "k", 3, -(int64_t)HOUR_NS } }, { TAKE, "k", 2 }, 0, { 3, 1 }, 0, TIMES },
	{ "gcra: denied", { { TAKE, "k", 5 } }, { TAKE, "k", 1 }, 1, { 0, 0 }, 0, TIMES },
	{ "gcra: reclaiming", { { FILL, NULL, 14, -(int64_t)DAY_NS }, { HOLD, NULL, 2 } }, { TAKE, "k", 1 }, 0, { 5, 4 },
	  0, TIMES },
	{ "gcra: evicting", { { FILL, NULL, 10 }, { HOLD, NULL, 6 } }, { TAKE, "k", 1 }, 0, { 5, 4 }, 0, TIMES },
	{ "gcra: a smaller limit, the time being kept",
	  { { TAKE, "k", 3 }, { SET_KILLED, .params = { .capacity = 3 } } }, { TAKE, "k", 1 }, 0, { 2, 1 }, 0, TIMES },
	{ "gcra: a larger limit, the time being kept",
	  { { TAKE, "k", 3 }, { SET_KILLED, .params = { .capacity = 20 } } }, { TAKE, "k", 1 }, 0, { 2, 1 }, 0, TIMES },
	{ "gcra: a charge by a larger limit",
	  { { TAKE, "k", 3 }, { SET_KILLED, .params = { .capacity = 20 } } }, { CHARGE, "k", 4 }, 0, { 2, 0 }, 0, TIMES },
	{ "gcra: charge into debt", { { TAKE, "k", 1 } }, { CHARGE, "k", 6 }, 0, { 4, 0 }, 0, TIMES },
	{ "gcra: reserve into debt", { { 0 } }, { RESERVE, "k", 7 }, 0, { 5, 0 }, 0, TIMES },
	{ "gcra: refund of a debt", { { CHARGE, "k", 7 } }, { REFUND, "k", 4 }, 0, { 0, 2 }, 0, TIMES },
	{ "gcra: take_all, the second denied", { { TAKE, "k", 5, .rule = OTHER } }, { TAKE_ALL, "k", 2 }, 1, { 5, 5 }, 0,
	  TIMES | GIVES_BACK },
	{ "gcra: take_all, a key that has refilled, the second denied",
	  { { TAKE, "k", 3, -(int64_t)DAY_NS }, { TAKE, "k", 5, .rule = OTHER } }, { TAKE_ALL, "k", 2 }, 1, { 5, 5 }, 0,
	  TIMES | GIVES_BACK },

	/* Tentative slots in the way. */
	{ "take: finishing what another began", { { ABANDON, "k" } }, { TAKE, "k", 1 }, 0, { 5, 4 } },
	{ "take: beside another key's tentative slot", { { ABANDON, "l" } }, { TAKE, "k", 1 }, 0, { 5, 4 } },
	{ "take: over another key's tentative slot", { { HOLD, NULL, 15 }, { ABANDON, "l" } }, { TAKE, "k", 1 }, 0,
	  { 5, 4 }, SHMLIMIT_FULL_DENY },
	{ "take: freeing a tentative slot of an older version",
	  { { ABANDON, "k" }, { SET_KILLED, .params = { .capacity = 4 } } }, { TAKE, "k", 1 }, 0, { 4, 3 } },

	/* A full table. */
	{ "take: reclaiming", { { FILL, NULL, 14, -(int64_t)DAY_NS }, { HOLD, NULL, 2 } }, { TAKE, "k", 1 }, 0,
	  { 5, 4 } },
	{ "take: reclaiming the last", { { HOLD, NULL, 15 }, { FILL, NULL, 1, -(int64_t)DAY_NS } },
	  { TAKE, "k", 1 }, 0, { 5, 4 }, SHMLIMIT_FULL_DENY },
	{ "take: evicting", { { FILL, NULL, 10 }, { HOLD, NULL, 6 } }, { TAKE, "k", 1 }, 0, { 5, 4 } },
	{ "take: no room, denied", { { FILL, NULL, 10 }, { HOLD, NULL, 6 } }, { TAKE, "k", 1 }, 1, { 0, 0 },
	  SHMLIMIT_FULL_DENY },
	{ "take: no room, allowed", { { FILL, NULL, 10 }, { HOLD, NULL, 6 } }, { TAKE, "k", 1 }, 0,
	  { DRAIN_MAX, DRAIN_MAX }, SHMLIMIT_FULL_ALLOW },
	{ "charge: no room", { { FILL, NULL, 10 }, { HOLD, NULL, 6 } }, { CHARGE, "k", 1 }, 0, { 0, 0 },
	  SHMLIMIT_FULL_DENY },

	/* Rules that were changed. */
	{ "take: converting, the capacity being lower",
	  { { TAKE, "k", 1 }, { SET_KILLED, .params = { .capacity = 3 } } }, { TAKE, "k", 1 }, 0, { 3, 2 } },
	{ "take: converting, the capacity being higher",
	  { { TAKE, "k", 1 }, { SET_KILLED, .params = { .capacity = 9 } } }, { TAKE, "k", 1 }, 0, { 4, 3 } },
	{ "take: converting a debt", { { CHARGE, "k", 7 }, { SET_KILLED, .params = { .refill = 2 } } },
	  { TAKE, "k", 1 }, 1, { 0, 0 } },
	{ "take: converting, after three writers that were killed",
	  { { TAKE, "k", 1 }, { SET_KILLED, .params = { .capacity = 9 } }, { SET_KILLED, .params = { .capacity = 8 } },
	    { SET_KILLED, .params = { .capacity = 7 } } }, { TAKE, "k", 1 }, 0, { 4, 3 } },
	/* Of a rule whose words have no quota. */
	{ "take: of many tokens", { { RULE_SET, .params = { MANY } }, { TAKE, "k", 999999995 } }, { TAKE, "k", 1 }, 0,
	  { 5, 4 } },
	{ "take: converting to a word without a quota", { { TAKE, "k", 1 }, { SET_KILLED, .params = { MANY } } },
	  { TAKE, "k", 1 }, 0, { 4, 3 } },
	{ "take: converting to a word with a quota",
	  { { RULE_SET, .params = { MANY } }, { TAKE, "k", 999999995 }, { SET_KILLED, .params = { .capacity = 5 } } },
	  { TAKE, "k", 1 }, 0, { 5, 4 } },
	{ "charge: of many tokens", { { RULE_SET, .params = { MANY } }, { TAKE, "k", 999999995 } }, { CHARGE, "k", 7 },
	  0, { 5, 0 } },
	{ "rule_set: to words without a quota", { { TAKE, "k", 1 }, { CHARGE, "l", 7 } },
	  { RULE_SET, .params = { MANY } }, SUBJECT, { 4, 4 } },
	{ "peek: of an older version", { { TAKE, "k", 1 }, { SET_KILLED, .params = { .capacity = 3 } } },
	  { PEEK, "k", 1 }, 0, { 3, 3 }, 0, READS_ONLY },
	{ "take: a dry run, allowed", { { RULE_SET, .params = { .mode = SHMLIMIT_DRY_RUN } } }, { TAKE, "k", 1 }, 0,
	  { 5, 4 } },
	{ "take: a dry run, denied", { { RULE_SET, .params = { .mode = SHMLIMIT_DRY_RUN } }, { TAKE, "k", 5 } },
	  { TAKE, "k", 1 }, 0, { 0, 0 } },
	{ "take: a rule that is off", { { RULE_SET, .params = { .mode = SHMLIMIT_OFF } } }, { TAKE, "k", 1 }, 0,
	  { DRAIN_MAX, DRAIN_MAX } },

	/* The clock. */
	{ "take: an hour back", { { TAKE, "k", 2, HOUR_NS } }, { TAKE, "k", 1 }, 0, { 3, 2 } },
	{ "take: denied an hour back", { { TAKE, "k", 5, HOUR_NS } }, { TAKE, "k", 1 }, 1, { 0, 0 } },

	/* The other verbs. */
	{ "peek: a new key", { { 0 } }, { PEEK, "k", 1 }, 0, { 5, 5 }, 0, READS_ONLY },
	{ "peek: a known key", { { TAKE, "k", 1 } }, { PEEK, "k", 5 }, 1, { 4, 4 }, 0, READS_ONLY },
	{ "refund: a known key", { { TAKE, "k", 3 } }, { REFUND, "k", 2 }, 0, { 2, 4 } },
	{ "refund: a key without a slot", { { 0 } }, { REFUND, "k", 2 }, 0, { 5, 5 }, 0, READS_ONLY },
	{ "refund: more than was spent", { { TAKE, "k", 1 } }, { REFUND, "k", 100 }, 0, { 4, 5 } },
	{ "refund: a debt", { { CHARGE, "k", 7 } }, { REFUND, "k", 4 }, 0, { 0, 2 } },
	{ "charge: a new key", { { 0 } }, { CHARGE, "k", 2 }, 0, { 5, 3 } },
	{ "charge: into debt", { { TAKE, "k", 1 } }, { CHARGE, "k", 6 }, 0, { 4, 0 } },
	{ "charge: beyond the longest debt", { { TAKE, "k", 1 } }, { CHARGE, "k", UINT64_MAX }, 0, { 4, 0 } },
	{ "reserve: what is there", { { TAKE, "k", 1 } }, { RESERVE, "k", 2 }, 0, { 4, 2 } },
	{ "reserve: a new key, into debt", { { 0 } }, { RESERVE, "k", 7 }, 0, { 5, 0 } },
	{ "reserve: too long a wait", { { CHARGE, "k", 7 } }, { RESERVE, "k", 2 }, 1, { 0, 0 } },
	{ "acquire: what is there", { { 0 } }, { ACQUIRE, "k", 2 }, 0, { 5, 3 }, 0, OWN_CLOCK },
	{ "acquire: denied", { { TAKE, "k", 5 } }, { ACQUIRE, "k", 1 }, 1, { 0, 0 }, 0, OWN_CLOCK },
	{ "throttle: a new triple", { { THROTTLE, "m", 7 } }, { THROTTLE, "k", 9 }, 0, { 5, 5 }, 0, OWN_CLOCK },
	{ "throttle: a known triple", { { THROTTLE, "k", 7 } }, { THROTTLE, "k", 7 }, 0, { 5, 5 }, 0, OWN_CLOCK },
	{ "take_all: all allowed", { { TAKE, "k", 1 } }, { TAKE_ALL, "k", 2 }, 0, { 4, 2 } },
	{ "take_all: new keys", { { 0 } }, { TAKE_ALL, "k", 2 }, 0, { 5, 3 } },
	{ "take_all: the first denied", { { TAKE, "k", 4 } }, { TAKE_ALL, "k", 2 }, 1, { 1, 1 } },
	{ "take_all: the second denied", { { TAKE, "k", 5, .rule = OTHER } }, { TAKE_ALL, "k", 2 }, 1, { 5, 5 }, 0,
	  GIVES_BACK },
	{ "take_all: a key that has refilled, the second denied",
	  { { TAKE, "k", 3, -(int64_t)DAY_NS }, { TAKE, "k", 5, .rule = OTHER } }, { TAKE_ALL, "k", 2 }, 1, { 5, 5 }, 0,
	  GIVES_BACK },

	/* Windows: 5 in 5 hours. */
	{ "window: a new key", { { 0 } }, { TAKE, "k", 1 }, 0, { 5, 4 }, 0, WINDOW },
	{ "window: three of a new key", { { 0 } }, { TAKE, "k", 3 }, 0, { 5, 2 }, 0, WINDOW },
	{ "window: a known key", { { TAKE, "k", 1 } }, { TAKE, "k", 2 }, 0, { 4, 2 }, 0, WINDOW },
	{ "window: when some have left it",
	  { { TAKE, "k", 3, -6 * (int64_t)HOUR_NS }, { TAKE, "k", 2, -4 * (int64_t)HOUR_NS } }, { TAKE, "k", 2 }, 0,
	  { 3, 1 }, 0, WINDOW },
	{ "window: when all have left it", { { TAKE, "k", 5, -6 * (int64_t)HOUR_NS } }, { TAKE, "k", 2 }, 0, { 5, 3 },
	  0, WINDOW },
	{ "window: around the ring",
	  { { TAKE, "k", 4, -8 * (int64_t)HOUR_NS }, { TAKE, "k", 1, -6 * (int64_t)HOUR_NS },
	    { TAKE, "k", 3, -2 * (int64_t)HOUR_NS } }, { TAKE, "k", 2 }, 0, { 2, 0 }, 0, WINDOW },
	{ "window: denied", { { TAKE, "k", 5 } }, { TAKE, "k", 1 }, 1, { 0, 0 }, 0, WINDOW },
	{ "window: for a process that was killed before its log entry", { { TAKE, "k", 1 }, { TAKE_KILLED, "k", 1 } },
	  { TAKE, "k", 1 }, 0, { 3, 2 }, 0, WINDOW },
	{ "window: for a process that was killed before its log entries", { { TAKE, "k", 1 }, { TAKE_KILLED, "k", 3 } },
	  { TAKE, "k", 1 }, 0, { 1, 0 }, 0, WINDOW },
	{ "window: denied, cells missing", { { TAKE, "k", 1 }, { TAKE_KILLED, "k", 4 } }, { TAKE, "k", 1 }, 1,
	  { 0, 0 }, 0, WINDOW },
	{ "window: evicting", { { FILL, NULL, 10 }, { HOLD, NULL, 6 } }, { TAKE, "k", 1 }, 0, { 5, 4 }, 0, WINDOW },
	{ "window: four hours back", { { TAKE, "k", 2, 4 * HOUR_NS } }, { TAKE, "k", 1 }, 0, { 3, 2 }, 0, WINDOW },
	{ "window: denied four hours back", { { TAKE, "k", 5, 4 * HOUR_NS } }, { TAKE, "k", 1 }, 1, { 0, 0 }, 0,
	  WINDOW },
	{ "window: converting, the capacity being lower",
	  { { TAKE, "k", 2 }, { SET_KILLED, .params = { .capacity = 4 } } }, { TAKE, "k", 1 }, 0, { 2, 1 }, 0, WINDOW },
	{ "window: converting, the capacity being higher, cells missing",
	  { { TAKE, "k", 1 }, { TAKE_KILLED, "k", 2 }, { SET_KILLED, .params = { .capacity = 8 } } },
	  { TAKE, "k", 1 }, 0, { 5, 4 }, 0, WINDOW },
	{ "window: refund", { { TAKE, "k", 4 } }, { REFUND, "k", 2 }, 0, { 1, 3 }, 0, WINDOW },
	{ "window: refund, cells missing", { { TAKE, "k", 1 }, { TAKE_KILLED, "k", 3 } }, { REFUND, "k", 1 }, 0,
	  { 1, 2 }, 0, WINDOW },
	{ "window: refund of everything", { { TAKE, "k", 4 } }, { REFUND, "k", 100 }, 0, { 1, 5 }, 0, WINDOW },
	{ "window: charge", { { TAKE, "k", 4 } }, { CHARGE, "k", 3 }, 0, { 1, 0 }, 0, WINDOW },
	{ "window: reserve", { { TAKE, "k", 5, -4 * (int64_t)HOUR_NS } }, { RESERVE, "k", 2 }, 0, { 0, 0 }, 0,
	  WINDOW },
	{ "window: reset", { { TAKE, "k", 4 } }, { RESET_KEY, "k" }, 0, { 1, 5 }, 0, WINDOW },
	{ "window: rule_set", { { TAKE, "k", 2 }, { TAKE, "l", 5 } }, { RULE_SET, .params = { .capacity = 3 } },
	  SUBJECT, { 3, 1 }, 0, WINDOW },
	{ "window: take_all, the second denied", { { TAKE, "k", 5, .rule = OTHER } }, { TAKE_ALL, "k", 2 }, 1,
	  { 5, 5 }, 0, WINDOW | GIVES_BACK },

	/* Warming up: what is asked of a cold one, it gives, and then nothing for hours. */
	{ "warmup: a new key", { { 0 } }, { TAKE, "k", 1 }, 0, { 1, 0 }, 0, WARMUP },
	{ "warmup: denied", { { TAKE, "k", 1 } }, { TAKE, "k", 1 }, 1, { 0, 0 }, 0, WARMUP },
	{ "warmup: when it was paid for", { { TAKE, "k", 1, -4 * (int64_t)HOUR_NS } }, { TAKE, "k", 2 }, 0, { 1, 0 },
	  0, WARMUP },
	{ "warmup: reserve", { { TAKE, "k", 1 } }, { RESERVE, "k", 2 }, 0, { 0, 0 }, 0, WARMUP },
	{ "warmup: refund", { { TAKE, "k", 1 } }, { REFUND, "k", 5 }, 0, { 0, 1 }, 0, WARMUP },
	{ "warmup: charge", { { 0 } }, { CHARGE, "k", 3 }, 0, { 1, 0 }, 0, WARMUP },
	{ "warmup: converting", { { TAKE, "k", 1 }, { SET_KILLED, .params = { .refill = 2 } } }, { RESERVE, "k", 1 }, 0,
	  { 0, 0 }, 0, WARMUP },

	/* Leases: the tokens that are here, whatever becomes of the process that asks for more. */
	{ "lease: asking, a new key", { { 0 } }, { LEASE, "k", 1 }, SHMLIMIT_LEASE_ASK, { 0, 0 }, 0, LEASED },
	{ "lease: asking, beside what is left", { { DEPOSIT, "k", 3 } }, { LEASE, "k", 3 }, SHMLIMIT_LEASE_ASK,
	  { 2, 2 }, 0, LEASED },
	{ "lease: asking, after a call that was killed", { { LEASE, "k", 2, -2 * (int64_t)HOUR_NS } }, { LEASE, "k", 2 },
	  SHMLIMIT_LEASE_ASK, { 0, 0 }, 0, LEASED },
	{ "lease: asking, what was left having expired", { { DEPOSIT, "k", 3, -6 * (int64_t)HOUR_NS } },
	  { LEASE, "k", 1 }, SHMLIMIT_LEASE_ASK, { 0, 0 }, 0, LEASED },
	{ "lease: asking, another having begun its claim", { { ABANDON, "k" } }, { LEASE, "k", 1 }, SHMLIMIT_LEASE_ASK,
	  { 0, 0 }, 0, LEASED },
	{ "lease: asking, in the slot of what has expired", { { DEPOSIT, "l", 3, -(int64_t)DAY_NS }, { HOLD, NULL, 15 } },
	  { LEASE, "k", 1 }, SHMLIMIT_LEASE_ASK, { 0, 0 }, SHMLIMIT_FULL_DENY, LEASED },
	{ "lease: asking, evicting", { { FILL, NULL, 10 }, { HOLD, NULL, 6 } }, { LEASE, "k", 1 }, SHMLIMIT_LEASE_ASK,
	  { 0, 0 }, 0, LEASED },
	{ "lease: asking, no room, denied", { { FILL, NULL, 10 }, { HOLD, NULL, 6 } }, { LEASE, "k", 1 }, 1, { 0, 0 },
	  SHMLIMIT_FULL_DENY, LEASED },
	{ "lease: asking, no room", { { FILL, NULL, 10 }, { HOLD, NULL, 6 } }, { LEASE, "k", 1 }, SHMLIMIT_LEASE_ASK,
	  { 0, 0 }, SHMLIMIT_FULL_ALLOW, LEASED },
	{ "lease: waiting", { { LEASE, "k", 1 } }, { LEASE, "k", 1 }, SHMLIMIT_LEASE_WAIT, { 0, 0 }, 0,
	  LEASED | READS_ONLY },
	{ "lease: spending", { { DEPOSIT, "k", 4 } }, { LEASE, "k", 2 }, 0, { 3, 1 }, 0, LEASED },
	{ "lease: spending while another asks", { { DEPOSIT, "k", 4 }, { LEASE, "k", 5 } }, { LEASE, "k", 2 }, 0,
	  { 3, 1 }, 0, LEASED },
	{ "lease: a take", { { DEPOSIT, "k", 4 } }, { TAKE, "k", 1 }, 0, { 3, 2 }, 0, LEASED },
	{ "lease: deposit, a new key", { { 0 } }, { DEPOSIT, "k", 4 }, 0, { 0, 3 }, 0, LEASED },
	{ "lease: deposit, asked for", { { LEASE, "k", 1 } }, { DEPOSIT, "k", 4 }, 0, { 0, 3 }, 0, LEASED },
	{ "lease: deposit, beside what is left", { { DEPOSIT, "k", 3 }, { LEASE, "k", 3 } }, { DEPOSIT, "k", 4 }, 0,
	  { 2, 4 }, 0, LEASED },
	{ "lease: deposit, more than there is room for", { { LEASE, "k", 1 } }, { DEPOSIT, "k", 9 }, 0, { 0, 5 }, 0,
	  LEASED },
	{ "lease: deposit, the claim being another's by then",
	  { { LEASE, "k", 1, -2 * (int64_t)HOUR_NS }, { LEASE, "k", 2 } }, { DEPOSIT, "k", 4 }, 0, { 0, 3 }, 0, LEASED },
	{ "lease: deposit, over a denial", { { DENY, "k", 1 } }, { DEPOSIT, "k", 4 }, 0, { 0, 3 }, 0, LEASED },
	{ "lease: deposit of nothing, others having spent what was held", { { LEASE, "k", 1 } }, { DEPOSIT, "k", 0 },
	  SHMLIMIT_LEASE_WAIT, { 0, 0 }, 0, LEASED },
	{ "lease: deposit, evicting", { { FILL, NULL, 10 }, { HOLD, NULL, 6 } }, { DEPOSIT, "k", 4 }, 0, { 0, 3 }, 0,
	  LEASED },
	{ "lease: deposit, no room", { { FILL, NULL, 10 }, { HOLD, NULL, 6 } }, { DEPOSIT, "k", 4 }, 0, { 0, 0 },
	  SHMLIMIT_FULL_DENY, LEASED },
	{ "lease: deny", { { LEASE, "k", 1 } }, { DENY, "k", 1 }, 1, { 0, 0 }, 0, LEASED },
	{ "lease: deny, beside what is left", { { DEPOSIT, "k", 3 }, { LEASE, "k", 3 } }, { DENY, "k", 3 }, 1,
	  { 2, 2 }, 0, LEASED },
	{ "lease: deny, a new key", { { 0 } }, { DENY, "k", 1 }, 1, { 0, 0 }, 0, LEASED },
	{ "lease: denied", { { DENY, "k", 1 } }, { LEASE, "k", 1 }, 1, { 0, 0 }, 0, LEASED },
	{ "lease: abandon", { { DEPOSIT, "k", 3 }, { LEASE, "k", 3 } }, { GIVE_UP, "k" }, 0, { 2, 2 }, 0, LEASED },
	{ "lease: abandon, a new key", { { 0 } }, { GIVE_UP, "k" }, 0, { 0, 0 }, 0, LEASED | READS_ONLY },
	{ "lease: peek", { { DEPOSIT, "k", 3 } }, { PEEK, "k", 1 }, 0, { 2, 2 }, 0, LEASED | READS_ONLY },
	{ "lease: take_all, the second denied", { { DEPOSIT, "k", 4 }, { TAKE, "k", 5, .rule = OTHER } },
	  { TAKE_ALL, "k", 2 }, 1, { 3, 3 }, 0, LEASED | GIVES_BACK },
	{ "lease: refund", { { DEPOSIT, "k", 3 } }, { REFUND, "k", 1 }, 0, { 2, 3 }, 0, LEASED },
	{ "lease: charge", { { DEPOSIT, "k", 5 } }, { CHARGE, "k", 3 }, 0, { 4, 1 }, 0, LEASED },
	{ "lease: converting, the capacity being lower",
	  { { DEPOSIT, "k", 5 }, { SET_KILLED, .params = { .capacity = 3 } } }, { TAKE, "k", 1 }, 0, { 3, 2 }, 0,
	  LEASED },
	{ "lease: converting a claim", { { LEASE, "k", 1 }, { SET_KILLED, .params = { .capacity = 3 } } },
	  { LEASE, "k", 1 }, SHMLIMIT_LEASE_WAIT, { 0, 0 }, 0, LEASED },
	{ "lease: converting a denial", { { DENY, "k", 1 }, { SET_KILLED, .params = { .capacity = 9 } } },
	  { LEASE, "k", 1 }, SHMLIMIT_LEASE_ASK, { 0, 0 }, 0, LEASED },
	{ "lease: peek of an older version", { { DEPOSIT, "k", 5 }, { SET_KILLED, .params = { .capacity = 3 } } },
	  { PEEK, "k", 1 }, 0, { 3, 3 }, 0, LEASED | READS_ONLY },
	{ "lease: rule_set", { { DEPOSIT, "k", 5 }, { LEASE, "l", 1 } }, { RULE_SET, .params = { .capacity = 3 } },
	  SUBJECT, { 4, 3 }, 0, LEASED },
	{ "lease: reset", { { DEPOSIT, "k", 5 } }, { RESET_KEY, "k" }, 0, { 4, 0 }, 0, LEASED },

	/* Counts that expire: whether one is above 0 shows in what a take is still allowed. */
	{ "count: a new key", { { 0 } }, { COUNT, "k", 2 }, 0, { 5, 3 }, 0, COUNTED },
	{ "count: a known key", { { COUNT, "k", 2 } }, { COUNT, "k", 3 }, 0, { 3, 0 }, 0, COUNTED },
	{ "count: beyond the bound", { { COUNT, "k", 2 } }, { COUNT, "k", 4 }, 1, { 3, 3 }, 0, COUNTED },
	{ "count: a key whose time is over", { { COUNT, "k", 4, -2 * (int64_t)DAY_NS } }, { COUNT, "k", 1 }, 0, { 5, 4 },
	  0, COUNTED },
	{ "count: less", { { COUNT, "k", 4 } }, { COUNT_DOWN, "k", 3 }, 0, { 1, 4 }, 0, COUNTED },
	{ "count: less than none", { { COUNT, "k", 4 } }, { COUNT_DOWN, "k", 5 }, 1, { 1, 1 }, 0,
	  COUNTED | READS_ONLY },
	{ "count: reading", { { COUNT, "k", 4 } }, { COUNT, "k", 0 }, 0, { 1, 1 }, 0, COUNTED | READS_ONLY },
	{ "count: what fits, and the time begins again", { { COUNT, "k", 4, -(int64_t)HOUR_NS } },
	  { COUNT_RESTART, "k", 4 }, 0, { 1, 0 }, 0, COUNTED },
	{ "count: evicting", { { FILL, NULL, 10 }, { HOLD, NULL, 6 } }, { COUNT, "k", 1 }, 0, { 5, 4 }, 0, COUNTED },
	{ "count: no room, denied", { { FILL, NULL, 10 }, { HOLD, NULL, 6 } }, { COUNT, "k", 1 }, 1, { 0, 0 },
	  SHMLIMIT_FULL_DENY, COUNTED },
	{ "count: by the calendar, a new key", { { 0 } }, { COUNT, "k", 2 }, 0, { 5, 3 }, 0, COUNTED | CALENDAR | OWN_CLOCK },
	{ "count: by the calendar, take", { { 0 } }, { TAKE, "k", 2 }, 0, { 5, 3 }, 0, COUNTED | CALENDAR | OWN_CLOCK },
	{ "count: take", { { COUNT, "k", 1 } }, { TAKE, "k", 2 }, 0, { 4, 2 }, 0, COUNTED },
	{ "count: refund", { { COUNT, "k", 4 } }, { REFUND, "k", 2 }, 0, { 1, 3 }, 0, COUNTED },
	{ "count: charge", { { COUNT, "k", 1 } }, { CHARGE, "k", 9 }, 0, { 4, 0 }, 0, COUNTED },
	{ "count: take_all, the second denied", { { COUNT, "k", 1 }, { TAKE, "k", 5, .rule = OTHER } },
	  { TAKE_ALL, "k", 2 }, 1, { 4, 4 }, 0, COUNTED | GIVES_BACK },
	{ "count: take_all, a count that is over, the second denied",
	  { { COUNT, "k", 3, -6 * (int64_t)HOUR_NS }, { TAKE, "k", 5, .rule = OTHER } }, { TAKE_ALL, "k", 2 }, 1, { 5, 5 }, 0,
	  COUNTED | GIVES_BACK },
	{ "count: converting, the capacity being lower",
	  { { COUNT, "k", 1 }, { SET_KILLED, .params = { .capacity = 3 } } }, { COUNT, "k", 1 }, 0, { 2, 1 }, 0, COUNTED },
	{ "count: rule_set", { { COUNT, "k", 1 }, { COUNT, "l", 5 } }, { RULE_SET, .params = { .capacity = 3 } },
	  SUBJECT, { 4, 2 }, 0, COUNTED },
	{ "count: reset", { { COUNT, "k", 5 } }, { RESET_KEY, "k" }, 0, { 0, 5 }, 0, COUNTED },
	{ "count: moving to a larger table", { { COUNT, "k", 2 }, { GROW, NULL, GROWN } }, { COUNT, "k", 1 }, 0, { 3, 2 },
	  0, COUNTED },

	/* Places, 5 of them, each for 5 hours. */
	{ "enter: a new key", { { 0 } }, { ENTER, "k", 1 }, 0, { 5, 4 }, 0, PLACES },
	{ "enter: a known key", { { ENTER, "k", 2 } }, { ENTER, "k", 1 }, 0, { 3, 2 }, 0, PLACES },
	{ "enter: the place of one that was killed", { { ENTER, "k", 5, -6 * (int64_t)HOUR_NS } }, { ENTER, "k", 1 }, 0,
	  { 5, 4 }, 0, PLACES },
	{ "enter: denied", { { ENTER, "k", 5 } }, { ENTER, "k", 1 }, 1, { 0, 0 }, 0, PLACES },
	{ "enter: evicting", { { FILL, NULL, 10 }, { HOLD, NULL, 6 } }, { ENTER, "k", 1 }, 0, { 5, 4 }, 0, PLACES },
	{ "enter: no room, denied", { { FILL, NULL, 10 }, { HOLD, NULL, 6 } }, { ENTER, "k", 1 }, 1, { 0, 0 },
	  SHMLIMIT_FULL_DENY, PLACES },
	{ "enter: converting, the capacity being lower",
	  { { ENTER, "k", 1 }, { SET_KILLED, .params = { .capacity = 3 } } }, { ENTER, "k", 1 }, 0, { 2, 1 }, 0, PLACES },
	{ "enter by a bound: a new key", { { 0 } }, { ENTER_BY, "k", 2 }, 0, { 5, 4 }, 0, PLACES },
	{ "enter by a bound: a known key", { { ENTER, "k", 2 } }, { ENTER_BY, "k", 3 }, 0, { 3, 2 }, 0, PLACES },
	{ "enter by a bound: above the capacity", { { ENTER, "k", 4 } }, { ENTER_BY, "k", 9 }, 0, { 1, 0 }, 0, PLACES },
	{ "enter by a bound: denied by a lower one", { { ENTER, "k", 3 } }, { ENTER_BY, "k", 2 }, 1, { 2, 2 }, 0, PLACES },
	{ "enter by a bound: moving to a larger table", { { ENTER, "k", 2 }, { GROW, NULL, GROWN } }, { ENTER_BY, "k", 3 }, 0,
	  { 3, 2 }, 0, PLACES },
	{ "enter: moving to a larger table", { { ENTER, "k", 2 }, { GROW, NULL, GROWN } }, { ENTER, "k", 1 }, 0, { 3, 2 },
	  0, PLACES },
	{ "renew", { { ENTER, "k", 2, -(int64_t)HOUR_NS } }, { RENEW, "k" }, 0, { 3, 3 }, 0, PLACES },
	{ "renew: too late", { { ENTER, "k", 2, -6 * (int64_t)HOUR_NS } }, { RENEW, "k" }, -ETIME, { 5, 5 }, 0,
	  PLACES | READS_ONLY },
	/* When that process has ended, there is a place more. */
	{ "enter bound: a new key", { { 0 } }, { ENTER_BOUND, "k", 1 }, 0, { 5, 5 }, 0, PLACES | REGISTERS | LASTS | GIVES_BACK },
	{ "enter bound: a known key", { { ENTER, "k", 2 } }, { ENTER_BOUND, "k", 1 }, 0, { 3, 3 }, 0,
	  PLACES | REGISTERS | LASTS | GIVES_BACK },
	{ "enter bound: moving to a larger table", { { ENTER, "k", 2 }, { GROW, NULL, GROWN } }, { ENTER_BOUND, "k", 1 }, 0,
	  { 3, 3 }, 0, PLACES | REGISTERS | LASTS | GIVES_BACK },
	{ "enter by a share", { { ENTER, "k", 2 } }, { ENTER_SHARED, "k", 1 }, 0, { 3, 3 }, 0,
	  PLACES | REGISTERS | LASTS | GIVES_BACK },
	{ "enter by a share: denied", { { ENTER, "l", 3 }, { ENTER, "k", 2 } }, { ENTER_SHARED, "k", 1 }, 1, { 3, 3 }, 0,
	  PLACES | REGISTERS | LASTS | GIVES_BACK },
	{ "bind", { { ENTER, "k", 2 } }, { BIND, "k" }, 0, { 3, 4 }, 0, PLACES | REGISTERS | LASTS },
	{ "bind: moving to a larger table", { { ENTER, "k", 2 }, { GROW, NULL, GROWN } }, { BIND, "k" }, 0, { 3, 4 }, 0,
	  PLACES | REGISTERS | LASTS },
	{ "bind: too late", { { ENTER, "k", 2, -6 * (int64_t)HOUR_NS } }, { BIND, "k" }, -ETIME, { 5, 5 }, 0,
	  PLACES | REGISTERS },
	{ "renew: a bound place", { { ENTER, "k", 2, -(int64_t)HOUR_NS }, { BIND, "k" } }, { RENEW, "k" }, 0, { 3, 3 }, 0,
	  PLACES | LASTS },
	{ "leave", { { ENTER, "k", 2 } }, { LEAVE, "k" }, 0, { 3, 4 }, 0, PLACES },
	{ "found: leave, the first", { { RULE_SET, .params = { FOUND } }, { ENTER, "k", 2 } }, { LEAVE, "k" }, 0, { 3, 4 }, 0,
	  PLACES },
	{ "found: leave, another", { { RULE_SET, .params = { FOUND } }, { ENTER, "k", 3 }, { LEAVE, "k" }, { ENTER, "k", 1 } },
	  { LEAVE, "k" }, 0, { 2, 3 }, 0, PLACES },
	{ "found: enter", { { RULE_SET, .params = { FOUND } }, { ENTER, "k", 2 }, { LEAVE, "k" } }, { ENTER, "k", 1 }, 0,
	  { 4, 3 }, 0, PLACES },
	{ "found: enter, denied", { { RULE_SET, .params = { FOUND } }, { ENTER, "k", 1 }, { LEAVE, "k" }, { ENTER, "k", 5 } },
	  { ENTER, "k", 1 }, 1, { 0, 0 }, 0, PLACES },
	{ "found: enter, moving to a larger table",
	  { { RULE_SET, .params = { FOUND } }, { ENTER, "k", 2 }, { LEAVE, "k" }, { GROW, NULL, GROWN } }, { ENTER, "k", 1 }, 0,
	  { 4, 3 }, 0, PLACES },
	{ "leave: too late", { { ENTER, "k", 2, -6 * (int64_t)HOUR_NS } }, { LEAVE, "k" }, -ETIME, { 5, 5 }, 0,
	  PLACES | READS_ONLY },
	{ "leave: twice", { { ENTER, "k", 2 }, { LEAVE, "k" } }, { LEAVE, "k" }, -ETIME, { 4, 4 }, 0, PLACES | READS_ONLY },
	{ "leave: moving to a larger table", { { ENTER, "k", 2 }, { GROW, NULL, GROWN } }, { LEAVE, "k" }, 0, { 3, 4 }, 0,
	  PLACES },
	{ "hold: take_all, the second denied", { { TAKE, "k", 5, .rule = OTHER } }, { TAKE_ALL, "k", 1 }, 1, { 5, 5 }, 0,
	  PLACES | GIVES_BACK },
	{ "hold: reset", { { ENTER, "k", 3 } }, { RESET_KEY, "k" }, 0, { 2, 5 }, 0, PLACES },

	/* Resets, switches, rules. */
	{ "reset: a key", { { TAKE, "k", 3 }, { TAKE, "l", 1 } }, { RESET_KEY, "k" }, 0, { 2, 5 } },
	{ "reset: a key without a slot", { { TAKE, "l", 1 } }, { RESET_KEY, "k" }, 0, { 5, 5 }, 0, READS_ONLY },
	{ "reset: a fingerprint", { { TAKE, "k", 3 }, { TAKE, "l", 1 }, { FILL, NULL, 5 } }, { RESET_FINGERPRINT, "k" }, 0,
	  { 2, 5 } },
	{ "reset: a rule", { { TAKE, "k", 3 }, { TAKE, "l", 1 }, { FILL, NULL, 5 } }, { RESET_RULE }, 0, { 2, 5 } },
	{ "reset: everything", { { TAKE, "k", 3 }, { ABANDON, "l" }, { FILL, NULL, 5 } }, { RESET_ALL }, 0,
	  { 2, 5 } },
	{ "switch: off", { { TAKE, "k", 5 } }, { SWITCH, NULL, 0 }, 0, { 0, DRAIN_MAX } },
	{ "switch: on", { { TAKE, "k", 5 }, { SWITCH, NULL, 0 } }, { SWITCH, NULL, 1 }, 0, { DRAIN_MAX, 0 } },
	{ "rule_set: a new rule", { { TAKE, "k", 1 } }, { RULE_SET, "new" }, 3, { 4, 4 } },
	{ "rule_set: a lower capacity", { { TAKE, "k", 1 }, { TAKE, "l", 4 } },
	  { RULE_SET, .params = { .capacity = 2 } }, SUBJECT, { 4, 2 } },
	{ "rule_set: a higher capacity", { { TAKE, "k", 1 }, { CHARGE, "l", 7 } },
	  { RULE_SET, .params = { .capacity = 9 } }, SUBJECT, { 4, 4 } },
	{ "rule_set: another rate", { { TAKE, "k", 1 }, { CHARGE, "l", 7 } }, { RULE_SET, .params = { .refill = 3 } },
	  SUBJECT, { 4, 4 } },
	{ "rule_set: another mode", { { TAKE, "k", 1 } }, { RULE_SET, .params = { .mode = SHMLIMIT_OFF } }, SUBJECT,
	  { 4, DRAIN_MAX } },
	{ "rule_set: after a writer that was killed", { { TAKE, "k", 1 }, { SET_KILLED, .params = { .capacity = 4 } } },
	  { RULE_SET, .params = { .capacity = 3 } }, SUBJECT, { 4, 3 } },
	{ "rule_set: another algorithm", { { TAKE, "k", 1 }, { CHARGE, "l", 7 } },
	  { RULE_SET, NULL, 1 + SHMLIMIT_GCRA }, SUBJECT, { 4, 5 } },
	{ "rule_set: another algorithm, and keys in an old table", { { TAKE, "k", 1 }, { CHARGE, "l", 7 }, { GROW, NULL, GROWN } },
	  { RULE_SET, NULL, 1 + SHMLIMIT_GCRA }, SUBJECT, { 4, 5 } },
	{ "rule_set: the first algorithm, after a writer of another was killed",
	  { { TAKE, "k", 4 }, { SET_KILLED, NULL, 1 + SHMLIMIT_GCRA } }, { RULE_SET, NULL, 1 + SHMLIMIT_FUNNEL }, SUBJECT,
	  { 5, 5 } },
	{ "gcra: a funnel again", { { TAKE, "k", 4 }, { RESERVE, "l", 9 } }, { RULE_SET, NULL, 1 + SHMLIMIT_FUNNEL },
	  SUBJECT, { 1, 5 }, 0, TIMES },
	{ "take: after a writer of another algorithm was killed",
	  { { TAKE, "k", 5 }, { SET_KILLED, NULL, 1 + SHMLIMIT_GCRA } }, { TAKE, "k", 1 }, 0, { 5, 4 } },
	{ "take: evicting, after a writer of another algorithm was killed",
	  { { FILL, NULL, 10 }, { TAKE, "l", 5 }, { HOLD, NULL, 5 }, { SET_KILLED, NULL, 1 + SHMLIMIT_GCRA } },
	  { TAKE, "k", 1 }, 0, { 5, 4 } },
	{ "rule_remove", { { TAKE, "k", 1 }, { TAKE, "l", 1 } }, { RULE_REMOVE }, 0, { 4, 0 } },
	{ "rule_set: the id of a rule that was removed", { { TAKE, "k", 1 }, { RULE_REMOVE } }, { RULE_SET }, 3,
	  { 0, 0 } },

	/* A larger table, and keys on their way there. */
	{ "grow: an empty table", { { 0 } }, { GROW, NULL, GROWN }, 0, { 5, 5 } },
	{ "grow: a table with keys in it", { { TAKE, "k", 1 }, { CHARGE, "l", 7 } }, { GROW, NULL, GROWN }, 0, { 4, 4 } },
	{ "grow: keys are left", { { TAKE, "k", 1 }, { GROW, NULL, GROWN } }, { GROW }, -EALREADY, { 4, 4 } },
	{ "grow: no key is left", { { TAKE, "k", 1 }, { GROW, NULL, GROWN }, { TAKE, "k", 1 } }, { GROW }, 0, { 3, 3 } },
	{ "grown: a new key", { { TAKE, "l", 1 }, { GROW, NULL, GROWN } }, { TAKE, "k", 1 }, 0, { 5, 4 } },
	{ "grown: a key of before", { { TAKE, "k", 1 }, { GROW, NULL, GROWN } }, { TAKE, "k", 1 }, 0, { 4, 3 } },
	{ "grown: a key of before, denied", { { TAKE, "k", 5 }, { GROW, NULL, GROWN } }, { TAKE, "k", 1 }, 1, { 0, 0 } },
	{ "grown: a debt", { { CHARGE, "k", 7 }, { GROW, NULL, GROWN } }, { CHARGE, "k", 1 }, 0, { 0, 0 } },
	{ "grown: a key of before that has refilled", { { TAKE, "k", 3, -(int64_t)DAY_NS }, { GROW, NULL, GROWN } },
	  { TAKE, "k", 1 }, 0, { 5, 4 } },
	{ "grown: what another began before", { { ABANDON, "k" }, { GROW, NULL, GROWN } }, { TAKE, "k", 1 }, 0,
	  { 5, 4 } },
	{ "grown: refund", { { TAKE, "k", 3 }, { GROW, NULL, GROWN } }, { REFUND, "k", 2 }, 0, { 2, 4 } },
	{ "grown: peek", { { TAKE, "k", 3 }, { GROW, NULL, GROWN } }, { PEEK, "k", 1 }, 0, { 2, 2 }, 0, READS_ONLY },
	{ "grown: reset", { { TAKE, "k", 3 }, { GROW, NULL, GROWN } }, { RESET_KEY, "k" }, 0, { 2, 5 } },
	{ "grown: rule_set", { { TAKE, "k", 1 }, { GROW, NULL, GROWN } }, { RULE_SET, .params = { .capacity = 2 } },
	  SUBJECT, { 4, 2 } },
	{ "grown: a full table", { { TAKE, "k", 1 }, { GROW, NULL, GROWN }, { HOLD, NULL, 40 } }, { TAKE, "k", 1 }, 0,
	  { 4, 3 } },
	{ "grown: window", { { TAKE, "k", 1, -3 * (int64_t)HOUR_NS }, { TAKE, "k", 2 }, { GROW, NULL, GROWN } },
	  { TAKE, "k", 1 }, 0, { 2, 1 }, 0, WINDOW },
	{ "grown: window, cells missing", { { TAKE, "k", 1 }, { TAKE_KILLED, "k", 2 }, { GROW, NULL, GROWN } },
	  { TAKE, "k", 1 }, 0, { 2, 1 }, 0, WINDOW },
	{ "grown: lease, which is left behind", { { DEPOSIT, "k", 4 }, { GROW, NULL, GROWN } }, { LEASE, "k", 1 },
	  SHMLIMIT_LEASE_ASK, { 0, 0 }, 0, LEASED | LEFT_BEHIND },
	{ "grown: lease, deposit of a call that asked before", { { LEASE, "k", 1 }, { GROW, NULL, GROWN } }, { DEPOSIT, "k", 4 },
	  0, { 0, 3 }, 0, LEASED | LEFT_BEHIND },
	{ "grown: warmup", { { TAKE, "k", 1 }, { GROW, NULL, GROWN } }, { CHARGE, "k", 3 }, 0, { 0, 0 }, 0, WARMUP },

	/* A rule gets larger logs, or more places: the key's are copied. */
	{ "rule_set: a window that needs a longer ring", { { TAKE, "k", 2 } }, { RULE_SET, .params = { .capacity = 12 } },
	  SUBJECT, { 3, 10 }, 0, WINDOW },
	{ "rule_set: more places", { { ENTER, "k", 2 } }, { RULE_SET, .params = { .capacity = 12 } }, SUBJECT, { 3, 10 }, 0,
	  PLACES },
	{ "lengthened: window", { { TAKE, "k", 1, -3 * (int64_t)HOUR_NS }, { TAKE, "k", 2 }, { SET_KILLED, .params = { .capacity = 12 } } },
	  { TAKE, "k", 1 }, 0, { 9, 8 }, 0, WINDOW },
	{ "lengthened: window, cells missing", { { TAKE, "k", 1 }, { TAKE_KILLED, "k", 2 }, { SET_KILLED, .params = { .capacity = 12 } } },
	  { TAKE, "k", 1 }, 0, { 9, 8 }, 0, WINDOW },
	{ "lengthened: enter", { { ENTER, "k", 2 }, { SET_KILLED, .params = { .capacity = 12 } } }, { ENTER, "k", 1 }, 0, { 10, 9 }, 0, PLACES },
	{ "lengthened: leave", { { ENTER, "k", 2 }, { SET_KILLED, .params = { .capacity = 12 } } }, { LEAVE, "k" }, 0, { 10, 11 }, 0, PLACES },
	{ "lengthened: renew", { { ENTER, "k", 2 }, { SET_KILLED, .params = { .capacity = 12 } } }, { RENEW, "k" }, 0, { 10, 10 }, 0, PLACES },

	/* The table, of which all is over, is swept. */
#define OVER { TAKE, "k", 5 }, { FILL, NULL, 6 }, { ABANDON, "l" }
	{ "swept: a new round", { OVER, { PASS, NULL, 18 } }, { TAKE, "k", 1 }, 0, { 5, 4 }, 0, SWEEPS },
	{ "swept: the first step of a round", { OVER, { PASS, NULL, 9 } }, { TAKE, "k", 1 }, 0, { 5, 4 } },
	{ "swept: a step of a round that another began", { OVER, { PASS, NULL, 9 }, { TAKE, "m", 1 } }, { TAKE, "k", 1 }, 0,
	  { 5, 4 } },
	{ "swept: a round of a process that was killed", { OVER, { PASS, NULL, 18 }, { SWEEP_KILLED, "m", 1 } },
	  { TAKE, "k", 1 }, 0, { 5, 4 }, 0, SWEEPS },
	{ "swept: both tables", { { TAKE, "k", 5 }, { GROW, NULL, GROWN }, { TAKE, "l", 5 }, { PASS, NULL, 18 } },
	  { TAKE, "k", 1 }, 0, { 5, 4 }, 0, SWEEPS },
	{ "swept: both tables, by a process that was killed between them",
	  { { TAKE, "k", 5 }, { GROW, NULL, GROWN }, { TAKE, "l", 5 }, { PASS, NULL, 18 }, { SWEEP_KILLED, "m", 2 } },
	  { TAKE, "k", 1 }, 0, { 5, 4 }, 0, SWEEPS },
	{ "swept: take_all, the second denied, between two steps of a round",
	  { { TAKE, "k", 3 }, { PASS, NULL, 9 }, { TAKE, "k", 5, .rule = OTHER } }, { TAKE_ALL, "k", 2 }, 1, { 5, 5 }, 0,
	  GIVES_BACK },
	{ "swept: windows", { OVER, { PASS, NULL, 18 } }, { TAKE, "k", 1 }, 0, { 5, 4 }, 0, SWEEPS | WINDOW },
	{ "swept: counts", { { COUNT, "k", 5 }, { COUNT, "l", 2 }, { PASS, NULL, 18 } }, { COUNT, "k", 1 }, 0, { 5, 4 }, 0,
	  SWEEPS | COUNTED },
	{ "swept: places", { { ENTER, "k", 5 }, { FILL, NULL, 6 }, { PASS, NULL, 18 } }, { ENTER, "k", 1 }, 0, { 5, 4 }, 0,
	  SWEEPS | PLACES },
	{ "swept: leases", { { DEPOSIT, "k", 5 }, { FILL, NULL, 6 }, { ABANDON, "l" }, { PASS, NULL, 18 } }, { DEPOSIT, "k", 4 },
	  0, { 0, 3 }, 0, SWEEPS | LEASED },

	/* Introspection. */
	{ "open", { { TAKE, "k", 1 } }, { OPEN }, 0, { 4, 4 }, 0, READS_ONLY },
	{ "open: to read", { { TAKE, "k", 1 } }, { OPEN_READ_ONLY }, 0, { 4, 4 }, 0, READS_ONLY },
	{ "rule_find", { { TAKE, "k", 1 } }, { RULE_FIND }, OTHER, { 4, 4 }, 0, READS_ONLY },
	{ "rule_get", { { TAKE, "k", 1 } }, { RULE_GET }, 0, { 4, 4 }, 0, READS_ONLY },
	{ "info", { { TAKE, "k", 1 } }, { INFO }, 0, { 4, 4 }, 0, READS_ONLY },
	{ "slot", { { TAKE, "k", 1 } }, { SLOT }, 0, { 4, 4 }, 0, READS_ONLY },
	{ "counters", { { TAKE, "k", 1 } }, { COUNTERS_OF }, 0, { 4, 4 }, 0, READS_ONLY },
	{ "next", { { TAKE, "k", 1 } }, { NEXT }, 1, { 4, 4 }, 0, READS_ONLY },
	{ "verify", { { TAKE, "k", 1 } }, { VERIFY }, 0, { 4, 4 }, 0, READS_ONLY },
	/* clang-format on */
};

#define SCENARIOS (sizeof(scenarios) / sizeof(scenarios[0]))

static struct {
	uint64_t stops, changes, states, kills;
} sum;

static struct states seen; /* of this call, and audited */

/* Step through the call; audit what it makes of the segment. Returns its answer. */
static int sweep(const struct call *call, struct audit *audit, uint64_t *changes)
{
	static unsigned char *last;
	static struct tracee t = { .watches = 1 };
	int inside;

	last = scene_keep(last);
	tracee_start(&t, call_make, call);
	do {
		inside = tracee_write(&t);
		sum.stops++;
		if (memcmp(scene.bytes, last, scene.size) == 0)
			continue;
		++*changes;
		scene_keep(last);
		if (states_add(&seen))
			audit_state(audit, scene_is_full());
	} while (inside);
	return tracee_finish(&t);
}

/* Killed right after its first change, it leaves what was audited then. Returns true if so. */
static int kill_changed(const struct call *call, const unsigned char *kept)
{
	static struct tracee t = { .watches = 1 };

	tracee_start(&t, call_make, call);
	while (tracee_write(&t) && memcmp(scene.bytes, kept, scene.size) == 0)
		;
	tracee_kill(&t);
	sum.kills++;
	return states_have(&seen);
}

static void perform(const struct scenario *s, struct rng *rng)
{
	struct audit audit = { .gives_back = s->is & GIVES_BACK ? s->call.amount : 0,
		               .left_behind = (s->is & LEFT_BEHIND) != 0,
		               .sweeps = (s->is & SWEEPS) != 0 };
	unsigned char *kept;
	uint64_t changes = 0;
	int answer;

	scene.algorithm = s->is & WINDOW    ? SHMLIMIT_WINDOW
	                  : s->is & WARMUP  ? SHMLIMIT_WARMUP
	                  : s->is & LEASED  ? SHMLIMIT_LEASE
	                  : s->is & COUNTED ? SHMLIMIT_COUNTER
	                  : s->is & PLACES  ? SHMLIMIT_HOLD
	                  : s->is & TIMES   ? SHMLIMIT_GCRA
	                                    : SHMLIMIT_FUNNEL;
	scene.on_calendar = (s->is & CALENDAR) != 0;
	scene_open(rng, s->on_full, s->is & OWN_CLOCK);
	tracee_pages.start = scene.bytes;
	tracee_pages.len = scene.size;
	for (int i = 0; i < PREPARED; i++)
		if (call_make(&s->before[i]) < 0)
			bail("%s: not prepared: call %d", s->title, i);
	tracee_share_cpu();
	kept = scene_keep(NULL);
	audit_see(&audit.before);
	is(audit.before.key[0].drained, s->left[0], "%s: of the key there is %u before", s->title, s->left[0]);
	tracee_run(call_make, &s->call);
	audit_see(&audit.after);
	is(audit.after.key[0].drained, s->left[1], "%s: of the key there is %u afterwards", s->title, s->left[1]);
	scene_restore(kept);

	states_forget(&seen);
	states_add(&seen);
	answer = sweep(&s->call, &audit, &changes);
	is(answer, s->answer, "%s: the answer is %d", s->title, s->answer);
	if (s->is & READS_ONLY)
		is(changes, 0, "%s: not a byte is written", s->title);
	else
		ok(changes > 0, "%s: the segment is changed", s->title);
	is(audit.sound, 0, "%s: stopped anywhere, the segment is sound", s->title);
	is(audit.keys, 0, "%s: stopped anywhere, each key is as before or as after", s->title);
	is(audit.stuck, 0, "%s: stopped anywhere, others finish by themselves", s->title);
	if (s->is & SWEEPS)
		is(audit.swept, 0, "%s: stopped anywhere, the next process sweeps all that is over", s->title);
	if ((s->is & LASTS) == 0)
		is(audit.lost, 0, "%s: stopped anywhere, no slot is lost", s->title);
	scene_restore(kept);
	if (changes > 0 && (s->is & REGISTERS) == 0)
		ok(kill_changed(&s->call, kept), "%s: killed, it leaves what it had when stopped", s->title);
	sum.changes += changes;
	sum.states += seen.n;
	free(kept);
	scene_close();
}

int main(int argc, char **argv)
{
	const char *impossible = tracee_impossible();
	struct rng rng;

	(void)argc;
	if (impossible != NULL)
		return tap_skip_all(impossible);
	tracee_begin(argv, 0);
	scene_begin("crash.sweep");
	rng.state = rng_seed();
	scene_open(&rng, SHMLIMIT_FULL_EVICT, 0);
	audit_calibrate();
	scene_close();
	for (size_t i = 0; i < SCENARIOS; i++)
		if (getenv("CALL") == NULL || strncmp(scenarios[i].title, getenv("CALL"), strlen(getenv("CALL"))) == 0)
			perform(&scenarios[i], &rng);
	ok(sum.kills > 0, "processes were killed inside calls");
	diag("%zu calls, %" PRIu64 " stops, %" PRIu64 " changes, %" PRIu64 " states, %" PRIu64 " kills, %.0f s",
	     SCENARIOS, sum.stops, sum.changes, sum.states, sum.kills, tracee_seconds());
	diag("the slowest of the others took %" PRIu64 " %% of the instructions that it takes in peace",
	     audit_steps_most);
	return tap_done();
}

#endif
