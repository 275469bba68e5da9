/*
 * grow: a larger table under the same name. I1, I3, I4, I7, I9, I12.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "../rng.h"
#include "atomic.h"
#include "cells.h"
#include "generation.h"
#include "limiter.h"
#include "save.h"
#include "unit.h"

#define T0 (1000 * SECOND)
#define DAY (86400 * SECOND)
#define KEYS 50 /* few, so that windows are never empty for long */
#define WINDOW_MAX 8

static struct shmlimit_info info_of(struct shmlimit *l)
{
	struct shmlimit_info info = { .struct_size = sizeof(info) };

	if (shmlimit_info(l, &info) != 0)
		bail("info");
	return info;
}

static struct shmlimit *create(uint64_t slots, uint64_t slots_max)
{
	struct shmlimit_options options = { .struct_size = sizeof(options), .slots = slots, .slots_max = slots_max };

	return unit_create("unit.grow", &options);
}

static int sound(void)
{
	struct shmlimit_problem problem;
	int n = shmlimit_verify(unit_name, &problem, 1);

	if (n > 0)
		diag("%s", problem.text);
	return n;
}

static uint64_t left(struct shmlimit *l, int rule, const char *key, uint64_t now_ns)
{
	struct shmlimit_result r;

	if (shmlimit_peek(at_time(l, now_ns), rule, key, strlen(key), 0, &r) < 0)
		bail("peek");
	return r.remaining;
}

static void take(struct shmlimit *l, int rule, const char *key, uint64_t n, uint64_t now_ns)
{
	if (shmlimit_take(at_time(l, now_ns), rule, key, strlen(key), n, NULL) != SHMLIMIT_ALLOWED)
		bail("take");
}

/* ---- What is refused ---- */

static void sizes(void)
{
	struct shmlimit_options fixed = {
		.struct_size = sizeof(fixed), .slots = 64, .slots_max = 64, .rules = 1, .rules_max = 1
	};
	struct shmlimit *l = create(64, 0), *reader;
	struct stat status = { 0 };
	char path[SHMLIMIT_PATH_MAX];
	int error;

	is(info_of(l).slots_max, 1024, "a segment can grow to 16 times its slots");
	is(info_of(l).old_slots, 0, "at first there is one table");
	is(shmlimit_grow(NULL, 128), -EINVAL, "growing no limiter is refused");
	is(shmlimit_grow(l, 0), 0, "a segment that did not grow has nothing to finish");
	is(shmlimit_grow(l, 64), -EINVAL, "a segment does not grow to the size that it has");
	is(shmlimit_grow(l, 124), -EINVAL, "a segment does not grow to less than twice its size");
	is(shmlimit_grow(l, 1025), -EFBIG, "a segment does not grow beyond what it was made for");
	is(shmlimit_grow(l, UINT64_MAX), -EFBIG, "a segment does not grow to any number of slots");
	is(info_of(l).slots, 64, "a growth that is refused changes nothing");
	if (shmlimit_open(unit_name, SHMLIMIT_OPEN_READ_ONLY, NULL, &reader) != 0)
		bail("open");
	is(shmlimit_grow(reader, 128), -EROFS, "a read-only handle does not grow a segment");
	is(shmlimit_grow(l, 125), 0, "a segment grows to any number of slots from twice its size");
	is(info_of(l).slots, 128, "a segment that grew has whole lines of slots");
	is(info_of(l).old_slots, 64, "the old table is looked at until it is known to be empty");
	is(info_of(reader).slots, 128, "a handle that was open before knows the new size");
	ok(info_of(l).size > 5000 && info_of(l).size <= reader->size, "a segment's size is what is reserved");
	(void)shmlimit_path(unit_name, path);
	is(stat(path, &status), 0, "a segment that grew has its file");
	ok((uint64_t)status.st_size > l->size && (uint64_t)status.st_blocks * 512 >= info_of(l).size &&
	           (uint64_t)status.st_blocks * 512 < info_of(l).size + 4 * 4096,
	   "the holes for more rules, tables and cells take no memory");
	is(shmlimit_grow(l, 1024), 0, "an empty table is left at once");
	is(info_of(l).old_slots, 128, "only one old table is looked at besides the new one");
	is(shmlimit_grow(l, 0), 0, "leaving the old table can be asked for");
	is(info_of(l).old_slots, 0, "an old table that was left is not looked at");
	is(sound(), 0, "the segment is sound");
	shmlimit_close(reader);
	shmlimit_close(l);

	l = unit_create("unit.grow", NULL);
	is((l->size - (uint64_t)l->counter_stride * (l->cpus + l->stripes)) >> 20, 36,
	   "a segment of the usual size takes 37 MiB of addresses, counters apart");
	shmlimit_close(l);
	l = unit_create("unit.grow", &fixed);
	is(shmlimit_grow(l, 128), -EFBIG, "a segment may be made not to grow");
	is(l->size, layout_next_page(generation_end(l, &l->tables[0])),
	   "a segment that cannot grow takes no room for it");
	shmlimit_close(l);
	l = create(16, 1 << 20);
	for (uint64_t slots = 32; slots <= 1 << 16; slots *= 2)
		if (shmlimit_grow(l, slots) != 0)
			bail("grow to %llu", (unsigned long long)slots);
	is(info_of(l).slots, 1 << 16, "the smallest segment can grow step by step");
	is(shmlimit_destroy(unit_name), 0, "a segment can be destroyed while it is open");
	is(shmlimit_grow(l, 1 << 17), -ENOENT, "a segment that was destroyed does not grow");
	shmlimit_close(l);
	/* Emulators have not that much; valgrind's mmap() says so by another name. */
	error = shmlimit_create(unit_name,
	                        &(struct shmlimit_options){ .struct_size = sizeof(struct shmlimit_options),
	                                                    .slots = 16,
	                                                    .slots_max = SHMLIMIT_SLOTS_MAX },
	                        &l);
	ok(error == 0 || error == (under_valgrind() ? -EINVAL : -ENOMEM),
	   "a segment may be made to grow as far as there is address space");
	if (error == 0)
		shmlimit_close(l);
	if (error == 0)
		shmlimit_destroy(unit_name);
	is(shmlimit_create(unit_name,
	                   &(struct shmlimit_options){
				   .struct_size = sizeof(struct shmlimit_options), .slots = 64, .slots_max = 63 },
	                   NULL),
	   -EINVAL, "a table cannot grow to fewer slots than it has");
	is(shmlimit_create(unit_name,
	                   &(struct shmlimit_options){ .struct_size = sizeof(struct shmlimit_options),
	                                               .slots_max = SHMLIMIT_SLOTS_MAX + 1 },
	                   NULL),
	   -EINVAL, "a table cannot grow to more slots than there can be");
}

