/*
 * call: one call of the library on the segment under test, as data; and the
 * states that it may find there, which are made by calls too.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_CRASH_CALL_H
#define TESTS_CRASH_CALL_H

#include "../by_limit.h"
#include "scene.h"

/* In tables of calls, what a call does not have is left out. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

enum act {
	NOTHING,
	TAKE,
	TAKE_SOME, /* of this many tokens as many as fit */
	PEEK,
	REFUND,
	CHARGE,
	RESERVE,
	ACQUIRE,
	THROTTLE,
	TAKE_ALL,
	LEASE,   /* for 5 hours, the claim being one of an hour */
	DEPOSIT, /* this many tokens, of which one is spent */
	DENY,
	GIVE_UP,
	COUNT, /* this many more, for 5 hours, 5 at most */
	COUNT_DOWN,
	COUNT_RESTART, /* ... but the time begins again, and what fits is added */
	ENTER,         /* this many places, of which the last can be renewed and left */
	ENTER_BY,      /* one place, by a bound of this many */
	ENTER_BOUND,   /* this many, each bound to the process that calls */
	ENTER_SHARED,  /* a place of "l", and one of the key with a share of 1, each bound as that */
	RENEW,
	BIND, /* to the process that calls */
	LEAVE,
	PAUSE, /* the key, for this many hours */
	RESET_KEY,
	RESET_RULE,
	RESET_ALL,
	RESET_FINGERPRINT,
	RULE_SET,
	RULE_REMOVE,
	RULE_FIND,
	RULE_GET,
	SWITCH,
	GROW,
	CREATE,
	OPEN,
	OPEN_READ_ONLY,
	DESTROY,
	NEXT,
	INFO,
	SLOT,
	COUNTERS_OF,
	VERIFY,
	/* Only to prepare. */
	FILL,        /* this many new keys of "other", which take one token each */
	HOLD,        /* the same, for a year */
	ABANDON,     /* a claim, killed while its slot is tentative */
	SET_KILLED,  /* rule_set, killed when the table is still of the old version */
	TAKE_KILLED, /* a take, killed when it has changed the table once */
	PASS,        /* time passes: this many eighths of the time after which the table is to be swept */
	SWEEP_KILLED /* a take, killed when it has moved on the sweep for the amount-th time */
};

struct call {
	enum act act;
	const char *key;
	uint64_t amount;  /* tokens; FILL, HOLD: keys; SWITCH: on; THROTTLE: capacity; GROW: slots;
	                    RULE_SET: 1 + another algorithm */
	int64_t shift_ns; /* the time given is so much later than the scene's */
	int rule;
	struct shmlimit_rule params; /* RULE_SET: what differs from the rule "subject" */
};

static int call_make(const void *arg);

static inline uint64_t call_ns(const struct call *c)
{
	return scene.now_ns + (uint64_t)c->shift_ns;
}

/* Rules are set as "subject" except for what the call says. */
static inline int call_rule_set(const struct call *c)
{
	struct shmlimit_rule params = scene_subject();

	if (c->params.capacity != 0)
		params.capacity = c->params.capacity;
	if (c->params.refill != 0)
		params.refill = c->params.refill;
	params.mode = c->params.mode;
	params.law = c->params.law;
	params.least = c->params.least;
	if (c->amount != 0) {
		params.algorithm = (uint32_t)c->amount - 1;
		return rule_replace(scene.l, "subject", &params, 0, when_given(call_ns(c)));
	}
	return shmlimit_rule_set(at_time(scene.l, call_ns(c)), c->key == NULL ? "subject" : c->key, &params);
}

/* Both of "subject" and of "other", all or none. */
static inline int call_take_all(const struct call *c)
{
	struct shmlimit_request requests[] = {
		{ SUBJECT, 0, c->key, strlen(c->key), c->amount },
		{ OTHER, 0, c->key, strlen(c->key), c->amount },
	};

	return shmlimit_take_all(at_time(scene.l, call_ns(c)), requests, 2, NULL, NULL);
}

/* A minute apart, so that it is certain which is full again soonest. */
static inline int call_fill(const struct call *c)
{
	int rule = c->act == HOLD ? HELD : OTHER;
	char key[32];

	for (uint64_t i = 0; i < c->amount; i++) {
		int n = snprintf(key, sizeof(key), "n%d", (int)i);
		uint64_t at_ns = call_ns(c) - i * (HOUR_NS / 60);
		int answer = shmlimit_take(at_time(scene.l, at_ns), rule, key, (size_t)n, 1, NULL);

		if (answer != SHMLIMIT_ALLOWED)
			return answer;
	}
	return 0;
}

