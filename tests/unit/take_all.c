/*
 * take_all: a call that is denied leaves the words of all its keys as they were, whatever
 * their algorithm; a key that had no slot has none.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "unit.h"

#include "limiter.h"

#define T0 (1000000 * SECOND)
#define RULES 4

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

	return shmlimit_take_all_at(l, both, 2, NULL, NULL, now_ns);
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
		{ "lease", { .algorithm = SHMLIMIT_LEASE, .capacity = 10, .refill = 1, .period_ns = SECOND } },
		/* clang-format on */
	};
	struct shmlimit_options options = { .struct_size = sizeof(options),
		                            .slots = SHMLIMIT_SLOTS_MIN,
		                            .window_max = 8 };
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
	shmlimit_lease_deposit_at(l, ids[3], "k", 1, 8, 0, 1000 * SECOND, NULL, T0);
	shmlimit_take_at(l, ids[0], "k", 1, 2, NULL, T0);
	/* Cold, and all of the last cost is paid for. */
	shmlimit_take_at(l, ids[1], "k", 1, 5, NULL, T0 - 100 * SECOND);
	for (int i = 0; i < 4; i++)
		shmlimit_take_at(l, ids[2], "k", 1, 1, NULL, T0);
	for (int i = 0; i < RULES; i++)
		leaves_all(rules[i].name, ids[i], "k");
	shmlimit_peek_at(l, ids[1], "k", 1, 1, &r, T0 + 100 * SECOND);
	is(r.remaining, r.limit, "a warm-up that nobody used is as cold as it can be");
	return tap_done();
}
