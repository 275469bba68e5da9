/*
 * full: what happens when a key's window has no free slot (I9), and that a
 * refilled slot is one (the table never fills with keys that are gone).
 *
 * The table is the smallest there is, 16 slots: every key's window is all of it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "unit.h"

#define T0 (1000 * SECOND)

static struct shmlimit *l;

static struct shmlimit *make(uint32_t on_full)
{
	struct shmlimit_options options = { .struct_size = sizeof(options), .slots = 16, .on_full = on_full };

	return unit_create("full", &options);
}

static int take(int rule, int key, uint64_t cost, uint64_t at, struct shmlimit_result *r)
{
	return shmlimit_take(at_time(l, at), rule, &key, sizeof(key), cost, r);
}

/* Sixteen keys, key i missing i + 1 tokens. */
static int occupy(void)
{
	int rule = unit_rule(l, "r", 100, 1, SECOND);
	int allowed = 0;

	for (int i = 0; i < 16; i++)
		allowed += take(rule, i, (uint64_t)i + 1, T0, NULL) == SHMLIMIT_ALLOWED;
	is(allowed, 16, "sixteen slots hold sixteen keys");
	is(unit_slots(l, SHMLIMIT_SLOT_LIVE, T0), 16, "each in a slot of its own");
	return rule;
}

/* Is key i as occupy() left it? */
static int untouched(int rule, int i, uint64_t at)
{
	struct shmlimit_result r;

	shmlimit_peek(at_time(l, at), rule, &i, sizeof(i), 0, &r);
	return r.remaining == 100 - ((uint64_t)i + 1) + (at - T0) / SECOND;
}

static void evict(void)
{
	struct shmlimit_counters c;
	int rule, kept = 0;

	l = make(SHMLIMIT_FULL_EVICT);
	rule = occupy();
	is(take(rule, 100, 50, T0, NULL), SHMLIMIT_ALLOWED, "evict: a newcomer gets a place");
	for (int i = 1; i < 16; i++)
		kept += untouched(rule, i, T0);
	is(kept, 15, "evict: of 16 keys 15 keep their slots");
	ok(!untouched(rule, 0, T0), "evict: the key that would have been full again soonest is forgotten");
	c = unit_counters(l, rule);
	is(c.evictions, 1, "evict: an eviction is counted");
	is(c.claims, 17, "evict: an eviction is counted as a claim too");
	is(take(rule, 101, 101, T0, NULL), SHMLIMIT_DENIED, "a newcomer that is denied evicts no key");
	is(unit_counters(l, rule).evictions, 1, "evict: no eviction is counted for a newcomer that is denied");
	shmlimit_close(l);
}

static void allow_and_deny(void)
{
	struct shmlimit_result r;
	int rule, kept = 0;

	l = make(SHMLIMIT_FULL_ALLOW);
	rule = occupy();
	is(take(rule, 100, 50, T0, &r), SHMLIMIT_ALLOWED, "allow: a newcomer is allowed");
	is(r.remaining, 50, "allow: a newcomer has what a full funnel has");
	is(take(rule, 100, 60, T0, NULL), SHMLIMIT_ALLOWED, "allow: a newcomer is allowed again");
	is(take(rule, 100, 101, T0, &r), SHMLIMIT_DENIED, "allow: a newcomer is denied more than the capacity");
	ok(r.retry_after_ns == UINT64_MAX, "allow: more than the capacity never fits");
	is(unit_counters(l, rule).no_slot, 2, "allow: newcomers without a slot are counted");
	for (int i = 0; i < 16; i++)
		kept += untouched(rule, i, T0);
	is(kept, 16, "allow: a newcomer leaves the keys that are there alone");
	shmlimit_close(l);

	l = make(SHMLIMIT_FULL_DENY);
	rule = occupy();
	is(take(rule, 100, 1, T0, &r), SHMLIMIT_DENIED, "deny: a newcomer is denied");
	is(r.retry_after_ns, SECOND, "deny: a newcomer is denied until the first of the others is full again");
	is(unit_counters(l, rule).no_slot, 1, "deny: a newcomer without a slot is counted");
	is(unit_counters(l, rule).denied, 1, "deny: a newcomer without a slot is counted as a denial too");
	is(shmlimit_charge(at_time(l, T0), rule, "newcomer", 8, 1, &r), SHMLIMIT_ALLOWED,
	   "a newcomer that finds no slot is charged");
	is(r.retry_after_ns, UINT64_MAX, "deny: a charge of a newcomer says that nothing was recorded");
	is(take(rule, 3, 1, T0, NULL), SHMLIMIT_ALLOWED, "deny: a key that has a slot is served");
	is(take(rule, 100, 1, T0 + SECOND - 1, NULL), SHMLIMIT_DENIED,
	   "deny: a newcomer is denied a nanosecond before a slot is free");
	is(take(rule, 100, 1, T0 + SECOND, NULL), SHMLIMIT_ALLOWED, "deny: a newcomer gets the slot that is free");
	is(unit_counters(l, rule).reclaims, 1, "deny: taking a slot that is free is a reclaim");
	is(unit_counters(l, rule).evictions, 0, "deny: taking a slot that is free is no eviction");
	shmlimit_close(l);
}

