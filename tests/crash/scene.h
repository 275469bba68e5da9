/*
 * scene: the segment under test: 16 slots, so that every key's window is the
 * whole table; three rules of which no token comes back while a test looks; a
 * secret that a seed repeats. Its bytes can be kept and put back.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_CRASH_SCENE_H
#define TESTS_CRASH_SCENE_H

#include "hash.h"
#include "rule_writer.h"
#include "segment.h"
#include "table.h"
#include "tracee.h"

#define SLOTS 16u
#define GROWN (2 * SLOTS) /* to which it can grow */
#define RULES 5u          /* two of them unused */
#define HOUR_NS 3600000000000u
#define DAY_NS (24 * HOUR_NS)
#define START_NS 1000000000000000u
#define CAPACITY 5u

enum { SUBJECT, OTHER, HELD }; /* ids of rules */

#define CELLS_SIZES_OF_SCENES 7u /* for capacities up to 12 */

static struct {
	struct shmlimit *l;
	uint32_t algorithm; /* of the rule "subject" */
	int on_calendar;    /* a COUNTER's */
	unsigned char *bytes;
	size_t size;
	uint64_t now_ns, look_ns; /* when calls are made, when they are judged */
} scene;

/*
 * The rule "subject": empty, it is full after 5 hours; a debt of 3 hours may come
 * on top. A cold WARMUP gives 5 tokens at once, and then none for 7.5 hours.
 */
static inline struct shmlimit_rule scene_subject(void)
{
	struct shmlimit_rule rule = {
		.struct_size = sizeof(rule),
		.algorithm = scene.algorithm,
		.max_wait_ns = 3 * HOUR_NS,
	};

	switch (scene.algorithm) {
	case SHMLIMIT_WINDOW:
		rule.capacity = CAPACITY;
		rule.period_ns = CAPACITY * HOUR_NS;
		break;
	case SHMLIMIT_WARMUP:
		rule.refill = 1;
		rule.period_ns = HOUR_NS;
		rule.warmup_ns = CAPACITY * HOUR_NS;
		break;
	case SHMLIMIT_COUNTER:
	case SHMLIMIT_HOLD:
		rule.capacity = CAPACITY;
		rule.period_ns = CAPACITY * HOUR_NS;
		rule.max_wait_ns = 0;
		if (!scene.on_calendar)
			break;
		strcpy(rule.zone, "UTC");
		rule.period_ns = 30 * DAY_NS;
		break;
	case SHMLIMIT_LEASE:
		rule.max_wait_ns = 0;
		/* fall through */
	default:
		rule.capacity = CAPACITY;
		rule.refill = 1;
		rule.period_ns = HOUR_NS;
	}
	return rule;
}

/* CRASH_FULL=1: the long form of a test, in which nothing is left out. */
static inline int scene_is_full(void)
{
	return getenv("CRASH_FULL") != NULL;
}

/* To be called first, as stage_begin(), which it calls. */
static inline void scene_begin(const char *program)
{
	stage_begin(program);
	if (scene_is_full())
		alarm(12 * WATCHDOG_SECONDS);
}

/* Another secret, so that the keys' windows are those of the seed. */
static inline void scene_set_secret(struct rng *rng)
{
	struct layout_header *header = scene.l->header;

	for (int i = 0; i < 2; i++)
		scene.l->secret[i] = header->secret[i] = rng_draw(rng);
	header->checksum = layout_checksum(header);
}

/* As stage_create(), so that all scenes are of one size. */
static inline struct shmlimit *scene_create(uint32_t on_full)
{
	struct shmlimit_options options = { .struct_size = sizeof(options),
		                            .slots = SLOTS,
		                            .slots_max = GROWN,
		                            .rules = RULES,
		                            .rules_max = RULES,
		                            .on_full = on_full,
		                            .store_keys = 14 };
	struct shmlimit *l;
	int error = shmlimit_create(stage_name, &options, &l);

	if (error != 0)
		bail("create %s: %s", stage_name, shmlimit_strerror(error));
	return l;
}

