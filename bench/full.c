/*
 * full: what does a flood of new keys make a table forget, and which requests does it get denied?
 *
 * In simulated time: users of a rule of 10 in 60 s, half of whom have used 3 tokens and half all 10, and clients
 * that are banned for ten minutes. Then, at once, a flood of keys of another rule, as many as the table has slots,
 * or more. Then new users. And: how many keys can be protected? See README.md for the figures.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <stdio.h>
#include <string.h>

#include "kit/bench.h"

#define SECOND ((uint64_t)1000000000)
#define CAPACITY 10u
#define LIGHT 3u /* what a light user has spent */
#define NEW 200u
#define MOST 16u /* keys of the largest flood, for each slot */

static uint64_t slots, users, bans; /* half of the users are light */
static unsigned tables;             /* each with a secret of its own */

static const struct setting {
	const char *name;
	uint32_t on_full;
	int is_protected; /* the users' rule and the bans' rule */
	int fits;         /* the table has room for all, at a load of 0.8 */
} settings[] = {
	{ "evict", SHMLIMIT_FULL_EVICT, 0, 0 },       { "evict, protected", SHMLIMIT_FULL_EVICT, 1, 0 },
	{ "allow", SHMLIMIT_FULL_ALLOW, 0, 0 },       { "deny", SHMLIMIT_FULL_DENY, 0, 0 },
	{ "evict, room", SHMLIMIT_FULL_EVICT, 0, 1 },
};
static const uint64_t sizes[] = { 1, 4, MOST };

/* The rule of the flood, and what each of its keys spends. */
static const struct flood {
	const char *name;
	uint64_t capacity, period_ns, cost;
} floods[] = {
	{ "1 of 10/min", 10, 60 * SECOND, 1 },
	{ "10 of 10/min", 10, 60 * SECOND, 10 },
	{ "3 of 3/hour", 3, 3600 * SECOND, 3 },
};
static const double loads[] = { 0.05, 0.1, 0.15, 0.2, 0.25, 0.5 };

enum figure { LIGHT_FORGOTTEN, LET_IN, UNBANNED, NEW_DENIED, NEW_UNLIMITED, FLOOD_DENIED, FIGURES };
static const char *const figures[FIGURES] = { "light users forgotten", "users over the limit let in", "bans undone",
	                                      "new users denied",      "new users not limited",       "flood denied" };

static int set_rule(struct shmlimit *l, const char *name, uint64_t capacity, uint64_t period_ns, int is_protected)
{
	struct shmlimit_rule rule = { .struct_size = sizeof(rule),
		                      .flags = is_protected ? SHMLIMIT_RULE_PROTECTED : 0,
		                      .capacity = capacity,
		                      .refill = capacity,
		                      .period_ns = period_ns };
	int id = shmlimit_rule_set(l, name, &rule);

	if (id < 0)
		bench_fail(name, shmlimit_strerror(id));
	return id;
}

static int set_bans(struct shmlimit *l, int is_protected)
{
	struct shmlimit_rule rule = { .struct_size = sizeof(rule),
		                      .algorithm = SHMLIMIT_COUNTER,
		                      .flags = is_protected ? SHMLIMIT_RULE_PROTECTED : 0,
		                      .capacity = 1 };
	int id = shmlimit_rule_set(l, "ban", &rule);

	if (id < 0)
		bench_fail("ban", shmlimit_strerror(id));
	return id;
}

static void ban(struct shmlimit *l, int rule, uint64_t first, uint64_t n, uint64_t now_ns)
{
	for (uint64_t key = first; key < first + n; key++)
		shmlimit_count(at_time(l, now_ns), rule, &key, sizeof(key),
		               &(struct shmlimit_count_request){ .struct_size = sizeof(struct shmlimit_count_request),
		                                                 .n = 1,
		                                                 .bound = INT64_MAX,
		                                                 .ttl_ns = 600 * SECOND },
		               NULL);
}

static uint64_t count_unbanned(struct shmlimit *l, int rule, uint64_t n, uint64_t now_ns)
{
	uint64_t unbanned = 0;

	for (uint64_t key = 0; key < n; key++)
		unbanned += shmlimit_peek(at_time(l, now_ns), rule, &key, sizeof(key), 1, NULL) == 0;
	return unbanned;
}

/* One key a nanosecond. Returns how many were denied. */
static uint64_t flood_with(struct shmlimit *l, int rule, uint64_t keys, uint64_t cost, uint64_t now_ns)
{
	uint64_t denied = 0;

	for (uint64_t key = 0; key < keys; key++)
		denied += shmlimit_take(at_time(l, now_ns + key), rule, &key, sizeof(key), cost, NULL) != 0;
	return denied;
}