/* What a claimer leaves that is killed before it commits. */
static inline int call_abandon(const struct call *c)
{
	struct table_claim claim;
	struct table_place place;
	struct rule_view view;
	struct generation tables;
	struct table_key key;

	if (rule_load(scene.l, (uint32_t)c->rule, &view) != 0)
		return -ESRCH;
	key = table_key(hash_bytes(scene.l->secret, (uint32_t)c->rule, c->key, strlen(c->key)), (uint32_t)c->rule,
	                rule_version(&view));
	generation_read(scene.l, &tables);
	claim = (struct table_claim){ &key, &tables, &view, when_given(call_ns(c)) };
	return table_place(scene.l, &claim, &place) == CLAIM_DONE ? 0 : -EXFULL;
}

/* A writer, killed when the new version is in force and the table still that of the old one. */
static inline int call_set_killed(const struct call *c)
{
	const uint64_t *published = &scene.l->rules[SUBJECT].published;
	uint64_t before = load_relaxed(published);
	struct call set = *c;
	struct tracee t = { 0 };

	set.act = RULE_SET;
	tracee_start(&t, call_make, &set);
	while (tracee_step(&t) && load_relaxed(published) == before)
		;
	tracee_kill(&t);
	munmap(t.said, sizeof(*t.said));
	return load_relaxed(published) != before ? 0 : -ESRCH;
}

/* A take that swapped its slot's word and nothing more: of a window whose cells are missing. */
static inline int call_take_killed(const struct call *c)
{
	struct layout_slot before[SLOTS];
	struct call take = *c;
	struct tracee t = { 0 };
	int changed;

	memcpy(before, scene.l->tables[0].slots, sizeof(before));
	take.act = TAKE;
	tracee_start(&t, call_make, &take);
	while (tracee_step(&t) && memcmp(before, scene.l->tables[0].slots, sizeof(before)) == 0)
		;
	changed = memcmp(before, scene.l->tables[0].slots, sizeof(before)) != 0;
	tracee_kill(&t);
	munmap(t.said, sizeof(*t.said));
	return changed ? 0 : -ESRCH;
}

/* All later calls, and what looks at the keys, have a later time. */
static inline int call_pass(const struct call *c)
{
	uint64_t ns = c->amount * (scene.l->header->sweep_after_ns / 8);

	scene.now_ns += ns;
	scene.look_ns += ns;
	return 0;
}

static inline int call_sweep_killed(const struct call *c)
{
	const struct layout_sweep *sweep = &scene.l->header->sweep;
	struct call take = { TAKE, c->key, 1 };
	uint64_t last = load_relaxed(&sweep->cursor), moves = 0;
	struct tracee t = { 0 };

	tracee_start(&t, call_make, &take);
	while (moves < c->amount && tracee_step(&t)) {
		moves += load_relaxed(&sweep->cursor) != last;
		last = load_relaxed(&sweep->cursor);
	}
	tracee_kill(&t);
	munmap(t.said, sizeof(*t.said));
	return moves == c->amount ? 0 : -ESRCH;
}

/* The verbs of leases. */
static inline int call_lease(const struct call *c)
{
	struct shmlimit_lease lease = { .struct_size = sizeof(lease) };
	size_t len = strlen(c->key);
	struct shmlimit_result r;

	switch (c->act) {
	case LEASE:
		return shmlimit_lease_take(
			at_time(scene.l, call_ns(c)), c->rule, c->key, len,
			&(struct shmlimit_lease_request){ .struct_size = sizeof(struct shmlimit_lease_request),
		                                          .cost = c->amount,
		                                          .lease_ns = 5 * HOUR_NS,
		                                          .claim_ns = HOUR_NS },
			&lease, &r);
	case DEPOSIT:
		return shmlimit_lease_deposit(at_time(scene.l, call_ns(c)), c->rule, c->key, len, c->amount, 1, 0,
		                              5 * HOUR_NS, &r);
	case DENY:
		return shmlimit_lease_deny(at_time(scene.l, call_ns(c)), c->rule, c->key, len, c->amount, HOUR_NS, &r);
	default:
		return shmlimit_lease_abandon(at_time(scene.l, call_ns(c)), c->rule, c->key, len);
	}
}