/* Map the segment again, with its cells behind it, so that all of it is in one piece. */
static inline void scene_map(void)
{
	struct shmlimit *l = scene.l;
	unsigned char *was = (unsigned char *)l->header, *base;

	scene.size = l->size + layout_region(l->lines_max, CELLS_SIZES_OF_SCENES);
	stage_extend(scene.size);
	base = segment_map_ahead(was, 0, scene.size);
	if (base == NULL)
		bail("mremap");
	segment_unmap(was, l->size + 4096);
	scene.bytes = base;
	l->header = (struct layout_header *)(void *)base;
	l->rules = (struct layout_rule *)(void *)(base + ((unsigned char *)l->rules - was));
	l->counters = base + (l->counters - was);
	l->area = base + ((unsigned char *)l->area - was);
	l->tables[0].slots = (struct layout_slot *)(void *)(base + ((unsigned char *)l->tables[0].slots - was));
	for (unsigned size = 0; size < CELLS_SIZES_OF_SCENES; size++)
		l->regions[size] = (uintptr_t)base + l->size + layout_region(l->lines_max, size);
}

/* `own_clock`: calls are made that take no time from the caller. */
static inline void scene_open(struct rng *rng, uint32_t on_full, int own_clock)
{
	struct shmlimit_rule rule = scene_subject();
	uint32_t algorithm = scene.algorithm;

	scene.l = scene_create(on_full);
	scene_map();
	scene.now_ns = own_clock ? shmlimit_now(scene.l) : START_NS;
	scene.look_ns = scene.now_ns + (own_clock ? HOUR_NS / 6 : 0);
	scene_set_secret(rng);
	if (scene.on_calendar)
		scene.l->header->unix_ns -= DAY_NS;
	if (shmlimit_rule_set(at_time(scene.l, scene.now_ns), "subject", &rule) != SUBJECT)
		bail("no rule");
	scene.algorithm = SHMLIMIT_FUNNEL;
	rule = scene_subject();
	scene.algorithm = algorithm;
	if (shmlimit_rule_set(at_time(scene.l, scene.now_ns), "other", &rule) != OTHER)
		bail("no other rule");
	rule.capacity = 1;
	rule.period_ns = 365 * DAY_NS;
	rule.max_wait_ns = 0;
	if (shmlimit_rule_set(at_time(scene.l, scene.now_ns), "held", &rule) != HELD)
		bail("no rule for what is held");
}

static inline void scene_close(void)
{
	(void)shmlimit_destroy(stage_name);
	/* shmlimit_close() ends what it mapped itself. */
	memset(scene.l->regions, 0, sizeof(scene.l->regions));
	segment_unmap(scene.bytes + scene.l->size, scene.size - scene.l->size);
	shmlimit_close(scene.l);
	scene.l = NULL;
}

/* The segment's bytes, to be put back: no other process is running. */
static inline unsigned char *scene_keep(unsigned char *to)
{
	if (to == NULL && (to = malloc(scene.size)) == NULL)
		bail("no memory");
	return memcpy(to, scene.bytes, scene.size);
}

static inline void scene_restore(const unsigned char *from)
{
	memcpy(scene.bytes, from, scene.size);
}

static inline uint64_t scene_hash(void)
{
	static const uint64_t secret[2] = { 1, 2 };
	uint64_t hash = 0;

	for (size_t at = 0; at < scene.size; at += SHMLIMIT_KEY_MAX) {
		size_t len = scene.size - at < SHMLIMIT_KEY_MAX ? scene.size - at : SHMLIMIT_KEY_MAX;

		hash = hash * 0x9e3779b97f4a7c15u + hash_bytes(secret, 0, scene.bytes + at, len);
	}
	return hash;
}

#endif