/* ---- What stays ---- */

static void keys_move(void)
{
	struct shmlimit *l = create(64, 0), *other;
	int rule = unit_rule(l, "login", 10, 1, SECOND);
	struct shmlimit_slot slot = { .struct_size = sizeof(slot) };
	uint64_t claims, live = 0;

	if (shmlimit_open(unit_name, 0, NULL, &other) != 0)
		bail("open");
	take(l, rule, "a", 4, T0);
	take(l, rule, "b", 10, T0);
	claims = unit_counters(l, rule).claims;
	is(shmlimit_grow(at_time(l, T0), 256), 0, "a segment with keys in it grows");
	is(left(l, rule, "a", T0), 6, "a key in the old table has what it had");
	is(left(l, rule, "b", T0), 0, "an exhausted key in the old table has nothing");
	for (uint64_t i = 0; shmlimit_slot(l, i, &slot, T0) == 0; i++)
		live += slot.state == SHMLIMIT_SLOT_LIVE;
	is(live, 2, "both keys of the old table are shown");
	is(shmlimit_grow(at_time(l, T0), 512), -EALREADY,
	   "a segment does not grow again while there are keys in the old table");
	is(left(other, rule, "a", T0), 6, "another handle finds a key in the old table");
	take(other, rule, "a", 1, T0);
	is(left(l, rule, "a", T0), 5, "a key that was asked for has moved, and is charged once");
	live = 0;
	for (uint64_t i = 0; shmlimit_slot(l, i, &slot, T0) == 0; i++)
		live += slot.state == SHMLIMIT_SLOT_LIVE;
	is(live, 2, "a key that has moved is shown in one place");
	is(unit_counters(l, rule).claims, claims, "moving is not counted as claiming");
	is(shmlimit_take(at_time(l, T0), rule, "b", 1, 1, NULL), SHMLIMIT_DENIED,
	   "an exhausted key in the old table is denied");
	is(left(l, rule, "b", T0), 0, "an exhausted key has moved, and has nothing");
	is(shmlimit_grow(at_time(l, T0), 512), 0, "a segment whose keys have all moved can grow again");
	is(sound(), 0, "the segment is sound");
	is(left(l, rule, "a", T0), 5, "a key that moved twice has what it had");
	is(shmlimit_grow(at_time(l, T0 + 9 * SECOND), 1024), -EALREADY,
	   "the old table is kept while one key lacks a token");
	is(shmlimit_grow(at_time(l, T0 + 10 * SECOND), 1024), 0,
	   "the old table is left when its last key has refilled");
	shmlimit_close(other);
	shmlimit_close(l);
}

