/*
 * leave: give a place back.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "decide.h"
#include "export.h"

static int leave(const struct shmlimit *l, int rule, const void *key, size_t key_len, struct when when,
                 const struct shmlimit_hold *hold)
{
	struct hold_request asked = { 0 };
	struct request q = { .op = OP_LEAVE, .when = when, .hold = &asked };
	int answer;

	if (l == NULL || hold == NULL || hold->struct_size < sizeof(*hold))
		return -EINVAL;
	asked.place = (struct hold_place){ hold->cell, hold->value };
	answer = decide_call(l, rule, key, key_len, &q, NULL);
	if (answer < 0)
		return answer;
	return asked.done || hold->value == 0 ? 0 : -ETIME;
}

EXPORT int shmlimit_leave(struct shmlimit *l, int rule, const void *key, size_t key_len, const struct shmlimit_hold *hold)
{
	return leave(l, rule, key, key_len, when_clock(), hold);
}

EXPORT int shmlimit_leave_at(struct shmlimit *l, int rule, const void *key, size_t key_len, uint64_t now_ns,
                             const struct shmlimit_hold *hold)
{
	return leave(l, rule, key, key_len, when_given(now_ns), hold);
}
