/*
 * places: enter a place of a key, hold it for another period, give it back.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "export.h"
#include "fast_hold.h"

__attribute__((noinline)) static int enter(const struct shmlimit *l, int rule, const void *key, size_t key_len,
                                           uint64_t cost, struct when when, struct shmlimit_hold *hold,
                                           struct shmlimit_result *r)
{
	struct hold_request asked = { 0 };
	uint32_t failed = 0;
	int answer;
	uint64_t hash;

	if (l == NULL || cost != 1 || hold == NULL || hold->struct_size < sizeof(*hold))
		return -EINVAL;
	answer = decide_check(l, key, key_len, OP_ENTER);
	if (answer != 0)
		return answer;
	hash = hash_bytes(l->secret, (uint32_t)rule, key, key_len);
	if (!when.given)
		when = when_read(l);
	answer = fast_enter(l, (uint32_t)rule, hash, when, &asked, &failed, r);
	if (answer == FIRST_NOT)
		answer = decide_rest(l,
		                     &(struct request){ .op = OP_ENTER,
		                                        .rule = (uint32_t)rule,
		                                        .hash = hash,
		                                        .key = { key, key_len },
		                                        .amount = 1,
		                                        .when = when,
		                                        .hold = &asked },
		                     failed, r);
	if (answer < 0)
		return answer;
	hold->cell = asked.place.cell;
	hold->value = answer == SHMLIMIT_ALLOWED ? asked.place.value : 0;
	return answer;
}

EXPORT int shmlimit_enter(struct shmlimit *l, int rule, const void *key, size_t key_len, uint64_t cost,
                          struct shmlimit_hold *hold, struct shmlimit_result *r)
{
	return enter(l, rule, key, key_len, cost, when_clock(), hold, r);
}

EXPORT int shmlimit_enter_at(struct shmlimit *l, int rule, const void *key, size_t key_len, uint64_t cost,
                             uint64_t now_ns, struct shmlimit_hold *hold, struct shmlimit_result *r)
{
	return enter(l, rule, key, key_len, cost, when_given(now_ns), hold, r);
}

static int renew(const struct shmlimit *l, int rule, const void *key, size_t key_len, struct when when,
                 struct shmlimit_hold *hold)
{
	struct hold_request asked = { 0 };
	struct request q = { .op = OP_RENEW, .when = when, .hold = &asked };
	int answer;

	if (l == NULL || hold == NULL || hold->struct_size < sizeof(*hold))
		return -EINVAL;
	asked.place = (struct hold_place){ hold->cell, hold->value };
	answer = decide_call(l, rule, key, key_len, &q, NULL);
	if (answer < 0)
		return answer;
	hold->value = asked.place.value;
	return asked.done || hold->value == 0 ? 0 : -ETIME;
}

EXPORT int shmlimit_renew(struct shmlimit *l, int rule, const void *key, size_t key_len, struct shmlimit_hold *hold)
{
	return renew(l, rule, key, key_len, when_clock(), hold);
}

EXPORT int shmlimit_renew_at(struct shmlimit *l, int rule, const void *key, size_t key_len, uint64_t now_ns,
                             struct shmlimit_hold *hold)
{
	return renew(l, rule, key, key_len, when_given(now_ns), hold);
}

__attribute__((noinline)) static int leave(const struct shmlimit *l, int rule, const void *key, size_t key_len,
                                           struct when when, const struct shmlimit_hold *hold)
{
	struct hold_request asked = { 0 };
	int answer;
	uint64_t hash;

	if (l == NULL || hold == NULL || hold->struct_size < sizeof(*hold))
		return -EINVAL;
	asked.place = (struct hold_place){ hold->cell, hold->value };
	answer = decide_check(l, key, key_len, OP_LEAVE);
	if (answer != 0)
		return answer;
	hash = hash_bytes(l->secret, (uint32_t)rule, key, key_len);
	if (!when.given)
		when = when_read(l);
	answer = fast_leave(l, (uint32_t)rule, hash, when, &asked);
	if (answer == FIRST_NOT)
		answer = decide_rest(l,
		                     &(struct request){ .op = OP_LEAVE,
		                                        .rule = (uint32_t)rule,
		                                        .hash = hash,
		                                        .key = { key, key_len },
		                                        .when = when,
		                                        .hold = &asked },
		                     0, NULL);
	if (answer < 0)
		return answer;
	return asked.done || hold->value == 0 ? 0 : -ETIME;
}

EXPORT int shmlimit_leave(struct shmlimit *l, int rule, const void *key, size_t key_len,
                          const struct shmlimit_hold *hold)
{
	return leave(l, rule, key, key_len, when_clock(), hold);
}

EXPORT int shmlimit_leave_at(struct shmlimit *l, int rule, const void *key, size_t key_len, uint64_t now_ns,
                             const struct shmlimit_hold *hold)
{
	return leave(l, rule, key, key_len, when_given(now_ns), hold);
}