static void verbs(void)
{
	struct shmlimit *l = create(64, 0);
	int rule = unit_rule(l, "login", 10, 1, SECOND);

	take(l, rule, "reset", 4, T0);
	take(l, rule, "refunded", 4, T0);
	take(l, rule, "charged", 4, T0);
	take(l, rule, "changed", 4, T0);
	take(l, rule, "left alone", 4, T0);
	take(l, rule, "left until the end", 4, T0);
	if (shmlimit_grow(at_time(l, T0), 256) != 0)
		bail("grow");
	is(shmlimit_reset(l, rule, "reset", 5), 1, "a key that has not moved can be reset");
	is(left(l, rule, "reset", T0), 10, "a key that was reset in the old table is full");
	take(l, rule, "reset", 1, T0);
	is(left(l, rule, "reset", T0), 9, "a key that was reset in the old table stays reset when it moves");
	is(shmlimit_refund(at_time(l, T0), rule, "refunded", 8, 3, NULL), SHMLIMIT_ALLOWED,
	   "a key in the old table takes a refund");
	is(left(l, rule, "refunded", T0), 9, "a key in the old table has what was given back");
	is(shmlimit_charge(at_time(l, T0), rule, "charged", 7, 5, NULL), SHMLIMIT_ALLOWED,
	   "a key in the old table can be charged");
	is(left(l, rule, "charged", T0), 1, "a key in the old table is charged once");
	for (uint64_t count = 2; count < 9; count++)
		if (shmlimit_rule_set(at_time(l, T0), "login",
		                      &(struct shmlimit_rule){ .struct_size = sizeof(struct shmlimit_rule),
		                                               .capacity = 20,
		                                               .refill = count,
		                                               .period_ns = SECOND }) != rule)
			bail("rule_set");
	is(left(l, rule, "changed", T0), 6, "a key in the old table keeps its tokens when its rule changes");
	take(l, rule, "changed", 1, T0);
	is(left(l, rule, "changed", T0), 5, "a key keeps its tokens when its rule changed and it moves");
	is(left(l, rule, "left alone", T0), 6,
	   "a key in the old table keeps its tokens after several changes of its rule");
	ok(shmlimit_reset(l, rule, NULL, 0) > 0, "a rule with keys in two tables can be reset");
	is(left(l, rule, "left until the end", T0), 20, "a reset rule's key that has not moved is full");
	is(left(l, rule, "changed", T0) + left(l, rule, "charged", T0), 40,
	   "a reset rule's keys are full in both tables");
	is(shmlimit_grow(at_time(l, T0), 512), 0, "after a reset of all keys the old table is left");
	shmlimit_close(l);
}

/* Put back what was buried since the first table was copied: as carriers do that are killed before they bury. */
static void unbury(struct shmlimit *l, const struct layout_slot kept[64])
{
	for (int i = 0; i < 64; i++)
		if ((l->tables[0].slots[i].tag & ~TAG_FROZEN) == 0 && kept[i].tag != 0)
			l->tables[0].slots[i] = (struct layout_slot){ kept[i].tag | TAG_FROZEN, kept[i].word };
}

/* What was carried and not buried, as by a carrier that was killed in between, must not undo a refund. */
static void carried_twice(void)
{
	struct shmlimit *l = create(64, 0);
	int rule = unit_rule(l, "login", 10, 1, SECOND);
	struct layout_slot kept[64];

	take(l, rule, "a", 10, T0);
	if (shmlimit_grow(at_time(l, T0), 256) != 0)
		bail("grow");
	memcpy(kept, l->tables[0].slots, sizeof(kept));
	is(shmlimit_take(at_time(l, T0), rule, "a", 1, 1, NULL), SHMLIMIT_DENIED,
	   "an exhausted key moves, and is denied");
	unbury(l, kept);
	is(sound(), 0, "a key that was carried and not buried is no damage");
	is(shmlimit_refund(at_time(l, T0), rule, "a", 1, 10, NULL), SHMLIMIT_ALLOWED,
	   "a key that was carried takes a refund of everything");
	is(shmlimit_grow(at_time(l, T0), 0), 0, "nothing of a full key is left in the old table");
	is(left(l, rule, "a", T0), 10, "a key that was carried is full after a refund of everything");
	shmlimit_close(l);
}

/* ---- One slot a key ---- */

#define LETTERS 26

static void take_letters(struct shmlimit *l, int rule, uint64_t n, uint64_t now_ns)
{
	for (char key = 'a'; key < 'a' + LETTERS; key++)
		take(l, rule, (char[]){ key, '\0' }, n, now_ns);
}

/* How many keys of the alphabet have just this number of tokens. */
static int letters_with(struct shmlimit *l, int rule, uint64_t n, uint64_t now_ns)
{
	int found = 0;

	for (char key = 'a'; key < 'a' + LETTERS; key++)
		found += left(l, rule, (char[]){ key, '\0' }, now_ns) == n;
	return found;
}

static int live_slots(struct shmlimit *l, uint64_t now_ns)
{
	struct shmlimit_slot slot = { .struct_size = sizeof(slot) };
	int live = 0;

	for (uint64_t i = 0; shmlimit_slot(l, i, &slot, now_ns) == 0; i++)
		live += slot.state == SHMLIMIT_SLOT_LIVE;
	return live;
}

/* Slots of the first table that hold something, frozen or not. */
static int held_in_first(const struct shmlimit *l)
{
	int held = 0;

	for (int i = 0; i < 64; i++)
		held += (l->tables[0].slots[i].tag & ~TAG_FROZEN) != 0;
	return held;
}

