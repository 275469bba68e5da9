/*
 * take_all: a call that is denied leaves the words of all its keys as they were, whatever
 * their algorithm. A key that had no slot, or one that is over, has none.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "unit.h"

#include "limiter.h"

#define T0 (1000000 * SECOND)
#define RULES 6

static struct shmlimit *l;
static int denying;

static int rule_of(const char *name, struct shmlimit_rule rule)
{
	return unit_rule_at(l, name, rule, T0);
}

/* A request of the first rule, then one that is denied. */
static int ask(int rule, const char *key, uint64_t cost, uint64_t now_ns)
{
	const struct shmlimit_request both[] = {
		{ .rule = rule, .key = key, .key_len = strlen(key), .cost = cost },
		{ .rule = denying, .key = "k", .key_len = 1, .cost = 1 },
	};

	return shmlimit_take_all(at_time(l, now_ns), both, 2, NULL, NULL);
}

static unsigned slots_in_use(void)
{
	unsigned n = 0;

	for (uint64_t i = 0; i < l->tables[0].lines * SLOTS_PER_LINE; i++)
		n += l->tables[0].slots[i].tag != 0;
	return n;
}

static void copy_slots(struct layout_slot *to)
{
	memcpy(to, l->tables[0].slots, l->tables[0].lines * SLOTS_PER_LINE * sizeof(*to));
}

static void leaves_all(const char *what, int rule, const char *key)
{
	static struct layout_slot before[SHMLIMIT_SLOTS_MIN], after[SHMLIMIT_SLOTS_MIN];
	unsigned wrong = 0;
	uint64_t at = T0 + SECOND;

	copy_slots(before);
	for (int i = 0; i < 100; i++)
		wrong += ask(rule, key, 1 + i % 3, at += SECOND / 4) != SHMLIMIT_DENIED;
	copy_slots(after);
	is(wrong, 0, "%s: 100 calls are denied by another limit", what);
	is(memcmp(before, after, sizeof(before)), 0, "%s: they leave the table as it was", what);
}

/* The key was used at T0, and is over. The table is not due to be swept, which would free its slot. */
static void leaves_none(const char *what, int rule, const char *key)
{
	unsigned before = slots_in_use();

	l->header->swept.ns = T0 + 9000 * SECOND;
	is(ask(rule, key, 1, T0 + 10000 * SECOND), SHMLIMIT_DENIED, "%s: a call for a key that is over is denied",
	   what);
	is(slots_in_use(), before - 1, "%s: the key is as one that was never used", what);
}

int main(void)
{
	static const struct {
		const char *name;
		struct shmlimit_rule rule;
	} rules[RULES] = {
		/* clang-format off */
		{ "funnel", { .capacity = 10, .refill = 1, .period_ns = 1000 * SECOND } },
		{ "warmup", { .algorithm = SHMLIMIT_WARMUP, .refill = 10, .period_ns = SECOND, .warmup_ns = 100 * SECOND } },
		{ "window", { .algorithm = SHMLIMIT_WINDOW, .capacity = 8, .period_ns = 1000 * SECOND } },
		{ "count", { .algorithm = SHMLIMIT_COUNTER, .capacity = 8, .period_ns = 1000 * SECOND } },
		{ "gcra", { .algorithm = SHMLIMIT_GCRA, .capacity = 8, .refill = 1, .period_ns = 1000 * SECOND } },
		{ "lease", { .algorithm = SHMLIMIT_LEASE, .capacity = 10, .refill = 1, .period_ns = SECOND } },
		/* clang-format on */
	};
	struct shmlimit_options options = { .struct_size = sizeof(options), .slots = SHMLIMIT_SLOTS_MIN };
	struct shmlimit_result r;
	int ids[RULES];

	l = unit_create("take_all", &options);
	/* A lease of nothing denies at any time. */
	denying = rule_of(
		"denying",
		(struct shmlimit_rule){ .algorithm = SHMLIMIT_LEASE, .capacity = 1, .refill = 1, .period_ns = SECOND });
	for (int i = 0; i < RULES; i++) {
		ids[i] = rule_of(rules[i].name, rules[i].rule);
		if (i < RULES - 1)
			leaves_all("a new key", ids[i], "new");
	}
	shmlimit_lease_deposit(at_time(l, T0), ids[5], "k", 1, 8, 0, 0, 1000 * SECOND, NULL);
	shmlimit_take(at_time(l, T0), ids[0], "k", 1, 2, NULL);
	/* All of the last cost is paid for, and the store is not full: until T0 + 28 s. */
	shmlimit_take(at_time(l, T0 - 100 * SECOND), ids[1], "k", 1, 400, NULL);
	for (int i = 0; i < 4; i++)
		for (int j = 2; j < RULES - 1; j++)
			shmlimit_take(at_time(l, T0), ids[j], "k", 1, 1, NULL);
	for (int i = 0; i < RULES; i++)
		leaves_all(rules[i].name, ids[i], "k");
	/* What is left of a lease that is over cannot be taken. */
	for (int i = 0; i < RULES - 1; i++)
		leaves_none(rules[i].name, ids[i], "k");
	shmlimit_peek(at_time(l, T0 + 100 * SECOND), ids[1], "k", 1, 1, &r);
	is(r.remaining, r.limit, "a warm-up that nobody used is as cold as it can be");
	return tap_done();
}
