/*
 * held: see held.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>

#include "held.h"

/* The limits of a request that have places. */
struct chosen {
	size_t n, list[SHMLIMIT_REQUESTS_MAX];
	struct shmlimit_request requests[SHMLIMIT_REQUESTS_MAX];
	struct shmlimit_place places[SHMLIMIT_REQUESTS_MAX];
	struct shmlimit_result results[SHMLIMIT_REQUESTS_MAX];
};

/* Returns 0, or an error of the request *q->failed. */
static int choose(const struct multi_request *q, struct chosen *c)
{
	c->n = 0;
	for (size_t i = 0; i < q->n; i++) {
		int algorithm = shmlimit_rule_algorithm(q->limiter, q->requests[i].rule);

		*q->failed = i;
		if (algorithm != SHMLIMIT_HOLD && q->requests[i].share != 0)
			return algorithm < 0 ? algorithm : -EOPNOTSUPP;
		if (algorithm != SHMLIMIT_HOLD)
			continue;
		if (q->requests[i].cost != 1)
			return -EINVAL;
		/*
		 * This process leaves it, whatever happens, or is dead. A place that is not bound
		 * ends with its period.
		 */
		c->places[c->n] =
			(struct shmlimit_place){ .struct_size = sizeof(c->places[0]), .flags = SHMLIMIT_PLACE_BIND };
		c->requests[c->n] = q->requests[i];
		c->requests[c->n].place = &c->places[c->n];
		c->list[c->n++] = i;
	}
	return 0;
}

/* All or none, in one step where they have shares. *entered: a bit for each that has places. */
static int enter(const struct multi_request *q, const size_t *keys, struct shmlimit_gate_held *held, uint32_t *entered)
{
	struct chosen c;
	size_t at = 0;
	struct multi_request m = { .limiter = q->limiter, .requests = c.requests, .failed = &at, .results = c.results };
	int answer = choose(q, &c);

	if (answer != 0 || c.n == 0)
		return answer != 0 ? answer : SHMLIMIT_ALLOWED;
	m.n = c.n;
	answer = multi_take_here(&m);
	if (answer != SHMLIMIT_ALLOWED)
		*q->failed = c.list[at];
	if (answer == SHMLIMIT_DENIED)
		q->results[c.list[at]] = c.results[at];
	for (size_t i = 0; answer == SHMLIMIT_ALLOWED && i < c.n; i++) {
		q->results[c.list[i]] = c.results[i];
		*entered |= UINT32_C(1) << c.list[i];
		/* A rule that is off, or in a dry run that would have denied, gives no place. */
		if (c.places[i].value != 0)
			held->places[held->count++] = (struct shmlimit_gate_place){ (uint32_t)keys[c.list[i]],
				                                                    c.requests[i].rule, c.places[i] };
	}
	return answer;
}

/* Leave the last places held, which are those of this request's keys. */
static void leave_all(const struct multi_request *q, const size_t *keys, struct shmlimit_gate_held *held)
{
	while (held->count > 0) {
		struct shmlimit_gate_place *place = &held->places[held->count - 1];
		size_t i = 0;

		while (i < q->n && keys[i] != place->key)
			i++;
		if (i == q->n)
			return;
		place->place.flags |= SHMLIMIT_PLACE_UNTIMED;
		(void)shmlimit_leave(q->limiter, place->rule, q->requests[i].key, q->requests[i].key_len,
		                     &place->place);
		held->count--;
	}
}

/* One request of this host alone, as most are. */
static int is_plain(const struct multi_request *q)
{
	int algorithm = q->n == 1 && q->requests[0].share == 0
	                        ? shmlimit_rule_algorithm(q->limiter, q->requests[0].rule)
	                        : SHMLIMIT_HOLD;

	return algorithm != SHMLIMIT_HOLD && algorithm != SHMLIMIT_LEASE;
}

int held_take(struct multi_take *take, int resumed, const struct multi_request *q, const size_t *keys,
              struct shmlimit_gate_held *held)
{
	uint32_t entered = 0;
	int answer;

	if (!resumed && is_plain(q))
		return multi_take_here(q);
	answer = resumed ? multi_take_continue(take, q) : enter(q, keys, held, &entered);
	if (!resumed && answer == SHMLIMIT_ALLOWED)
		answer = multi_take_begin(take, q, entered);
	if (answer != SHMLIMIT_ALLOWED && answer != MULTI_TAKE_PENDING)
		leave_all(q, keys, held);
	return answer;
}

void held_untimed(struct shmlimit_gate_held *held)
{
	for (uint32_t i = 0; held != NULL && i < held->count; i++)
		held->places[i].place.flags |= SHMLIMIT_PLACE_UNTIMED;
}