static void set_capacity(struct shmlimit *l, uint64_t capacity, uint64_t now_ns)
{
	struct shmlimit_rule rule = {
		.struct_size = sizeof(rule), .capacity = capacity, .refill = 1, .period_ns = 10 * SECOND
	};

	if (shmlimit_rule_set(at_time(l, now_ns), "login", &rule) < 0)
		bail("rule_set");
}

/* Save, destroy, load. */
static struct shmlimit *reload(struct shmlimit *l, uint64_t now_ns)
{
	const struct rebase same_clock = { .now_ns = now_ns };
	int fd = memfd_create("state", MFD_CLOEXEC);
	struct shmlimit *loaded;

	if (fd < 0 || save(l, fd, when_given(now_ns)) != 0 || lseek(fd, 0, SEEK_SET) != 0)
		bail("save");
	shmlimit_close(l);
	shmlimit_destroy(unit_name);
	if (load(unit_name, fd, 0, &same_clock, &loaded) != 0)
		bail("load");
	close(fd);
	return loaded;
}

/* What refilled in the old table has no part in a change of the rule. */
static void refilled_in_the_old_table(void)
{
	struct shmlimit *l = create(64, 0);
	uint64_t t = T0;
	int rule;

	set_capacity(l, 10, t);
	rule = shmlimit_rule_find(l, "login");
	take_letters(l, rule, 5, t);
	t += 1000 * SECOND;
	if (shmlimit_grow(at_time(l, t), 256) != 0)
		bail("grow");
	take_letters(l, rule, 8, t);
	is(held_in_first(l), 0, "what refilled does not stay in the old table when its key is claimed in the new one");
	set_capacity(l, 30, t);
	is(live_slots(l, t), LETTERS,
	   "keys that refilled before the table grew, and were used again before the capacity was raised, are each shown once");
	l = reload(l, t);
	is(sound(), 0,
	   "a segment in which keys were used again in the new table is sound when it was saved and loaded");
	is(letters_with(l, rule, 2, t), LETTERS, "such keys have after loading what they had");
	is(shmlimit_grow(at_time(l, t), 0), 0, "when each key has a slot in the new table the old one is left");
	shmlimit_close(l);

	l = create(64, 0);
	set_capacity(l, 10, T0);
	take_letters(l, rule, 5, T0);
	if (shmlimit_grow(at_time(l, T0), 256) != 0)
		bail("grow");
	set_capacity(l, 1000000, t);
	is(shmlimit_grow(at_time(l, t), 0), 0,
	   "keys that refilled in the old table do not keep it when the capacity is raised");
	is(letters_with(l, rule, 1000000, t), LETTERS, "they are full under the new capacity");
	shmlimit_close(l);

	/* The same where the writer was killed before it walked over the table. */
	l = create(64, 0);
	set_capacity(l, 10, T0);
	take_letters(l, rule, 5, T0);
	if (shmlimit_grow(at_time(l, T0), 256) != 0)
		bail("grow");
	take(l, rule, "a", 1, T0);
	{
		struct layout_slot kept[64];

		memcpy(kept, l->tables[0].slots, sizeof(kept));
		set_capacity(l, 30, t);
		memcpy(l->tables[0].slots, kept, sizeof(kept));
	}
	is(letters_with(l, rule, 30, t), LETTERS - 1,
	   "a peek finds keys full that had refilled in the old table when the rule's writer was killed");
	take_letters(l, rule, 8, t);
	is(letters_with(l, rule, 22, t), LETTERS - 1, "a take finds them full too");
	is(shmlimit_grow(at_time(l, t), 0), 0, "when a killed writer's keys have moved the old table is left");
	shmlimit_close(l);
}

static void carried_and_not_buried(void)
{
	struct shmlimit *l = create(64, 0);
	struct layout_slot kept[64];
	int rule;

	set_capacity(l, 10, T0);
	rule = shmlimit_rule_find(l, "login");
	take_letters(l, rule, 5, T0);
	if (shmlimit_grow(at_time(l, T0), 256) != 0)
		bail("grow");
	memcpy(kept, l->tables[0].slots, sizeof(kept));
	take_letters(l, rule, 1, T0);
	unbury(l, kept);
	l = reload(l, T0);
	is(sound(), 0, "keys whose carriers were killed have one slot each after loading");
	is(letters_with(l, rule, 4, T0), LETTERS, "that of the new table");
	is(shmlimit_grow(at_time(l, T0), 0), 0,
	   "a loaded segment whose keys are all in the new table has nothing to finish");
	shmlimit_close(l);

	l = create(64, 0);
	set_capacity(l, 10, T0);
	take_letters(l, rule, 5, T0);
	take(l, rule, "stays", 5, T0);
	if (shmlimit_grow(at_time(l, T0), 256) != 0)
		bail("grow");
	memcpy(kept, l->tables[0].slots, sizeof(kept));
	take_letters(l, rule, 1, T0);
	take(l, rule, "stays", 1, T0);
	unbury(l, kept);
	is(shmlimit_grow(at_time(l, T0), 0), 0, "the old table is left when each of its keys is in the new one too");
	is(letters_with(l, rule, 4, T0), LETTERS, "its keys have what they have in the new table");
	shmlimit_close(l);

	l = create(64, 0);
	set_capacity(l, 10, T0);
	take_letters(l, rule, 5, T0);
	take(l, rule, "stays", 5, T0);
	if (shmlimit_grow(at_time(l, T0), 256) != 0)
		bail("grow");
	memcpy(kept, l->tables[0].slots, sizeof(kept));
	take_letters(l, rule, 1, T0);
	unbury(l, kept);
	is(shmlimit_grow(at_time(l, T0), 0), -EALREADY, "the old table is kept for the one key that has not moved");
	is(left(l, rule, "stays", T0), 5, "that key has what it had");
	take(l, rule, "stays", 1, T0);
	is(shmlimit_grow(at_time(l, T0), 0), 0, "when that key has moved the old table is left");
	shmlimit_close(l);
}

