/*
 * held: see held.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "held.h"

static int enter(struct shmlimit *limiter, const struct shmlimit_request *q, size_t key,
                 struct shmlimit_gate_held *held, struct shmlimit_result *r)
{
	struct shmlimit_hold hold = { .struct_size = sizeof(hold) };
	int answer = shmlimit_enter(limiter, q->rule, q->key, q->key_len, q->cost, &hold, r);

	/* A rule that is off, or in a dry run that would have denied, gives no place. */
	if (answer == SHMLIMIT_ALLOWED && hold.value != 0)
		held->places[held->count++] = (struct shmlimit_gate_place){ (uint32_t)key, q->rule, hold };
	return answer;
}

/* Leave the last places held, which are those of this request's keys. */
static void leave_all(struct shmlimit *limiter, const struct shmlimit_request *requests, const size_t *keys, size_t n,
                      struct shmlimit_gate_held *held)
{
	while (held->count > 0) {
		const struct shmlimit_gate_place *place = &held->places[held->count - 1];
		size_t i = 0;

		while (i < n && keys[i] != place->key)
			i++;
		if (i == n)
			return;
		(void)shmlimit_leave(limiter, place->rule, requests[i].key, requests[i].key_len, &place->hold);
		held->count--;
	}
}

int held_take(struct multi_take *take, int resumed, struct shmlimit *limiter, struct shmlimit_global *global,
              const struct shmlimit_request *requests, const size_t *keys, size_t n, struct shmlimit_gate_held *held,
              size_t *failed, struct shmlimit_result *results)
{
	int answer = SHMLIMIT_ALLOWED;

	for (size_t i = 0; !resumed && i < n && answer == SHMLIMIT_ALLOWED; i++)
		if (shmlimit_rule_algorithm(limiter, requests[i].rule) == SHMLIMIT_HOLD) {
			*failed = i;
			answer = enter(limiter, &requests[i], keys[i], held, &results[i]);
		}
	if (resumed)
		answer = multi_take_continue(take, global, requests, failed, results);
	else if (answer == SHMLIMIT_ALLOWED)
		answer = multi_take_begin(take, limiter, global, requests, n, SHMLIMIT_HOLD, failed, results);
	if (answer != SHMLIMIT_ALLOWED && answer != MULTI_TAKE_PENDING)
		leave_all(limiter, requests, keys, n, held);
	return answer;
}