/*
 * What has happened already is answered on a full table as on an empty one: a key without a slot is charged, has no
 * place to leave, and so on; none of these is denied.
 */
static int happened(int op, int counted, int held, int leased, struct shmlimit_place *place)
{
	switch (op) {
	case 0:
		return shmlimit_charge(at_time(l, T0), counted, "new", 3, 1, NULL);
	case 1:
		return shmlimit_leave(at_time(l, T0), held, "new", 3, place);
	case 2:
		return shmlimit_renew(at_time(l, T0), held, "new", 3, place);
	case 3:
		return shmlimit_lease_abandon(at_time(l, T0), leased, "new", 3);
	case 4:
		return shmlimit_lease_deny(at_time(l, T0), leased, "new", 3, 1, SECOND, NULL);
	case 5:
		return shmlimit_lease_deposit(at_time(l, T0), leased, "new", 3, 1, 0, 0, SECOND, NULL);
	default:
		return shmlimit_refund(at_time(l, T0), counted, "new", 3, 1, NULL);
	}
}

static void has_happened(void)
{
	static const char *const names[] = { "charge", "leave", "renew", "abandon", "deny", "deposit", "refund" };
	enum { OPS = sizeof(names) / sizeof(names[0]) };
	struct shmlimit_options options = { .struct_size = sizeof(options),
		                            .slots = 16,
		                            .on_full = SHMLIMIT_FULL_DENY };
	struct shmlimit_rule hold = {
		.struct_size = sizeof(hold), .algorithm = SHMLIMIT_HOLD, .capacity = 4, .period_ns = SECOND
	};
	struct shmlimit_rule lease = { .struct_size = sizeof(lease),
		                       .algorithm = SHMLIMIT_LEASE,
		                       .capacity = 4,
		                       .refill = 1,
		                       .period_ns = SECOND };

	for (int op = 0; op < OPS; op++) {
		struct shmlimit_place place = { .struct_size = sizeof(place) };
		int on_empty, held, leased, counted;

		l = unit_create("full", &options);
		counted = unit_rule(l, "counted", 100, 1, SECOND);
		held = shmlimit_rule_set(l, "held", &hold);
		leased = shmlimit_rule_set(l, "leased", &lease);
		if (shmlimit_enter(at_time(l, T0), held, "new", 3, &place, NULL) != SHMLIMIT_ALLOWED)
			bail("enter");
		shmlimit_reset(l, SHMLIMIT_ALL_RULES, NULL, 0);
		on_empty = happened(op, counted, held, leased, &place);
		shmlimit_reset(l, SHMLIMIT_ALL_RULES, NULL, 0);
		(void)occupy();
		is(happened(op, counted, held, leased, &place), on_empty,
		   "a full table answers %s as an empty one does", names[op]);
		shmlimit_close(l);
	}
}

static void reclaim(void)
{
	int rule, allowed = 0;

	l = make(SHMLIMIT_FULL_DENY);
	rule = unit_rule(l, "r", 1, 1, SECOND);
	/* Sixteen keys at a time, each gone when its token has come back: a thousand keys in sixteen slots. */
	for (int i = 0; i < 1000; i++)
		allowed += take(rule, i, 1, T0 + (uint64_t)(i / 16) * SECOND, NULL) == SHMLIMIT_ALLOWED;
	is(allowed, 1000, "keys that are gone leave their slots to others, all of them");
	is(unit_counters(l, rule).no_slot, 0, "no key goes without a slot where old keys have refilled");
	is(unit_slots(l, SHMLIMIT_SLOT_REFILLED, T0 + 100 * SECOND), 16,
	   "a slot whose funnel is full is known as such");
	is(shmlimit_verify(unit_name, NULL, 0), 0, "the segment is sound");
	shmlimit_close(l);
}

static void rules_apart(void)
{
	int slow, fast;
	struct shmlimit_result r;

	l = make(SHMLIMIT_FULL_EVICT);
	slow = unit_rule(l, "slow", 1, 1, 3600 * SECOND);
	fast = unit_rule(l, "fast", 1, 1, SECOND);
	for (int i = 0; i < 15; i++)
		take(slow, i, 1, T0, NULL);
	take(fast, 0, 1, T0, NULL);
	take(slow, 100, 1, T0, NULL);
	shmlimit_peek(at_time(l, T0), fast, &(int){ 0 }, sizeof(int), 1, &r);
	is(r.remaining, 1, "soonest is measured in time, whatever the rules: the fast rule's key goes first");
	shmlimit_close(l);
}

int main(void)
{
	evict();
	allow_and_deny();
	has_happened();
	reclaim();
	rules_apart();
	return tap_done();
}
