/*
 * enter: hold a place.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "decide.h"
#include "export.h"

static int enter(const struct shmlimit *l, int rule, const void *key, size_t key_len, uint64_t cost, struct when when,
                 struct shmlimit_hold *hold, struct shmlimit_result *r)
{
	struct hold_request asked = { 0 };
	struct request q = { .op = OP_ENTER, .amount = 1, .when = when, .hold = &asked };
	int answer;

	if (l == NULL || cost != 1 || hold == NULL || hold->struct_size < sizeof(*hold))
		return -EINVAL;
	answer = decide_call(l, rule, key, key_len, &q, r);
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