static inline int call_open(uint32_t flags)
{
	struct shmlimit *l = NULL;
	int error = shmlimit_open(stage_name, flags, NULL, &l);

	shmlimit_close(l);
	return error;
}

static inline int call_create(void)
{
	struct shmlimit_options options = { .struct_size = sizeof(options), .slots = SLOTS, .rules = RULES };
	struct shmlimit *l = NULL;
	int error = shmlimit_create(stage_name, &options, &l);

	shmlimit_close(l);
	return error;
}

/* Introspection. */
static inline int call_look(const struct call *c)
{
	struct shmlimit_counters counters = { .struct_size = sizeof(counters) };
	struct shmlimit_rule rule = { .struct_size = sizeof(rule) };
	struct shmlimit_info info = { .struct_size = sizeof(info) };
	struct shmlimit_slot slot = { .struct_size = sizeof(slot) };
	char name[SHMLIMIT_NAME_MAX + 1] = "";

	switch (c->act) {
	case RULE_FIND:
		return shmlimit_rule_find(scene.l, "other");
	case RULE_GET:
		return shmlimit_rule_get(scene.l, c->rule, &rule);
	case NEXT:
		return shmlimit_next(name);
	case INFO:
		return shmlimit_info(scene.l, &info);
	case SLOT:
		return shmlimit_slot(scene.l, c->amount, &slot, call_ns(c));
	case COUNTERS_OF:
		return shmlimit_counters(scene.l, c->rule, &counters);
	default:
		return shmlimit_verify(stage_name, NULL, 0);
	}
}

static inline int call_shared(const struct call *c)
{
	struct shmlimit_place places[2] = { { .struct_size = sizeof(places[0]), .flags = SHMLIMIT_PLACE_BIND },
		                            { .struct_size = sizeof(places[1]), .flags = SHMLIMIT_PLACE_BIND } };
	struct shmlimit_request q[2] = {
		{ .rule = c->rule, .key = "l", .key_len = 1, .cost = 1, .place = &places[0] },
		{ .rule = c->rule, .key = c->key, .cost = 1, .share = SHMLIMIT_SHARE_ONE, .place = &places[1] }
	};

	q[1].key_len = strlen(c->key);
	return shmlimit_take_all(at_time(scene.l, call_ns(c)), q, 2, NULL, NULL);
}

/* The verbs of places. */
static inline int call_hold(const struct call *c)
{
	static struct shmlimit_place hold = { .struct_size = sizeof(hold) };
	struct shmlimit_limit limit = { .struct_size = sizeof(limit),
		                        .flags = SHMLIMIT_LIMIT_PLACES,
		                        .capacity = c->amount };
	struct shmlimit_request by = { .rule = c->rule, .key = c->key, .cost = 1, .limit = &limit, .place = &hold };
	size_t len = strlen(c->key);
	int answer = 0;

	by.key_len = len;
	switch (c->act) {
	case ENTER_BY:
		return shmlimit_decide(at_time(scene.l, call_ns(c)), SHMLIMIT_TAKE, &by, NULL);
	case ENTER:
	case ENTER_BOUND:
		hold.flags = c->act == ENTER_BOUND ? SHMLIMIT_PLACE_BIND : 0;
		for (uint64_t i = 0; i < c->amount && answer == 0; i++)
			answer = shmlimit_enter(at_time(scene.l, call_ns(c)), c->rule, c->key, len, &hold, NULL);
		return answer;
	case RENEW:
		return shmlimit_renew(at_time(scene.l, call_ns(c)), c->rule, c->key, len, &hold);
	case BIND:
		return shmlimit_bind(at_time(scene.l, call_ns(c)), c->rule, c->key, len, &hold, 0);
	default:
		return shmlimit_leave(at_time(scene.l, call_ns(c)), c->rule, c->key, len, &hold);
	}
}

/* How many keys a reset counts depends on where it was killed: only errors are compared. */
static inline int error_of(int answer)
{
	return answer < 0 ? answer : 0;
}

static inline int call_reset_fingerprint(const struct call *c)
{
	uint64_t hash = hash_bytes(scene.l->secret, (uint32_t)c->rule, c->key, strlen(c->key));

	return error_of(shmlimit_reset_fingerprint(scene.l, c->rule, tag_fingerprint(tag_pack(hash, 0, 0))));
}

