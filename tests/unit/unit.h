/*
 * unit: a segment for one test program, gone when it ends however it ends.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_UNIT_UNIT_H
#define TESTS_UNIT_UNIT_H

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../by_limit.h"
#include "../guard.h"
#include "../tap.h"
#include "../at.h"
#include "shmlimit_lease.h"

#define LAST_ALGORITHM SHMLIMIT_GCRA

#define SECOND ((uint64_t)1000000000)

static char unit_name[64];

__attribute__((unused)) static void unit_gone(void)
{
	if (unit_name[0] != '\0')
		shmlimit_destroy(unit_name);
}

/* Make the program's segment. `program` names it; `options` may be NULL. */
__attribute__((unused)) static struct shmlimit *unit_create(const char *program, const struct shmlimit_options *options)
{
	struct shmlimit *l = NULL;
	int error;

	if (unit_name[0] == '\0') {
		snprintf(unit_name, sizeof(unit_name), "test.%s.%ld", program, (long)getpid());
		guard_begin(unit_gone);
		atexit(unit_gone);
	} else {
		unit_gone();
	}
	error = shmlimit_create(unit_name, options, &l);
	if (error != 0)
		bail("create: %s", shmlimit_strerror(error));
	return l;
}

/* `id`, or the end where there is none. */
__attribute__((unused)) static int unit_id(int id)
{
	if (id < 0)
		bail("rule_set: %s", shmlimit_strerror(id));
	return id;
}

__attribute__((unused)) static int unit_rule_of(struct shmlimit *l, const char *name, struct shmlimit_rule rule)
{
	rule.struct_size = sizeof(rule);
	return unit_id(shmlimit_rule_set(l, name, &rule));
}

__attribute__((unused)) static int unit_rule_at(struct shmlimit *l, const char *name, struct shmlimit_rule rule,
                                                uint64_t now_ns)
{
	rule.struct_size = sizeof(rule);
	return unit_id(shmlimit_rule_set(at_time(l, now_ns), name, &rule));
}

__attribute__((unused)) static int unit_rule(struct shmlimit *l, const char *name, uint64_t capacity, uint64_t count,
                                             uint64_t period_ns)
{
	struct shmlimit_rule rule = { .capacity = capacity, .refill = count, .period_ns = period_ns };

	return unit_rule_of(l, name, rule);
}

__attribute__((unused)) static struct shmlimit_counters unit_counters(struct shmlimit *l, int rule)
{
	struct shmlimit_counters counters = { .struct_size = sizeof(counters) };
	int error = shmlimit_counters(l, rule, &counters);

	if (error != 0)
		bail("counters: %s", shmlimit_strerror(error));
	return counters;
}

/* Its emulated processor and kernel differ from ours in two things that tests see. */
__attribute__((unused)) static int under_valgrind(void)
{
	const char *preloaded = getenv("LD_PRELOAD");

	return preloaded != NULL && strstr(preloaded, "vgpreload") != NULL;
}

/* How many slots are in a state. */
__attribute__((unused)) static uint64_t unit_slots(struct shmlimit *l, uint32_t state, uint64_t now_ns)
{
	struct shmlimit_info info = { .struct_size = sizeof(info) };
	uint64_t found = 0;

	shmlimit_info(l, &info);
	for (uint64_t i = 0; i < info.slots; i++) {
		struct shmlimit_slot slot = { .struct_size = sizeof(slot) };

		if (shmlimit_slot(l, i, &slot, now_ns) == 0 && slot.state == state)
			found++;
	}
	return found;
}

/* A rule of each of the first `n` algorithms, in the order of their numbers, with limits that a few calls use up. */
__attribute__((unused)) static void unit_rules(struct shmlimit *l, int *ids, int n, uint64_t now_ns)
{
	static const struct shmlimit_rule what[] = {
		{ .algorithm = SHMLIMIT_FUNNEL, .capacity = 5, .refill = 1, .period_ns = SECOND, .max_wait_ns = SECOND },
		{ .algorithm = SHMLIMIT_WARMUP,
		  .refill = 5,
		  .period_ns = SECOND,
		  .warmup_ns = SECOND,
		  .max_wait_ns = SECOND },
		{ .algorithm = SHMLIMIT_WINDOW, .capacity = 5, .period_ns = SECOND, .max_wait_ns = SECOND },
		{ .algorithm = SHMLIMIT_LEASE, .capacity = 9, .refill = 1, .period_ns = SECOND },
		{ .algorithm = SHMLIMIT_COUNTER, .capacity = 5, .period_ns = SECOND },
		{ .algorithm = SHMLIMIT_HOLD, .capacity = 3, .period_ns = SECOND },
	};

	for (int i = 0; i < n; i++) {
		char name[8];

		snprintf(name, sizeof(name), "r%d", i);
		ids[i] = unit_rule_at(l, name, what[i], now_ns);
	}
}

#endif
