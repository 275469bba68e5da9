/*
 * nothing: a call that is about no tokens, or only looks, writes to no slot and to no cell, whatever the algorithm, with
 * or without a slot of the key, or a token, at any time since; and where it is about no tokens it is allowed.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "unit.h"

#include "layout.h"
#include "limiter.h"

#define T0 (1000 * SECOND)
#define RULES 5

static struct shmlimit *l;
static int rules[RULES];

static const char *const names[] = { "a take of 0", "a reservation of 0", "a charge of 0", "a refund of 0",
	                             "a peek",      "a peek at 4 tokens", "a count of 0" };
#define CALLS (int)(sizeof(names) / sizeof(names[0]))

static int call(int which, int id, const char *key, uint64_t now_ns, struct shmlimit_result *r)
{
	switch (which) {
	case 0:
		return shmlimit_take(at_time(l, now_ns), id, key, 1, 0, r);
	case 1:
		return shmlimit_reserve(at_time(l, now_ns), id, key, 1, 0, SECOND, r);
	case 2:
		return shmlimit_charge(at_time(l, now_ns), id, key, 1, 0, r);
	case 3:
		return shmlimit_refund(at_time(l, now_ns), id, key, 1, 0, r);
	case 4:
		return shmlimit_peek(at_time(l, now_ns), id, key, 1, 0, r);
	case 5:
		return shmlimit_peek(at_time(l, now_ns), id, key, 1, 4, r);
	default:
		return shmlimit_count(
			at_time(l, now_ns), id, key, 1,
			&(struct shmlimit_count_request){
				.struct_size = sizeof(struct shmlimit_count_request), .n = 0, .bound = 5 },
			NULL);
	}
}

/* It is about no tokens, so it does not matter how many there are. */
static int is_allowed(int which)
{
	return which == 0 || which == 1 || which == 4;
}

int main(void)
{
	static const uint64_t later_ns[] = { 0, 1, SECOND / 7, SECOND / 2, 2 * SECOND, 86400 * SECOND };
	struct shmlimit_options options = { .struct_size = sizeof(options), .slots = 64, .slots_max = 64 };
	unsigned char *before;
	struct shmlimit_result r;
	size_t size;

	l = unit_create("nothing", &options);
	unit_rules(l, rules, RULES, T0);
	for (int i = 0; i < RULES; i++) {
		if (i == 3)
			shmlimit_lease_deposit(at_time(l, T0), rules[i], "k", 1, 5, 2, 0, SECOND, NULL);
		else
			shmlimit_take(at_time(l, T0), rules[i], "k", 1, 3, NULL);
		for (int n = 0; n < 100; n++)
			shmlimit_take(at_time(l, T0), rules[i], "e", 1, 1, NULL);
	}
	size = 64 * sizeof(struct layout_slot);
	before = malloc(size);
	memcpy(before, l->tables[0].slots, size);
	for (int which = 0; which < CALLS; which++) {
		for (int i = 0; i < RULES; i++) {
			int wrote = 0, denied = 0;

			for (size_t at = 0; at < sizeof(later_ns) / sizeof(later_ns[0]); at++)
				for (int with = 0; with < 6; with++) {
					int answer = call(which, rules[i], &"kne"[with % 3], T0 + later_ns[at],
					                  with < 3 ? &r : NULL);

					denied += answer == SHMLIMIT_DENIED;
					wrote += memcmp(before, l->tables[0].slots, size) != 0;
					memcpy(l->tables[0].slots, before, size);
				}
			is(wrote, 0, "%s writes nothing under a rule of algorithm %d", names[which], i);
			if (is_allowed(which))
				is(denied, 0, "%s is allowed under a rule of algorithm %d", names[which], i);
		}
	}
	free(before);
	shmlimit_close(l);
	return tap_done();
}