/* Make the call. Of the form that tracees want. */
static int call_make(const void *arg)
{
	const struct call *c = arg;
	size_t len = c->key == NULL ? 0 : strlen(c->key);
	struct shmlimit *l = scene.l;
	struct shmlimit_result r;
	int64_t reply[5];

	switch (c->act) {
	case NOTHING:
		return 0;
	case TAKE:
		return shmlimit_take(at_time(l, call_ns(c)), c->rule, c->key, len, c->amount, &r);
	case TAKE_SOME:
		return by_limit(at_time(l, call_ns(c)), SHMLIMIT_TAKE_SOME, c->rule, c->key, len, c->amount, NULL, &r);
	case PEEK:
		return shmlimit_peek(at_time(l, call_ns(c)), c->rule, c->key, len, c->amount, &r);
	case REFUND:
		return shmlimit_refund(at_time(l, call_ns(c)), c->rule, c->key, len, c->amount, &r);
	case CHARGE:
		return shmlimit_charge(at_time(l, call_ns(c)), c->rule, c->key, len, c->amount, &r);
	case RESERVE:
		return shmlimit_reserve(at_time(l, call_ns(c)), c->rule, c->key, len, c->amount, DAY_NS, &r);
	case ACQUIRE:
		return shmlimit_acquire(at_clock(l), c->rule, c->key, len, c->amount, 0, &r);
	case THROTTLE:
		return shmlimit_throttle(at_clock(l), c->key, len, c->amount, 1, 3600, 1, reply);
	case TAKE_ALL:
		return call_take_all(c);
	case LEASE:
	case DEPOSIT:
	case DENY:
	case GIVE_UP:
		return call_lease(c);
	case COUNT:
		return shmlimit_count(
			at_time(l, call_ns(c)), c->rule, c->key, len,
			&(struct shmlimit_count_request){ .struct_size = sizeof(struct shmlimit_count_request),
		                                          .n = (int64_t)c->amount,
		                                          .bound = 5,
		                                          .ttl_ns = 5 * HOUR_NS },
			NULL);
	case COUNT_DOWN:
		return shmlimit_count(
			at_time(l, call_ns(c)), c->rule, c->key, len,
			&(struct shmlimit_count_request){ .struct_size = sizeof(struct shmlimit_count_request),
		                                          .n = -(int64_t)c->amount,
		                                          .bound = 5,
		                                          .ttl_ns = 5 * HOUR_NS },
			NULL);
	case COUNT_RESTART:
		return shmlimit_count(
			at_time(l, call_ns(c)), c->rule, c->key, len,
			&(struct shmlimit_count_request){ .struct_size = sizeof(struct shmlimit_count_request),
		                                          .flags = SHMLIMIT_COUNT_SATURATE | SHMLIMIT_COUNT_RESTART,
		                                          .n = (int64_t)c->amount,
		                                          .bound = 5,
		                                          .ttl_ns = 5 * HOUR_NS },
			NULL);
	case ENTER:
	case ENTER_BY:
	case ENTER_BOUND:
	case RENEW:
	case BIND:
	case LEAVE:
		return call_hold(c);
	case PAUSE:
		return shmlimit_pause(at_time(l, call_ns(c)), c->rule, c->key, len, c->amount * HOUR_NS);
	case ENTER_SHARED:
		return call_shared(c);
	case RESET_KEY:
		return error_of(shmlimit_reset(l, c->rule, c->key, len));
	case RESET_RULE:
		return error_of(shmlimit_reset(l, c->rule, NULL, 0));
	case RESET_ALL:
		return error_of(shmlimit_reset(l, SHMLIMIT_ALL_RULES, NULL, 0));
	case RESET_FINGERPRINT:
		return call_reset_fingerprint(c);
	case RULE_SET:
		return call_rule_set(c);
	case RULE_REMOVE:
		return shmlimit_rule_remove(l, "subject");
	case SWITCH:
		return shmlimit_enable(l, (uint32_t)c->amount);
	case GROW:
		return shmlimit_grow(at_time(l, call_ns(c)), c->amount);
	case CREATE:
		return call_create();
	case OPEN:
		return call_open(0);
	case OPEN_READ_ONLY:
		return call_open(SHMLIMIT_OPEN_READ_ONLY);
	case DESTROY:
		return shmlimit_destroy(stage_name);
	case FILL:
	case HOLD:
		return call_fill(c);
	case ABANDON:
		return call_abandon(c);
	case SET_KILLED:
		return call_set_killed(c);
	case TAKE_KILLED:
		return call_take_killed(c);
	case PASS:
		return call_pass(c);
	case SWEEP_KILLED:
		return call_sweep_killed(c);
	default:
		return call_look(c);
	}
}

#endif
