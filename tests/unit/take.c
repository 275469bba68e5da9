/*
 * take, peek, refund, reset: what each operation does to a funnel, reports and counts; the modes of a rule and the
 * segment's switch.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>

#include "unit.h"

#define T0 (1000 * SECOND)

static struct shmlimit *l;
static struct shmlimit_result r;

static int take(int rule, const char *key, uint64_t cost, uint64_t at)
{
	return shmlimit_take(at_time(l, at), rule, key, strlen(key), cost, &r);
}

static void facts(uint64_t limit, uint64_t remaining, uint64_t retry, uint64_t reset, const char *law)
{
	if (!ok(r.limit == limit && r.remaining == remaining && r.wait_ns == 0 && r.retry_after_ns == retry &&
	                r.reset_after_ns == reset,
	        "%s", law))
		diag("limit %llu remaining %llu wait %llu retry %llu reset %llu", (unsigned long long)r.limit,
		     (unsigned long long)r.remaining, (unsigned long long)r.wait_ns,
		     (unsigned long long)r.retry_after_ns, (unsigned long long)r.reset_after_ns);
}

static void article(void)
{
	int rule = unit_rule(l, "reply", 15, 30, 60 * SECOND);

	is(take(rule, "laoqian", 1, T0), SHMLIMIT_ALLOWED, "the article's first request is allowed");
	facts(15, 14, 0, 2 * SECOND, "the first request reports limit 15, remaining 14, no retry, and full in 2 s");
	for (int i = 0; i < 14; i++)
		take(rule, "laoqian", 1, T0);
	facts(15, 0, 0, 30 * SECOND, "fifteen empty the funnel");
	is(take(rule, "laoqian", 1, T0), SHMLIMIT_DENIED, "the sixteenth is denied");
	facts(15, 0, 2 * SECOND, 30 * SECOND, "a denied request reports a retry after 2 s");
	is(take(rule, "laoqian", 4, T0 + SECOND), SHMLIMIT_DENIED, "four do not fit after a second");
	facts(15, 0, 7 * SECOND, 29 * SECOND, "four tokens are reported to fit after seven more seconds");
	is(take(rule, "laoqian", 4, T0 + 8 * SECOND), SHMLIMIT_ALLOWED, "four tokens fit when it was reported");
	is(take(rule, "other", 15, T0), SHMLIMIT_ALLOWED, "another key has a funnel of its own");
}

static void costs(void)
{
	int rule = unit_rule(l, "costs", 10, 1, SECOND);
	struct shmlimit_counters before = unit_counters(l, rule), after;

	is(take(rule, "k", 0, T0), SHMLIMIT_ALLOWED, "a cost of 0 is allowed");
	facts(10, 10, 0, 0, "a cost of 0 reports a full funnel");
	after = unit_counters(l, rule);
	is(after.allowed + after.claims, before.allowed + before.claims,
	   "a cost of 0 counts nothing and claims nothing");
	is(take(rule, "k", 11, T0), SHMLIMIT_DENIED, "a cost above the capacity is denied");
	facts(10, 10, UINT64_MAX, 0, "for ever, and leaves the funnel full");
	is(take(rule, "k", UINT64_MAX, T0), SHMLIMIT_DENIED, "the largest cost is denied");
	is(unit_counters(l, rule).claims, 0, "a denied newcomer claims no slot");
	is(take(rule, "k", 10, T0), SHMLIMIT_ALLOWED, "the whole capacity may be taken at once");
	facts(10, 0, 0, 10 * SECOND, "a take of the whole capacity leaves nothing");
	is(shmlimit_take(at_time(l, T0), rule, "k", 1, 1, NULL), SHMLIMIT_DENIED, "nobody needs the result");
}

static void peek_and_refund(void)
{
	int rule = unit_rule(l, "refund", 10, 1, SECOND);

	take(rule, "k", 6, T0);
	is(shmlimit_peek(at_time(l, T0), rule, "k", 1, 5, &r), SHMLIMIT_DENIED, "a peek answers as a take would");
	facts(10, 4, SECOND, 6 * SECOND, "a peek that is denied has the facts of a take");
	is(shmlimit_peek(at_time(l, T0), rule, "k", 1, 4, &r), SHMLIMIT_ALLOWED,
	   "a peek that would be allowed is allowed");
	facts(10, 4, 0, 6 * SECOND, "a peek that is allowed takes nothing");
	is(shmlimit_refund(at_time(l, T0), rule, "k", 1, 2, &r), SHMLIMIT_ALLOWED, "tokens can be given back");
	facts(10, 6, 0, 4 * SECOND, "tokens that were given back are there again");
	is(shmlimit_refund(at_time(l, T0 + SECOND / 2), rule, "k", 1, 1, &r), SHMLIMIT_ALLOWED,
	   "tokens can be given back at any time");
	facts(10, 7, 0, 5 * SECOND / 2, "a refund leaves the fraction of a token that had come back");
	shmlimit_refund(at_time(l, T0 + SECOND / 2), rule, "k", 1, UINT64_MAX, &r);
	facts(10, 10, 0, 0, "a refund fills up to the capacity and no further");
	shmlimit_refund(at_time(l, T0), rule, "new", 3, 5, &r);
	facts(10, 10, 0, 0, "a refund to a key never seen leaves it full");
	is(unit_counters(l, rule).claims, 1, "a refund to a key never seen claims no slot");
}

static void reset(void)
{
	int one = unit_rule(l, "reset.one", 1, 1, SECOND), two = unit_rule(l, "reset.two", 1, 1, SECOND);

	take(one, "a", 1, T0);
	take(one, "b", 1, T0);
	take(two, "a", 1, T0);
	is(shmlimit_reset(l, one, "never seen", 10), 0, "a key that has no slot is not found by a reset");
	is(shmlimit_reset(l, one, "a", 1), 1, "one key of one rule is reset");
	is(take(one, "a", 1, T0), SHMLIMIT_ALLOWED, "a key that was reset is full again");
	is(take(one, "b", 1, T0), SHMLIMIT_DENIED, "other keys of the rule are not reset");
	is(take(two, "a", 1, T0), SHMLIMIT_DENIED, "the key under another rule is not reset");
	is(shmlimit_reset(l, one, NULL, 0), 2, "all keys of a rule are reset");
	is(take(one, "b", 1, T0), SHMLIMIT_ALLOWED, "keys that were reset are full again");
	is(take(two, "a", 1, T0), SHMLIMIT_DENIED, "those of other rules are not");
	ok(shmlimit_reset(l, SHMLIMIT_ALL_RULES, NULL, 0) >= 2, "all keys of all rules are reset");
	is(take(two, "a", 1, T0), SHMLIMIT_ALLOWED, "keys that were reset are full again");
}

/* The fingerprint of the one live slot of a rule. */
static uint64_t fingerprint_of(int rule)
{
	struct shmlimit_slot slot = { .struct_size = sizeof(slot) };

	for (uint64_t i = 0; shmlimit_slot(l, i, &slot, T0) == 0; i++)
		if (slot.state == SHMLIMIT_SLOT_LIVE && slot.rule == rule)
			return slot.fingerprint;
	bail("no slot is live");
}

