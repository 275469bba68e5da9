/*
 * places: see places.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "bundle.h"
#include "places.h"

static int enter(struct shmlimit *limiter, const struct shmlimit_request *q, size_t key, struct shmlimit_gate_held *held,
                 struct shmlimit_result *r)
{
	struct shmlimit_hold hold = { .struct_size = sizeof(hold) };
	int answer = shmlimit_enter(limiter, q->rule, q->key, q->key_len, q->cost, &hold, r);

	/* A rule that is off, or in a dry run that would have denied, gives no place. */
	if (answer == SHMLIMIT_ALLOWED && hold.value != 0)
		held->places[held->count++] = (struct shmlimit_gate_place){ (uint32_t)key, q->rule, hold };
	return answer;
}

/* Enter the HOLD rules' places. The other requests go to `others`, and their numbers to `which`. */
static int enter_all(struct shmlimit *limiter, const struct shmlimit_request *requests, const size_t *keys, size_t n,
                     struct shmlimit_gate_held *held, size_t *failed, struct shmlimit_result *results,
                     struct shmlimit_request *others, size_t *which, size_t *count)
{
	int answer = SHMLIMIT_ALLOWED;

	for (size_t i = 0; i < n && answer == SHMLIMIT_ALLOWED; i++) {
		if (shmlimit_rule_algorithm(limiter, requests[i].rule) == SHMLIMIT_HOLD) {
			*failed = i;
			answer = enter(limiter, &requests[i], keys[i], held, &results[i]);
		} else {
			which[*count] = i;
			others[(*count)++] = requests[i];
		}
	}
	return answer;
}

/* Leave the places from number `first` on. */
static void leave_from(struct shmlimit *limiter, const struct shmlimit_request *requests, const size_t *keys,
                       struct shmlimit_gate_held *held, uint32_t first)
{
	while (held->count > first) {
		const struct shmlimit_gate_place *place = &held->places[--held->count];
		size_t i = 0;

		while (keys[i] != place->key)
			i++;
		(void)shmlimit_leave(limiter, place->rule, requests[i].key, requests[i].key_len, &place->hold);
	}
}

int places_take(struct shmlimit *limiter, struct handles *handles, const struct shmlimit_request *requests,
                const size_t *keys, size_t n, struct shmlimit_gate_held *held, size_t *failed,
                struct shmlimit_result *results)
{
	struct shmlimit_request others[SHMLIMIT_REQUESTS_MAX];
	struct shmlimit_result found[SHMLIMIT_REQUESTS_MAX];
	size_t which[SHMLIMIT_REQUESTS_MAX], count = 0, at = 0;
	uint32_t before = held->count;
	int answer = enter_all(limiter, requests, keys, n, held, failed, results, others, which, &count);

	if (answer == SHMLIMIT_ALLOWED && count > 0) {
		answer = bundle_take(limiter, handles, others, count, &at, found);
		*failed = which[at];
		for (size_t i = 0; i < count && answer >= 0; i++)
			results[which[i]] = found[i];
	}
	if (answer != SHMLIMIT_ALLOWED)
		leave_from(limiter, requests, keys, held, before);
	return answer;
}