/* ---- Beside a duplicate that had the room from the beginning ---- */

static struct shmlimit_rule some_rule(uint32_t kind)
{
	struct shmlimit_rule rule = {
		.struct_size = sizeof(rule), .capacity = 7, .refill = 3, .period_ns = SECOND, .max_wait_ns = SECOND
	};

	switch (kind) {
	case 1:
		rule.flags = SHMLIMIT_RULE_NEXT_PAYS;
		break;
	case 2:
		rule.algorithm = SHMLIMIT_WARMUP;
		rule.capacity = 0;
		rule.warmup_ns = 4 * SECOND;
		break;
	case 3:
		rule.algorithm = SHMLIMIT_WINDOW;
		rule.refill = 0;
		rule.period_ns = 2 * SECOND;
		break;
	case 4:
		rule.algorithm = SHMLIMIT_WINDOW;
		rule.refill = 0;
		rule.max_wait_ns = 0;
		rule.flags = SHMLIMIT_RULE_COUNT_REFUSED;
		break;
	}
	return rule;
}

#define KINDS 5

static int ask(struct shmlimit *l, int verb, int rule, const uint64_t *key, uint64_t n, uint64_t now_ns,
               struct shmlimit_result *r)
{
	switch (verb) {
	case 0:
		return shmlimit_peek(at_time(l, now_ns), rule, key, sizeof(*key), n, r);
	case 1:
		return shmlimit_refund(at_time(l, now_ns), rule, key, sizeof(*key), n, r);
	case 2:
		return shmlimit_charge(at_time(l, now_ns), rule, key, sizeof(*key), n, r);
	case 3:
		return shmlimit_reserve(at_time(l, now_ns), rule, key, sizeof(*key), n, SECOND, r);
	case 4:
		memset(r, 0, sizeof(*r));
		return shmlimit_reset(l, rule, key, sizeof(*key)) < 0;
	default:
		return shmlimit_take(at_time(l, now_ns), rule, key, sizeof(*key), n, r);
	}
}

static void duplicate(struct rng *rng)
{
	struct shmlimit_options options = { .struct_size = sizeof(options), .slots = 1 << 14, .slots_max = 1 << 14 };
	struct shmlimit *l = create(1 << 10, 1 << 14), *large;
	uint64_t now_ns = T0, moved = 0, differ = 0;
	char name[80];

	snprintf(name, sizeof(name), "%s.duplicate", unit_name);
	/* Under an emulator the cells of a segment can be mapped only as long as it has its name. */
	if (shmlimit_create(name, &options, &large) != 0 || cells_map(large, cells_size(7)) == NULL ||
	    shmlimit_destroy(name) != 0)
		bail("create the second segment");
	for (uint32_t kind = 0; kind < KINDS; kind++) {
		struct shmlimit_rule rule = some_rule(kind);
		char rule_name[2] = { (char)('a' + kind), '\0' };

		/* The duplicate has no name any more, so no rule can be set in it: copy the record. */
		if (shmlimit_rule_set(at_time(l, T0), rule_name, &rule) != (int)kind)
			bail("rule %u", kind);
		memcpy(&large->rules[kind], &l->rules[kind], sizeof(large->rules[kind]));
	}
	for (int i = 0; i < 60000; i++) {
		uint64_t key = rng_below(rng, KEYS / KINDS), n = rng_below(rng, 9);
		int verb = (int)rng_below(rng, 10), rule = (int)rng_below(rng, KINDS);
		struct shmlimit_result mine = { 0 }, its = { 0 };

		if (verb == 1 && params_algorithm(&l->rules[rule].params[1]) == SHMLIMIT_WINDOW && n > 1)
			n = 1;
		now_ns += rng_below(rng, SECOND / 50);
		if (ask(l, verb, rule, &key, n, now_ns, &mine) != ask(large, verb, rule, &key, n, now_ns, &its) ||
		    memcmp(&mine, &its, sizeof(mine)) != 0) {
			if (differ++ == 0)
				diag("verb %d rule %d key %d n %d step %d: remaining %d, not %d; reset %llu, not %llu",
				     verb, rule, (int)key, (int)n, i, (int)mine.remaining, (int)its.remaining,
				     (unsigned long long)mine.reset_after_ns, (unsigned long long)its.reset_after_ns);
		}
		if (i % 10000 == 9000) {
			int error = shmlimit_grow(at_time(l, now_ns), 2 * info_of(l).slots);

			if (error != 0 && error != -EALREADY && error != -EFBIG)
				bail("grow: %d", error);
			moved += error == 0;
		}
	}
	ok(moved >= 2, "the segment grew while all this was asked");
	is(differ, 0, "whatever is asked of whatever rule, it answers as one that had the room from the beginning");
	is(sound(), 0, "a segment that grew under all calls is sound");
	shmlimit_close(large);
	shmlimit_close(l);
}