static void reset_fingerprint(void)
{
	int one = unit_rule(l, "finger.one", 1, 1, SECOND), two = unit_rule(l, "finger.two", 1, 1, SECOND);
	uint64_t a;

	take(one, "a", 1, T0);
	a = fingerprint_of(one);
	take(one, "b", 1, T0);
	take(two, "a", 1, T0);
	is(shmlimit_reset_fingerprint(l, two, a), 0, "a fingerprint is one rule's");
	is(shmlimit_reset_fingerprint(l, one, a), 1, "a key is reset by its fingerprint");
	is(take(one, "a", 1, T0), SHMLIMIT_ALLOWED, "a key that was reset by its fingerprint is full");
	is(take(one, "b", 1, T0), SHMLIMIT_DENIED, "a reset by fingerprint leaves other keys of the rule as they were");
	is(take(two, "a", 1, T0), SHMLIMIT_DENIED, "a reset by fingerprint leaves other rules as they were");
	is(shmlimit_reset_fingerprint(l, one, a), 1, "a key that took again is found again by its fingerprint");
	is(shmlimit_reset_fingerprint(l, one, a), 0, "a key that has no slot is not found by its fingerprint");
	is(shmlimit_reset_fingerprint(l, one, 0), -EINVAL, "no key has the fingerprint 0");
	is(shmlimit_reset_fingerprint(l, one, UINT64_C(1) << 48), -EINVAL, "a fingerprint has 48 bits");
	is(shmlimit_reset_fingerprint(l, SHMLIMIT_ALL_RULES, a), -ESRCH, "a fingerprint is of a rule");
	is(shmlimit_reset_fingerprint(l, 60, a), -ESRCH, "a fingerprint is of a rule that exists");
	is(shmlimit_reset_fingerprint(NULL, one, a), -EINVAL, "a fingerprint is of a segment");
	shmlimit_reset(l, SHMLIMIT_ALL_RULES, NULL, 0);
}

