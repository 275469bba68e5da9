/*
 * reclaim: which of the slots that may be taken for nothing a new key gets: a
 * free one before one that has refilled, and of those the one that has been idle
 * longest. So keys that are well within their limits keep their slots while there
 * are others, and a decision on them costs no claim.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "unit.h"

#define T0 (1000 * SECOND)
#define SLOTS 4096
/* At half of the slots a key whose window of 32 slots is full is rarer than one run in a million. */
#define KEYS (SLOTS / 2)
#define ROUNDS 5

static struct shmlimit *l;

/* Take one token of each key from `first` on; each is full again before the next is asked. Returns the time then. */
static uint64_t ask_all(int rule, int first, int keys, uint64_t at)
{
	for (int key = first; key < first + keys; key++, at += SECOND)
		if (shmlimit_take(at_time(l, at), rule, &key, sizeof(key), 1, NULL) != SHMLIMIT_ALLOWED)
			bail("key %d is denied", key);
	return at;
}

static void in_a_table_of(const char *which, const struct shmlimit_rule *how, int strangers)
{
	struct shmlimit_options options = { .struct_size = sizeof(options), .slots = SLOTS };
	struct shmlimit_counters before, after;
	uint64_t at = T0;
	int rule;

	l = unit_create("reclaim", &options);
	rule = shmlimit_rule_set(at_time(l, at), "r", how);
	ok(rule >= 0, "%s: the rule is accepted", which);
	at = ask_all(rule, KEYS, strangers, at);
	before = unit_counters(l, rule);
	for (int round = 0; round < ROUNDS; round++)
		at = ask_all(rule, 0, KEYS, at);
	after = unit_counters(l, rule);
	is(after.claims - before.claims, KEYS,
	   "%s: keys that are full again each time claim one slot each, and keep it", which);
	is(after.reclaims - before.reclaims, strangers < SLOTS ? 0 : KEYS, "%s: %s", which,
	   strangers < SLOTS ? "no key takes a slot from another while there are free slots"
	                     : "each takes it from a key that is asked no more");
	shmlimit_close(l);
}

/*
 * A word of HOLD has a stamp that goes ahead of the clock, where there were many entries in one moment: the key is no
 * idler for that.
 */
static void in_one_moment(void)
{
	struct shmlimit_options options = { .struct_size = sizeof(options), .slots = 16 };
	const struct shmlimit_rule hold = {
		.struct_size = sizeof(hold), .algorithm = SHMLIMIT_HOLD, .capacity = 4, .period_ns = SECOND
	};
	struct shmlimit_place place = { .struct_size = sizeof(place) };
	struct shmlimit_counters before, after;
	uint64_t at = T0;
	int rule, busy = 1000;

	l = unit_create("reclaim", &options);
	rule = unit_id(shmlimit_rule_set(at_time(l, at), "r", &hold));
	for (int key = 0; key < 100; key++, at += SECOND)
		if (shmlimit_enter(at_time(l, at), rule, &key, sizeof(key), &place, NULL) != SHMLIMIT_ALLOWED ||
		    shmlimit_leave(at_time(l, at), rule, &key, sizeof(key), &place) != 0)
			bail("a place");
	before = unit_counters(l, rule);
	for (int key = 0; key < 10; key++) {
		for (int i = 0; i < 10; i++)
			if (shmlimit_enter(at_time(l, at), rule, &busy, sizeof(busy), &place, NULL) !=
			            SHMLIMIT_ALLOWED ||
			    shmlimit_leave(at_time(l, at), rule, &busy, sizeof(busy), &place) != 0)
				bail("a place");
		if (shmlimit_enter(at_time(l, at), rule, &key, sizeof(key), &place, NULL) != SHMLIMIT_ALLOWED)
			bail("a place of key %d", key);
	}
	after = unit_counters(l, rule);
	is(after.claims - before.claims, 11, "a key that is entered and left all the time keeps its slot");
	shmlimit_close(l);
}

int main(void)
{
	const struct shmlimit_rule funnel = {
		.struct_size = sizeof(funnel), .capacity = 10, .refill = 1000, .period_ns = SECOND
	};
	const struct shmlimit_rule window = {
		.struct_size = sizeof(window), .algorithm = SHMLIMIT_WINDOW, .capacity = 10, .period_ns = SECOND / 1000
	};
	const struct shmlimit_rule warmup = { .struct_size = sizeof(warmup),
		                              .algorithm = SHMLIMIT_WARMUP,
		                              .refill = 1000,
		                              .period_ns = SECOND,
		                              .warmup_ns = SECOND / 10 };

	in_a_table_of("funnels, empty table", &funnel, 0);
	in_a_table_of("funnels, used table", &funnel, 16 * SLOTS);
	in_a_table_of("windows, empty table", &window, 0);
	in_a_table_of("windows, used table", &window, 16 * SLOTS);
	in_a_table_of("warm-ups, empty table", &warmup, 0);
	in_a_table_of("warm-ups, used table", &warmup, 16 * SLOTS);
	in_one_moment();
	return tap_done();
}