/* ---- A crowd ---- */

static void crowd(uint32_t on_full)
{
	struct shmlimit_options options = { .struct_size = sizeof(options), .slots = 64, .on_full = on_full };
	struct shmlimit *l = unit_create("unit.grow", &options);
	int rule = unit_rule(l, "login", 10, 1, 100 * SECOND);
	uint64_t found = 0, recorded;

	for (uint64_t key = 0; key < 60; key++)
		(void)shmlimit_take(at_time(l, T0), rule, &key, sizeof(key), 3, NULL);
	recorded = unit_slots(l, SHMLIMIT_SLOT_LIVE, T0);
	if (shmlimit_grow(at_time(l, T0), 1024) != 0)
		bail("grow");
	/* Strangers come first. */
	for (uint64_t key = 1000; key < 1500; key++)
		(void)shmlimit_take(at_time(l, T0), rule, &key, sizeof(key), 1, NULL);
	for (uint64_t key = 0; key < 60; key++) {
		struct shmlimit_result r;

		(void)shmlimit_take(at_time(l, T0), rule, &key, sizeof(key), 1, &r);
		found += r.remaining == 6;
	}
	is(found, recorded, "each key that had a slot keeps its state beside 500 strangers, on_full %u", on_full);
	is(shmlimit_grow(at_time(l, T0), 0), 0, "all keys have moved, on_full %u", on_full);
	is(sound(), 0, "the segment is sound");
	shmlimit_close(l);
}

/* No place in the new table for a key of the old table. */
static void homeless(uint32_t on_full, int answer)
{
	struct shmlimit_options options = {
		.struct_size = sizeof(options), .slots = 16, .slots_max = 64, .on_full = on_full
	};
	struct shmlimit *l = unit_create("unit.grow", &options);
	int rule = unit_rule(l, "login", 10, 1, 100 * SECOND);
	struct shmlimit_result r;

	take(l, rule, "poor", 9, T0);
	take(l, rule, "empty", 10, T0);
	if (shmlimit_grow(at_time(l, T0), 32) != 0)
		bail("grow");
	for (uint64_t key = 0; key < 500; key++)
		(void)shmlimit_take(at_time(l, T0), rule, &key, sizeof(key), 10, NULL);
	is(shmlimit_take(at_time(l, T0), rule, "poor", 4, 1, &r), answer, "no room: answered as on_full %u says",
	   on_full);
	is(r.remaining, 0, "without room a key is answered by what it has");
	is(shmlimit_take(at_time(l, T0), rule, "empty", 5, 1, &r), SHMLIMIT_DENIED,
	   "without room an exhausted key is denied in any case");
	is(sound(), 0, "the segment is sound");
	shmlimit_close(l);
}

/* ---- Killed, scribbled over ---- */

static void leftover(void)
{
	struct shmlimit *l = create(64, 0), *again;
	int rule = unit_rule(l, "login", 10, 1, SECOND);

	take(l, rule, "a", 4, T0);
	/* A grower that was killed before it published: reserved and described. */
	store_relaxed(&l->header->tables[1].offset, l->tables_offset);
	store_relaxed(&l->header->tables[1].lines, 128);
	is(sound(), 0, "what a killed grower leaves is no damage");
	is(shmlimit_open(unit_name, 0, NULL, &again), 0, "a segment whose grower was killed opens");
	is(left(again, rule, "a", T0), 6, "a key in a segment whose grower was killed has what it had");
	is(shmlimit_grow(at_time(again, T0), 256), 0, "a segment whose grower was killed can grow");
	is(left(l, rule, "a", T0), 6, "a segment grows for the handles that were open when a grower was killed");
	shmlimit_close(again);
	shmlimit_close(l);
}

static void put(struct shmlimit *l, uint64_t state, uint64_t offset, uint64_t lines)
{
	for (int i = 0; i < 2; i++) {
		store_relaxed(&l->header->tables[i].offset, offset);
		store_relaxed(&l->header->tables[i].lines, lines);
	}
	store_relaxed(&l->header->state, state);
}