static void keys(void)
{
	int rule = unit_rule(l, "keys", 1, 1, SECOND);
	static unsigned char longest[SHMLIMIT_KEY_MAX];

	is(shmlimit_take(at_time(l, T0), rule, "a\0b", 3, 1, NULL), SHMLIMIT_ALLOWED, "a key may hold a NUL");
	is(shmlimit_take(at_time(l, T0), rule, "a\0c", 3, 1, NULL), SHMLIMIT_ALLOWED, "bytes after a NUL count");
	is(shmlimit_take(at_time(l, T0), rule, "a", 1, 1, NULL), SHMLIMIT_ALLOWED, "the length of a key counts");
	is(shmlimit_take(at_time(l, T0), rule, "a\0b", 3, 1, NULL), SHMLIMIT_DENIED, "the same bytes are the same key");
	is(shmlimit_take(at_time(l, T0), rule, longest, sizeof(longest), 1, NULL), SHMLIMIT_ALLOWED,
	   "1024 bytes are a key");
	longest[sizeof(longest) - 1] = 1;
	is(shmlimit_take(at_time(l, T0), rule, longest, sizeof(longest), 1, NULL), SHMLIMIT_ALLOWED,
	   "keys of 1024 bytes that differ in the last one differ");
}

static void modes(void)
{
	struct shmlimit_rule rule = { .struct_size = sizeof(rule), .capacity = 2, .refill = 1, .period_ns = SECOND };
	int id = shmlimit_rule_set(l, "modes", &rule);
	struct shmlimit_counters c;

	take(id, "k", 2, T0);
	rule.mode = SHMLIMIT_DRY_RUN;
	is(shmlimit_rule_set(l, "modes", &rule), id, "the mode of a rule can be changed");
	is(take(id, "k", 1, T0), SHMLIMIT_ALLOWED, "a dry run allows what it would deny");
	facts(2, 0, SECOND, 2 * SECOND, "a dry run reports a denial by the time to retry after");
	c = unit_counters(l, id);
	is(c.shadow_denied, 1, "a dry run counts apart what it would deny");
	is(c.allowed, 1, "a dry run does not count as allowed what it would deny");
	is(take(id, "k", 1, T0 + SECOND), SHMLIMIT_ALLOWED, "what it would allow it takes");
	facts(2, 0, 0, 2 * SECOND, "from the funnel");
	is(shmlimit_peek(at_time(l, T0 + SECOND), id, "k", 1, 1, &r), SHMLIMIT_ALLOWED,
	   "a peek answers as that take would");

	rule.mode = SHMLIMIT_OFF;
	shmlimit_rule_set(l, "modes", &rule);
	is(take(id, "k", 2, T0 + SECOND), SHMLIMIT_ALLOWED, "a rule that is off allows everything");
	facts(2, 2, 0, 0, "a rule that is off reports a full funnel");
	rule.mode = SHMLIMIT_ENFORCE;
	shmlimit_rule_set(l, "modes", &rule);
	is(take(id, "k", 1, T0 + SECOND), SHMLIMIT_DENIED, "switched on again it finds its funnels as they were");

	is(shmlimit_enable(l, 0), 0, "the whole segment can be switched off");
	is(take(id, "k", 2, T0 + SECOND), SHMLIMIT_ALLOWED, "a segment that is off allows everything");
	is(take(id, "k", 3, T0 + SECOND), SHMLIMIT_ALLOWED, "at any cost");
	is(shmlimit_take(at_time(l, T0), 63, "k", 1, 1, NULL), -ESRCH,
	   "in a segment that is off, an unknown rule is an error");
	is(shmlimit_enable(l, 1), 0, "a segment can be switched on again");
	is(take(id, "k", 1, T0 + SECOND), SHMLIMIT_DENIED, "with all funnels as they were");
}

