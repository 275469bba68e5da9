/*
 * claim: keys that have no slot get one, beside others that want it too (I1, I2,
 * I3, I4, I9).
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "stage.h"

#define CAPACITY 2
#define TOKEN_NS 1000

static const struct shmlimit_rule rule = { .capacity = CAPACITY, .refill = 1, .period_ns = TOKEN_NS };

static struct shmlimit *set_empty(void)
{
	return stage_set(SHMLIMIT_FULL_DENY, 0, rule);
}

static void act_one_key(unsigned who)
{
	(void)who;
	take(1, 1);
	take(1, 1);
}

static void judge_one_key(void)
{
	law_total(1, CAPACITY);
	law_denials(CAPACITY);
	law_sound();
}

static const struct scene one_key = {
	.title = "a new key is admitted exactly its capacity, and has one slot",
	.actors = 3,
	.mortals = 2,
	.set = set_empty,
	.act = act_one_key,
	.judge = judge_one_key,
};

static struct shmlimit *set_crowded(void)
{
	return stage_set(SHMLIMIT_FULL_DENY, SLOTS - 3, rule);
}

static void act_two_keys(unsigned who)
{
	take(1 + who % 2, 2);
	take(2 - who % 2, 1);
	take(1 + who % 2, 1);
}

static void judge_two_keys(void)
{
	law_total(1, CAPACITY);
	law_total(2, CAPACITY);
	law_denials(CAPACITY);
	law_sound();
}

static const struct scene two_keys = {
	.title = "two new keys that race for the last three slots are admitted exactly their capacity",
	.actors = 3,
	.mortals = 2,
	.set = set_crowded,
	.act = act_two_keys,
	.judge = judge_two_keys,
};

static struct shmlimit *set_one_place(void)
{
	return stage_set(SHMLIMIT_FULL_DENY, SLOTS - 1, rule);
}

static struct shmlimit *set_two_places(void)
{
	return stage_set(SHMLIMIT_FULL_DENY, SLOTS - 2, rule);
}

static void judge_refilled(void)
{
	law_burst(1, CAPACITY, 1, TOKEN_NS, 2);
	law_burst(2, CAPACITY, 1, TOKEN_NS, 2);
	law_sound();
}

static const struct scene one_place = {
	.title = "a slot goes from key to key as they refill, and gives neither more than its due",
	.actors = 3,
	.mortals = 2,
	.away_ns = { TOKEN_NS, CAPACITY *TOKEN_NS, 10 * TOKEN_NS },
	.set = set_one_place,
	.act = act_two_keys,
	.judge = judge_refilled,
};

static const struct scene two_places = {
	.title = "two slots go between two keys and three actors, and give none more than its due",
	.actors = 3,
	.mortals = 2,
	.away_ns = { TOKEN_NS, CAPACITY *TOKEN_NS, 10 * TOKEN_NS },
	.set = set_two_places,
	.act = act_two_keys,
	.judge = judge_refilled,
};

static struct shmlimit *set_evicting(void)
{
	return stage_set(SHMLIMIT_FULL_EVICT, SLOTS - 1, rule);
}

/* A key that is pushed out has its capacity once more; keys that hold their slots for days are left alone. */
static void judge_evicting(void)
{
	struct shmlimit_counters c = unit_counters(stage.l, stage.rule);
	struct shmlimit_result r = { 0 };
	uint64_t taken = 0;

	for (unsigned i = 0; i < stage.n; i++)
		taken += was_taken(&stage.calls[i]) ? (uint64_t)stage.calls[i].tokens : 0;
	if (taken > (2 + c.evictions) * CAPACITY)
		blame("%" PRIu64 " taken of two keys, with %" PRIu64 " evictions", taken, c.evictions);
	for (uint32_t key = 0; key < SLOTS - 1; key++)
		if (shmlimit_peek(stage.l, stage.held, &key, sizeof(key), 1, &r) != SHMLIMIT_DENIED)
			blame("key %u, which is full again last, was evicted", key);
	law_sound();
}

static const struct scene evicting = {
	.title = "an evicted key is the one that is full soonest, and it has its capacity once more",
	.actors = 3,
	.set = set_evicting,
	.act = act_two_keys,
	.judge = judge_evicting,
};

static struct shmlimit *set_allowing(void)
{
	return stage_set(SHMLIMIT_FULL_ALLOW, SLOTS - 1, rule);
}

/* Of two keys one may have no slot: its calls are allowed and nothing is written. */
static void judge_allowing(void)
{
	uint64_t taken[3] = { 0 }, without = unit_counters(stage.l, stage.rule).no_slot;

	for (unsigned i = 0; i < stage.n; i++)
		if (was_taken(&stage.calls[i]))
			taken[stage.calls[i].key] += (uint64_t)stage.calls[i].tokens;
	if (taken[1] + taken[2] > 2 * CAPACITY + without * CAPACITY)
		blame("%" PRIu64 " and %" PRIu64 " taken, %" PRIu64 " times without a slot", taken[1], taken[2],
		      without);
	law_sound();
}