static void damage(void)
{
	struct shmlimit *l = create(64, 0), *again;
	int rule = unit_rule(l, "login", 10, 1, SECOND);
	uint64_t at = l->tables_offset;
	const struct {
		uint64_t state, offset, lines;
		const char *what;
	} bad[] = {
		{ state_pack(1, 0), 0, 32, "at the header" },
		{ state_pack(1, 0), at - 4096, 32, "in the first table" },
		{ state_pack(1, 0), at + 64, 32, "at no page" },
		{ state_pack(1, 0), l->size & ~(uint64_t)4095, 256, "beyond the end" },
		{ state_pack(1, 0), UINT64_MAX & ~(uint64_t)4095, 256, "far beyond it" },
		{ state_pack(1, 0), at, 257, "larger than any can be" },
		{ state_pack(1, 0), at, UINT64_MAX, "much larger" },
		{ state_pack(1, 0), at, 16, "no larger than the first" },
		{ state_pack(0, 1), at, 32, "after none" },
		{ state_pack(GENERATIONS_MAX + 1, 0), at, 32, "after too many" },
		{ ~STATE_OFF, at, 32, "after very many" },
	};

	take(l, rule, "a", 4, T0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		put(l, bad[i].state, bad[i].offset, bad[i].lines);
		is(shmlimit_open(unit_name, 0, NULL, &again), -EUCLEAN, "a table %s is refused", bad[i].what);
		ok(sound() > 0, "verify finds a table %s", bad[i].what);
		is(left(l, rule, "a", T0), 6, "a table %s misleads no handle that was open before", bad[i].what);
		is(shmlimit_take(at_time(l, T0), rule, "b", 1, 1, NULL), SHMLIMIT_ALLOWED,
		   "beside a table %s a handle that was open before goes on", bad[i].what);
		is(shmlimit_grow(at_time(l, T0), 256), -EUCLEAN, "a segment with a table %s does not grow",
		   bad[i].what);
		(void)shmlimit_reset(l, rule, "b", 1);
	}
	put(l, 0, 0, 0);
	is(shmlimit_open(unit_name, 0, NULL, &again), 0, "a segment whose table is put right opens");
	shmlimit_close(again);

	/* Frozen slots where no table follows. */
	for (int i = 0; i < 64; i++)
		store_relaxed(&l->tables[0].slots[i].tag, l->tables[0].slots[i].tag | TAG_FROZEN);
	ok(sound() >= 64, "frozen slots of the present table are damage");
	is(shmlimit_take(at_time(l, T0), rule, "c", 1, 10, NULL), SHMLIMIT_ALLOWED,
	   "frozen slots of the new table lock no key out");
	is(shmlimit_take(at_time(l, T0), rule, "c", 1, 1, NULL), SHMLIMIT_DENIED,
	   "frozen slots of the new table give nothing away");
	shmlimit_close(l);
}

/* By the limiter's clock, and with everything in the old table that can be there. */
static void own_clock(void)
{
	struct shmlimit *l = create(64, 0);
	struct shmlimit_rule lease = { .struct_size = sizeof(lease),
		                       .algorithm = SHMLIMIT_LEASE,
		                       .capacity = 10,
		                       .refill = 1,
		                       .period_ns = SECOND },
			     window = some_rule(3);
	int rule = unit_rule(l, "login", 10, 1, 3600 * SECOND), gone = unit_rule(l, "gone", 10, 1, 3600 * SECOND),
	    leased = shmlimit_rule_set(l, "leased", &lease), sliding;
	struct shmlimit_slot slot = { .struct_size = sizeof(slot) };
	uint64_t now_ns = shmlimit_now(l), seen[5] = { 0 };
	struct shmlimit_result r;

	window.period_ns = 3600 * SECOND;
	sliding = shmlimit_rule_set(l, "sliding", &window);
	take(l, gone, "a", 4, now_ns);
	take(l, rule, "a", 4, now_ns);
	take(l, sliding, "a", 2, now_ns);
	shmlimit_lease_deposit(l, leased, "a", 1, 5, 1, 0, 3600 * SECOND, NULL);
	shmlimit_rule_remove(l, "gone");
	unit_rule(l, "refilled", 10, 10, 1);
	for (int i = 0; i < 64; i++)
		if (l->tables[0].slots[i].tag == 0) {
			l->tables[0].slots[i].tag = tag_pack(1, (uint32_t)rule, 1) | TAG_TENTATIVE;
			break;
		}
	for (uint64_t i = 0; shmlimit_slot(l, i, &slot, now_ns) == 0; i++)
		seen[slot.state]++;
	ok(seen[SHMLIMIT_SLOT_TENTATIVE] == 1 && seen[SHMLIMIT_SLOT_LIVE] == 3,
	   "slots of the old table are shown as claimed and as live");
	is(shmlimit_slot(l, 64, &slot, now_ns), -EINVAL, "no slot beyond both tables is shown");
	is(shmlimit_grow(at_clock(l), 128), 0, "a segment grows by its own clock");
	is(shmlimit_peek(l, leased, "a", 1, 1, &r), SHMLIMIT_DENIED, "a peek at a lease in the old table is denied");
	is(r.remaining, 0, "a peek at a lease in the old table finds no tokens");
	is(shmlimit_take(l, leased, "a", 1, 1, &r), SHMLIMIT_DENIED, "a take of a lease in the old table is denied");
	is(shmlimit_grow(at_clock(l), 256), -EALREADY,
	   "by its own clock a segment does not grow before its keys have refilled");
	memset(seen, 0, sizeof(seen));
	for (uint64_t i = 0; shmlimit_slot(l, i, &slot, now_ns) == 0; i++)
		seen[slot.state]++;
	ok(seen[SHMLIMIT_SLOT_TENTATIVE] == 0 && seen[SHMLIMIT_SLOT_LIVE] == 2,
	   "what was claimed in the old table is free, and its leases have expired");
	is(shmlimit_take(l, rule, "a", 1, 1, &r), SHMLIMIT_ALLOWED, "a key moves when it is asked for");
	is(r.remaining, 5, "a key that moves has what it had");
	is(shmlimit_take(l, sliding, "a", 1, 1, &r), SHMLIMIT_ALLOWED, "a window moves when it is asked for");
	is(r.remaining, 4, "a window that moves has its tokens");
	is(shmlimit_grow(l, 256), 0, "leases and what is of no rule need not move");
	is(sound(), 0, "the segment is sound");
	shmlimit_close(l);
}