/* A rule that denies by its mode: whatever its algorithm, whatever is asked. */
static void blocked(uint32_t algorithm)
{
	struct shmlimit_rule rule = { .struct_size = sizeof(rule),
		                      .algorithm = algorithm,
		                      .mode = SHMLIMIT_BLOCK,
		                      .capacity = algorithm == SHMLIMIT_WARMUP ? 0 : 2,
		                      .refill = 2,
		                      .period_ns = SECOND,
		                      .warmup_ns = algorithm == SHMLIMIT_WARMUP ? 10 * SECOND : 0 };
	struct shmlimit_lease lease = { .struct_size = sizeof(lease) };
	struct shmlimit_place hold = { .struct_size = sizeof(hold) };
	struct shmlimit_count count = { .struct_size = sizeof(count) };
	struct shmlimit_counters c;
	char name[16];
	int id, n = 3;

	snprintf(name, sizeof(name), "block%u", algorithm);
	if (algorithm == SHMLIMIT_COUNTER)
		rule.refill = 0;
	id = shmlimit_rule_set(l, name, &rule);
	ok(id >= 0, "algorithm %u: a rule can block", algorithm);
	is(take(id, "k", 1, T0), SHMLIMIT_DENIED, "a take is denied");
	facts(0, 0, UINT64_MAX, 0, "a limit of 0, nothing is left, and no retry ever fits");
	is(shmlimit_peek(at_time(l, T0), id, "k", 1, 1, &r), SHMLIMIT_DENIED, "a peek of a blocked key is denied");
	is(shmlimit_reserve(at_time(l, T0), id, "k", 1, 1, SECOND, &r), SHMLIMIT_DENIED, "a reservation is denied");
	is(shmlimit_acquire(at_clock(l), id, "k", 1, 1, SECOND, &r), SHMLIMIT_DENIED, "nobody waits for it");
	if (algorithm == SHMLIMIT_LEASE)
		is(shmlimit_lease_take(
			   at_time(l, T0), id, "k", 1,
			   &(struct shmlimit_lease_request){ .struct_size = sizeof(struct shmlimit_lease_request),
		                                             .cost = 1,
		                                             .lease_ns = SECOND,
		                                             .claim_ns = SECOND },
			   &lease, &r),
		   SHMLIMIT_DENIED, "nobody asks a backend");
	if (algorithm == SHMLIMIT_COUNTER)
		is(shmlimit_count(at_time(l, T0), id, "k", 1,
		                  &(struct shmlimit_count_request){
					  .struct_size = sizeof(struct shmlimit_count_request), .n = 1, .bound = 0 },
		                  &count),
		   SHMLIMIT_DENIED, "nothing is counted");
	if (algorithm == SHMLIMIT_HOLD)
		is(shmlimit_enter(at_time(l, T0), id, "k", 1, &hold, &r), SHMLIMIT_DENIED, "nobody enters");
	n += (algorithm == SHMLIMIT_LEASE) + (algorithm == SHMLIMIT_COUNTER) + (algorithm == SHMLIMIT_HOLD);
	c = unit_counters(l, id);
	ok(c.denied == (uint64_t)n && c.allowed == 0 && c.claims == 0, "denials are counted, and no slot is claimed");
	if (algorithm != SHMLIMIT_HOLD) {
		is(shmlimit_charge(at_time(l, T0), id, "k", 1, 1, &r), SHMLIMIT_ALLOWED, "a charge does nothing");
		facts(0, 0, UINT64_MAX, 0,
		      "a charge says so, too: a limit of 0, nothing is left, and no retry ever fits");
		is(shmlimit_refund(at_time(l, T0), id, "k", 1, 1, &r), SHMLIMIT_ALLOWED, "a refund does nothing");
		facts(0, 0, 0, 0, "a refund gave nothing back to a limit of 0");
	}
	shmlimit_enable(l, 0);
	is(take(id, "k", 1, T0), SHMLIMIT_ALLOWED, "a segment that is off allows even that");
	shmlimit_enable(l, 1);
	rule.mode = SHMLIMIT_ENFORCE;
	shmlimit_rule_set(l, name, &rule);
	if (algorithm != SHMLIMIT_LEASE)
		is(take(id, "k", 1, T0), SHMLIMIT_ALLOWED, "enforced again it allows what there is");
}