static const struct scene allowing = {
	.title = "a key that finds no slot, and is therefore allowed, is counted",
	.actors = 3,
	.mortals = 2,
	.set = set_allowing,
	.act = act_two_keys,
	.judge = judge_allowing,
};

/* While a call looks at its slot, a key loses it to another, which exhausts it: no reason to deny the first. */
static struct shmlimit *set_losing(void)
{
	struct shmlimit *l = stage_set(SHMLIMIT_FULL_ALLOW, SLOTS - 1,
	                               (struct shmlimit_rule){ .capacity = 10, .refill = 1, .period_ns = SECOND });
	uint32_t key = 1;

	(void)shmlimit_take(l, stage.rule, &key, sizeof(key), 1, NULL);
	stage.peaceful = 1;
	return l;
}

/* The same of a window, whose first try is another. */
static struct shmlimit *set_losing_window(void)
{
	struct shmlimit *l =
		stage_set(SHMLIMIT_FULL_ALLOW, SLOTS - 1,
	                  (struct shmlimit_rule){ .algorithm = SHMLIMIT_WINDOW, .capacity = 10, .period_ns = SECOND });
	uint32_t key = 1;

	(void)shmlimit_take(l, stage.rule, &key, sizeof(key), 1, NULL);
	stage.peaceful = 1;
	return l;
}

static void act_losing(unsigned who)
{
	uint32_t key = 1;

	if (who != 0) {
		take(1, 1);
		take(1, 1);
		return;
	}
	actor_calls();
	if (shmlimit_reset(stage.l, stage.rule, &key, sizeof(key)) < 0)
		blame("reset failed");
	take(2, 10);
}

static void judge_losing(void)
{
	for (unsigned i = 0; i < stage.n; i++)
		if (stage.calls[i].answer == SHMLIMIT_DENIED)
			blame("key %u was denied", stage.calls[i].key);
	law_sound();
}

static const struct scene losing = {
	.title = "no caller is denied by what another key left in the slot that it looked at",
	.actors = 2,
	.set = set_losing,
	.act = act_losing,
	.judge = judge_losing,
};

static const struct scene losing_window = {
	.title = "no key with a window is denied by what another key left in its slot",
	.actors = 2,
	.set = set_losing_window,
	.act = act_losing,
	.judge = judge_losing,
};

/* The same of a lease: the key that lost its slot may ask the backend, which denied another key. */
static struct shmlimit *set_losing_lease(void)
{
	struct shmlimit *l =
		stage_set(SHMLIMIT_FULL_ALLOW, SLOTS - 1,
	                  (struct shmlimit_rule){
				  .algorithm = SHMLIMIT_LEASE, .capacity = 10, .refill = 1, .period_ns = SECOND });
	uint32_t key = 1;

	(void)shmlimit_lease_deposit(l, stage.rule, &key, sizeof(key), 10, 1, 0, SECOND, NULL);
	stage.peaceful = 1;
	return l;
}

static void act_losing_lease(unsigned who)
{
	struct shmlimit_lease lease = { .struct_size = sizeof(lease) };
	uint32_t key = 1, other = 2;
	int answer;

	if (who != 0) {
		struct call *c = call_begin(key, 1);

		actor_calls();
		answer = shmlimit_lease_take(
			stage.l, stage.rule, &key, sizeof(key),
			&(struct shmlimit_lease_request){
				.struct_size = sizeof(struct shmlimit_lease_request), .cost = 1, .lease_ns = SECOND },
			&lease, NULL);
		call_end(c, answer == SHMLIMIT_LEASE_ASK ? SHMLIMIT_ALLOWED : answer);
		return;
	}
	actor_calls();
	if (shmlimit_reset(stage.l, stage.rule, &key, sizeof(key)) < 0)
		blame("reset failed");
	actor_calls();
	if (shmlimit_lease_deny(stage.l, stage.rule, &other, sizeof(other), 1, SECOND, NULL) != SHMLIMIT_DENIED)
		blame("the denial of key %u was not kept", other);
}

static const struct scene losing_lease = {
	.title = "no key with a lease is denied by what the backend denied the key that has its slot now",
	.actors = 2,
	.set = set_losing_lease,
	.act = act_losing_lease,
	.judge = judge_losing,
};

int main(void)
{
	play(&one_key);
	play(&two_keys);
	play(&one_place);
	play(&two_places);
	play(&evicting);
	play(&allowing);
	play(&losing);
	play(&losing_window);
	play(&losing_lease);
	return tap_done();
}