/* Slots of the new table had other keys, at later times. */
static void carried_over_later_times(void)
{
	struct shmlimit *l = create(64, 0);
	struct shmlimit_rule window = some_rule(3);
	struct shmlimit_result r;
	int rule;

	window.capacity = 3;
	window.period_ns = 10 * SECOND;
	window.max_wait_ns = 0;
	rule = shmlimit_rule_set(at_time(l, T0), "sliding", &window);
	is(shmlimit_take(at_time(l, T0), rule, "a", 1, 3, NULL), SHMLIMIT_ALLOWED,
	   "a window is full when the table grows");
	is(shmlimit_grow(at_time(l, T0), 128), 0, "a table with a full window grows to twice its size");
	for (uint64_t key = 0; key < 4000; key++) {
		shmlimit_take(at_time(l, T0 + 5 * SECOND), rule, &key, sizeof(key), 3, NULL);
		shmlimit_reset(l, rule, &key, sizeof(key));
	}
	is(shmlimit_take(at_time(l, T0 + 6 * SECOND), rule, "a", 1, 1, &r), SHMLIMIT_DENIED,
	   "a full window is denied in a slot whose cells hold later times of other keys");
	is(r.retry_after_ns, 4 * SECOND, "a window that moved has the times that it had");
	is(shmlimit_take(at_time(l, T0 + 10 * SECOND), rule, "a", 1, 3, NULL), SHMLIMIT_ALLOWED,
	   "a window that moved is empty when it would have been");
	is(sound(), 0, "the segment is sound");
	shmlimit_close(l);
}

/* Words in the old table, of keys that refilled long ago. */
static void old_words(void)
{
	struct shmlimit *l = create(64, 0);
	int rule = unit_rule(l, "login", 10, 1, SECOND), slow = unit_rule(l, "slow", 2, 1, 1000 * DAY);

	take(l, rule, "a", 4, T0);
	take(l, slow, "b", 2, T0);
	is(shmlimit_grow(at_time(l, T0), 128), 0, "a table grows");
	is(shmlimit_grow(at_time(l, T0 + DAY), 0), -EALREADY, "a day later one of its two keys has not refilled");
	is(shmlimit_reset(l, slow, NULL, 0), 1, "a key of the old table that has not refilled can be reset");
	is(shmlimit_grow(at_time(l, T0 + 370 * DAY), 0), 0,
	   "a key that had refilled does not come back when its time seems to be in the future");
	shmlimit_close(l);
}

static void off(void)
{
	struct shmlimit *l = create(64, 0);
	int rule = unit_rule(l, "login", 1, 1, SECOND);

	take(l, rule, "a", 1, T0);
	is(shmlimit_enable(l, 0), 0, "a segment can be switched off");
	is(shmlimit_grow(at_time(l, T0), 128), 0, "a segment that is off grows");
	is(info_of(l).enabled, 0, "a segment that is off stays off when it grew");
	is(shmlimit_take(at_time(l, T0), rule, "a", 1, 1, NULL), SHMLIMIT_ALLOWED,
	   "a segment that is off allows when it grew");
	shmlimit_enable(l, 1);
	is(shmlimit_take(at_time(l, T0), rule, "a", 1, 1, NULL), SHMLIMIT_DENIED,
	   "switched on again, a segment that grew has what its keys had");
	shmlimit_close(l);
}

int main(void)
{
	struct rng rng = { rng_seed() };

	sizes();
	keys_move();
	verbs();
	carried_twice();
	refilled_in_the_old_table();
	carried_and_not_buried();
	duplicate(&rng);
	crowd(SHMLIMIT_FULL_EVICT);
	crowd(SHMLIMIT_FULL_DENY);
	homeless(SHMLIMIT_FULL_ALLOW, SHMLIMIT_ALLOWED);
	homeless(SHMLIMIT_FULL_DENY, SHMLIMIT_DENIED);
	leftover();
	damage();
	own_clock();
	off();
	carried_over_later_times();
	old_words();
	return tap_done();
}
