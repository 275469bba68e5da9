/*
 * held: see held.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>

#include "held.h"

static int enter(struct shmlimit *limiter, const struct shmlimit_request *q, size_t key,
                 struct shmlimit_gate_held *held, struct shmlimit_result *r)
{
	/*
	 * This process leaves it, whatever happens, or is dead. A place that is not bound ends with
	 * its period.
	 */
	struct shmlimit_place place = { .struct_size = sizeof(place), .flags = SHMLIMIT_PLACE_BIND };
	struct shmlimit_request asked = *q;
	int answer = -EINVAL;

	asked.place = &place;
	if (q->cost == 1)
		answer = shmlimit_decide(limiter, SHMLIMIT_TAKE, &asked, r);
	/* A rule that is off, or in a dry run that would have denied, gives no place. */
	if (answer != SHMLIMIT_ALLOWED || place.value == 0)
		return answer;
	held->places[held->count++] = (struct shmlimit_gate_place){ (uint32_t)key, q->rule, place };
	return answer;
}

/* Leave the last places held, which are those of this request's keys. */
static void leave_all(const struct multi_request *q, const size_t *keys, struct shmlimit_gate_held *held)
{
	while (held->count > 0) {
		const struct shmlimit_gate_place *place = &held->places[held->count - 1];
		size_t i = 0;

		while (i < q->n && keys[i] != place->key)
			i++;
		if (i == q->n)
			return;
		(void)shmlimit_leave(q->limiter, place->rule, q->requests[i].key, q->requests[i].key_len,
		                     &place->place);
		held->count--;
	}
}

/* One request of this host alone, as most are. */
static int is_plain(const struct multi_request *q)
{
	int algorithm = q->n == 1 ? shmlimit_rule_algorithm(q->limiter, q->requests[0].rule) : SHMLIMIT_HOLD;

	return algorithm != SHMLIMIT_HOLD && algorithm != SHMLIMIT_LEASE;
}

int held_take(struct multi_take *take, int resumed, const struct multi_request *q, const size_t *keys,
              struct shmlimit_gate_held *held)
{
	uint32_t entered = 0;
	int answer = SHMLIMIT_ALLOWED;

	if (!resumed && is_plain(q))
		return multi_take_here(q);
	for (size_t i = 0; !resumed && i < q->n && answer == SHMLIMIT_ALLOWED; i++)
		if (shmlimit_rule_algorithm(q->limiter, q->requests[i].rule) == SHMLIMIT_HOLD) {
			*q->failed = i;
			entered |= UINT32_C(1) << i;
			answer = enter(q->limiter, &q->requests[i], keys[i], held, &q->results[i]);
		}
	if (resumed)
		answer = multi_take_continue(take, q);
	else if (answer == SHMLIMIT_ALLOWED)
		answer = multi_take_begin(take, q, entered);
	if (answer != SHMLIMIT_ALLOWED && answer != MULTI_TAKE_PENDING)
		leave_all(q, keys, held);
	return answer;
}
