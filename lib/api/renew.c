/*
 * renew: hold a place for another period.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "decide.h"
#include "export.h"

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