static void blocks(void)
{
	int rule = unit_rule(l, "beside", 1, 1, SECOND), block = shmlimit_rule_find(l, "block0");
	struct shmlimit_rule mode = { .struct_size = sizeof(mode) };
	struct shmlimit_request both[2] = { { .rule = rule, .key = "k", .key_len = 1, .cost = 1 },
		                            { .rule = block, .key = "k", .key_len = 1, .cost = 1 } };
	size_t denied_by;

	shmlimit_rule_get(l, block, &mode);
	mode.mode = SHMLIMIT_BLOCK;
	shmlimit_rule_set(l, "block0", &mode);
	is(shmlimit_take_all(at_time(l, T0), both, 2, &denied_by, NULL), SHMLIMIT_DENIED, "of two limits one blocks");
	is((int)denied_by, 1, "it is the one that denies");
	is(take(rule, "k", 1, T0), SHMLIMIT_ALLOWED, "from the other nothing was taken");
	mode.mode = SHMLIMIT_BLOCK + 1;
	is(shmlimit_rule_set(l, "block0", &mode), -EINVAL, "there is no mode beyond");
}

static void own_clock(void)
{
	int rule = unit_rule(l, "clock", 1, 1, 86400 * SECOND);
	uint64_t before = shmlimit_now(at_clock(l)), after;

	is(shmlimit_take(l, rule, "k", 1, 1, &r), SHMLIMIT_ALLOWED, "the limiter has a clock of its own");
	is(shmlimit_take(l, rule, "k", 1, 1, &r), SHMLIMIT_DENIED, "by the limiter's clock a day is a day");
	after = shmlimit_now(l);
	ok(after >= before, "the limiter's clock does not go back");
	ok(r.retry_after_ns <= 86400 * SECOND && r.retry_after_ns >= 86400 * SECOND - (after - before),
	   "a retry time is measured from the limiter's clock");
	is(shmlimit_refund(l, rule, "k", 1, 1, NULL), SHMLIMIT_ALLOWED, "a refund reads the limiter's clock");
	is(shmlimit_peek(l, rule, "k", 1, 1, NULL), SHMLIMIT_ALLOWED, "a peek reads the limiter's clock");
	is(shmlimit_reserve(l, rule, "k", 1, 1, 0, NULL), SHMLIMIT_ALLOWED, "a reservation reads the limiter's clock");
	is(shmlimit_reserve(l, rule, "k", 1, 1, 0, NULL), SHMLIMIT_DENIED,
	   "a reservation on the limiter's clock takes");
}

/* Other tests create and destroy segments during the walk: only ours is certain to be found, once, in order. */
static void walk(void)
{
	char name[SHMLIMIT_NAME_MAX + 1] = "", last[SHMLIMIT_NAME_MAX + 1] = "";
	int met = 0, ordered = 1, more;

	while ((more = shmlimit_next(name)) == 1) {
		met += strcmp(name, unit_name) == 0;
		ordered = ordered && strcmp(last, name) < 0;
		memcpy(last, name, sizeof(last));
	}
	is(more, 0, "the walk over all segments ends");
	is(met, 1, "the walk over all segments meets ours once");
	ok(ordered, "the walk over all segments is in the order of the names");
	is_str(name, "", "the walk over all segments ends with no name");
	is(shmlimit_next(NULL), -EINVAL, "the walk over all segments needs a place for the name");
}

int main(void)
{
	struct shmlimit_options options = { .struct_size = sizeof(options) };

	l = unit_create("take", &options);
	article();
	costs();
	peek_and_refund();
	reset();
	reset_fingerprint();
	keys();
	modes();
	for (uint32_t algorithm = SHMLIMIT_FUNNEL; algorithm <= LAST_ALGORITHM; algorithm++)
		blocked(algorithm);
	blocks();
	own_clock();
	walk();
	is(shmlimit_verify(unit_name, NULL, 0), 0, "the segment is sound after all this");
	shmlimit_close(l);
	return tap_done();
}
