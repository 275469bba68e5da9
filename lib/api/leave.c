/*
 * leave: give a place back.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "export.h"
#include "fast_hold.h"

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
