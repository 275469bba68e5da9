/*
 * unnamed: see unnamed.h.
 *
 * The array is a hash table with linear probing. An entry is empty, taken by a thread that writes
 * it, or known: its `place` then names a rule's id and the version that the rule began with. A
 * writer takes an entry by one swap, writes the triple and publishes the place. A reader copies the
 * triple between two looks at the place. Only an entry whose rule is gone is written again, and a
 * version never returns, so a place that is unchanged had one triple only. An entry that a killed
 * thread, or a thread of the parent of a forked child, had taken stays taken: the array has room.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "name.h"
#include "rule_writer.h"
#include "segment.h"
#include "unnamed.h"

#define LOCK_TRIES 32

/* A version is 1 at least, so a place that names a rule is none of these. */
#define PLACE_EMPTY 0u
#define PLACE_TAKEN 1u
#define PLACE_VERSIONS (TAG_RULE_MASK + 1)

struct triple {
	uint64_t capacity, count, period_s;
};

static int place_rule(uint64_t place)
{
	return (int)(place & TAG_RULE_MASK);
}

static uint64_t place_pack(uint64_t id, uint64_t born)
{
	return born * PLACE_VERSIONS | id;
}

/* The rule was not removed since. Not so for a place that is empty or taken. */
static int is_there(const struct shmlimit *l, uint64_t place)
{
	const struct layout_rule *record = &l->rules[place_rule(place)];

	return load_acquire(&record->born) == place / PLACE_VERSIONS &&
	       published_in_use(load_acquire(&record->published));
}

/*
 * The place of the triple's rule, or PLACE_EMPTY if the entry is not about the triple, or the rule
 * is gone.
 */
static uint64_t entry_place(const struct shmlimit *l, const struct unnamed_entry *entry, struct triple t)
{
	uint64_t place = load_acquire(&entry->place);

	if (load_word(&entry->capacity) != t.capacity || load_word(&entry->count) != t.count ||
	    load_word(&entry->period_s) != t.period_s)
		return PLACE_EMPTY;
	/* ORDER pairs with entry_write(): unchanged, so the triple was read as a whole. */
	return load_again(&entry->place) == place && is_there(l, place) ? place : PLACE_EMPTY;
}

/* Not keyed: these numbers stand in programs, strangers do not choose them. */
static struct unnamed_entry *entry_at(struct shmlimit *l, struct triple t, uint64_t i)
{
	uint64_t hash =
		t.capacity * 0x9e3779b97f4a7c15u + t.count * 0xbf58476d1ce4e5b9u + t.period_s * 0x94d049bb133111ebu;

	return &l->unnamed[((hash >> 40) + i) & (l->unnamed_room - 1)];
}

/* Returns 0 if the entry is another thread's, or its rule is there. */
static int entry_write(const struct shmlimit *l, struct unnamed_entry *entry, struct triple t, uint64_t place)
{
	uint64_t before = load_acquire(&entry->place);

	if (before == PLACE_TAKEN || is_there(l, before) || !word_cas(&entry->place, before, PLACE_TAKEN))
		return 0;
	store_relaxed(&entry->capacity, t.capacity);
	store_relaxed(&entry->count, t.count);
	store_relaxed(&entry->period_s, t.period_s);
	/* ORDER pairs with entry_place(). */
	publish(&entry->place, place);
	return 1;
}

/*
 * Remember a rule that was found or put under this name. Where another process has removed it
 * since, or all entries are in use, it is not remembered: the next call finds it by its name. Two
 * threads may remember it twice.
 */
static void remember(struct shmlimit *l, struct triple t, const char *name, uint32_t id)
{
	char here[SHMLIMIT_RULE_NAME_MAX + 1];
	struct rule_view view;
	uint64_t place;

	if (rule_read(l, id, &view, here) != 0 || strcmp(here, name) != 0)
		return;
	place = place_pack(id, load_acquire(&l->rules[id].born));
	if (!rule_holds(l, id, &view))
		return;
	/* BOUND: once over the entries. */
	for (uint64_t i = 0; i < l->unnamed_room; i++)
		if (entry_write(l, entry_at(l, t, i), t, place))
			return;
}

/*
 * The rule's id in the segment, where another process may define it at this moment.
 * This is a request, so it does not wait for a writer. BOUND: after this number of tries
 * the lock is not one of a process that is just adding a rule.
 */
static int find_or_put(struct shmlimit *l, const char *name, const struct shmlimit_rule *rule)
{
	int id = -EAGAIN;

	for (int i = 0; i < LOCK_TRIES && id == -EAGAIN; i++) {
		if (i > 0)
			segment_yield();
		id = rule_find(l, name);
		if (id == -ESRCH)
			id = rule_put(l, name, rule, 0, when_clock());
	}
	return id;
}

/* Define the rule in the segment, where another process may have done so, and remember it. */
static int define(struct shmlimit *l, struct triple t)
{
	struct shmlimit_rule rule = { .capacity = t.capacity,
		                      .refill = t.count,
		                      .period_ns = t.period_s * 1000000000u };
	char name[SHMLIMIT_RULE_NAME_MAX + 1];
	int id;

	if (t.period_s > UINT64_MAX / 1000000000u)
		return -ERANGE;
	snprintf(name, sizeof(name), "%c%" PRIu64 ":%" PRIu64 ":%" PRIu64, NAME_INTERNAL, t.capacity, t.count,
	         t.period_s);
	id = find_or_put(l, name, &rule);
	if (id >= 0)
		remember(l, t, name, (uint32_t)id);
	return id;
}

/*
 * BOUND: once over the entries. Those that were written stay written, so an empty one ends the
 * search.
 */
static __attribute__((noinline)) int search(struct shmlimit *l, uint64_t capacity, uint64_t count, uint64_t period_s)
{
	struct triple t = { capacity, count, period_s };

	for (uint64_t i = 0; i < l->unnamed_room; i++) {
		const struct unnamed_entry *entry = entry_at(l, t, i);
		uint64_t place = entry_place(l, entry, t);

		if (place != PLACE_EMPTY)
			return place_rule(place);
		if (load_relaxed(&entry->place) == PLACE_EMPTY)
			break;
	}
	return define(l, t);
}

int unnamed_rule(struct shmlimit *l, uint64_t capacity, uint64_t count, uint64_t period_s)
{
	struct triple t = { capacity, count, period_s };
	uint64_t place = entry_place(l, entry_at(l, t, 0), t);

	return __builtin_expect(place != PLACE_EMPTY, 1) ? place_rule(place) : search(l, capacity, count, period_s);
}