/* Users and bans that are known, a flood, and how many of each were forgotten or denied. Adds to counts[]. */
static void play(const struct setting *s, const struct flood *flood, uint64_t keys, uint64_t counts[FIGURES])
{
	struct shmlimit_options options = { .struct_size = sizeof(options), .slots = slots, .on_full = s->on_full };
	struct shmlimit *l;
	struct shmlimit_result r;
	uint64_t now_ns;
	int login, banned, page;

	if (s->fits)
		options.slots = (users + bans + keys + NEW) * 10 / 8;
	l = bench_create(&options);
	login = set_rule(l, "login", CAPACITY, 60 * SECOND, s->is_protected);
	banned = set_bans(l, s->is_protected);
	page = set_rule(l, "page", flood->capacity, flood->period_ns, 0);
	now_ns = shmlimit_now(l);
	for (uint64_t key = 0; key < users; key++)
		shmlimit_take(at_time(l, now_ns), login, &key, sizeof(key), key % 2 == 0 ? LIGHT : CAPACITY, NULL);
	ban(l, banned, 0, bans, now_ns);
	counts[FLOOD_DENIED] += flood_with(l, page, keys, flood->cost, now_ns);
	now_ns += keys;
	for (uint64_t key = 0; key < users; key++) {
		int answer = shmlimit_peek(at_time(l, now_ns), login, &key, sizeof(key), 1, &r);

		if (key % 2 == 0)
			counts[LIGHT_FORGOTTEN] += r.remaining == CAPACITY;
		else
			counts[LET_IN] += answer == 0;
	}
	counts[UNBANNED] += count_unbanned(l, banned, bans, now_ns);
	for (uint64_t key = users; key < users + NEW; key++) {
		int answer = shmlimit_take(at_time(l, now_ns), login, &key, sizeof(key), 1, NULL);

		shmlimit_peek(at_time(l, now_ns), login, &key, sizeof(key), 1, &r);
		counts[NEW_DENIED] += answer != 0;
		counts[NEW_UNLIMITED] += answer == 0 && r.remaining == CAPACITY;
	}
	shmlimit_close(l);
}

static void measure(const struct setting *s, const struct flood *flood, uint64_t size)
{
	uint64_t counts[FIGURES] = { 0 };
	double of[FIGURES] = { (double)users / 2, (double)users / 2, (double)bans, NEW, NEW, (double)(slots * size) };
	char at[48];

	for (unsigned i = 0; i < tables; i++)
		play(s, flood, slots * size, counts);
	printf("%-17s %-13s %6llu", s->name, flood->name, (unsigned long long)size);
	snprintf(at, sizeof(at), "%s, %llu", flood->name, (unsigned long long)size);
	for (int figure = 0; figure < FIGURES; figure++) {
		double share = (double)counts[figure] / (of[figure] * tables);

		printf(" %10.1f%%", 100 * share);
		bench_row(s->name, at, figures[figure], share);
	}
	putchar('\n');
}

static uint64_t count_slots(struct shmlimit *l, int rule, uint64_t now_ns)
{
	uint64_t found = 0;

	for (uint64_t i = 0; i < slots; i++) {
		struct shmlimit_slot slot = { .struct_size = sizeof(slot) };

		found += shmlimit_slot(l, i, &slot, now_ns) == 0 && slot.state == SHMLIMIT_SLOT_LIVE &&
		         slot.rule == rule;
	}
	return found;
}

/* Protected bans in a part of the slots: how many are lost to other keys, and how many slots bans can take from others. */
static void measure_load(double load)
{
	struct shmlimit_options options = { .struct_size = sizeof(options), .slots = slots };
	uint64_t n = (uint64_t)(load * (double)slots), unbanned = 0, taken = 0;
	double lost, share;
	char at[16];

	for (unsigned i = 0; i < tables; i++) {
		struct shmlimit *l = bench_create(&options);
		int banned = set_bans(l, 1), page = set_rule(l, "page", 3, 3600 * SECOND, 0);
		uint64_t now_ns = shmlimit_now(l);

		ban(l, banned, 0, n, now_ns);
		flood_with(l, page, MOST * slots, 3, now_ns);
		now_ns += MOST * slots;
		unbanned += count_unbanned(l, banned, n, now_ns);
		ban(l, banned, n, MOST * slots, now_ns);
		taken += count_slots(l, banned, now_ns);
		shmlimit_close(l);
	}
	lost = (double)unbanned / (double)(n * tables);
	share = (double)taken / (double)(slots * tables);
	printf("%-17g %12.2f%% %12.1f%%\n", load, 100 * lost, 100 * share);
	snprintf(at, sizeof(at), "%g", load);
	bench_row("protected", at, "bans undone", lost);
	bench_row("protected", at, "slots after a flood of bans", share);
}

int main(int argc, char **argv)
{
	bench_begin(argc, argv, "full");
	slots = bench_quick ? 256 : 4096;
	tables = bench_quick ? 1 : 5;
	users = slots / 16;
	bans = slots / 32;
	printf("%-17s %-13s %6s %11s %11s %11s %11s %11s %11s\n", "on full", "flood spends", "flood", "light",
	       "over limit", "bans", "new users", "new users", "flood");
	printf("%-17s %-13s %6s %11s %11s %11s %11s %11s %11s\n", "", "", "/slots", "forgotten", "let in", "undone",
	       "denied", "not limited", "denied");
	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++)
		for (size_t j = 0; j < sizeof(floods) / sizeof(floods[0]); j++)
			for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++)
				measure(&settings[i], &floods[j], sizes[k]);
	printf("\n%-17s %13s %13s\n", "protected/slots", "bans undone", "bans, slots");
	printf("%-17s %13s %13s\n", "", "by a flood", "after a flood");
	for (size_t i = 0; i < sizeof(loads) / sizeof(loads[0]); i++)
		measure_load(loads[i]);
	return bench_end();
}
