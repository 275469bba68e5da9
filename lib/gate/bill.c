/*
 * bill: what a request cost, once that is known.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "gate_request.h"
#include "export.h"

static void report_charge(struct segment_ref *ref, const struct spec_limit *limit, uint64_t tokens, int error)
{
	char text[SHMLIMIT_NAME_MAX + SHMLIMIT_RULE_NAME_MAX + 200];

	if (!segment_ref_may_report(ref, limit->rule))
		return;
	snprintf(text, sizeof(text),
	         "segment %.*s: rule %.*s: not all tokens that a request used are charged (%" PRIu64 "): %s",
	         SHMLIMIT_NAME_MAX, ref->spec->segment, SHMLIMIT_RULE_NAME_MAX, ref->spec->rules[limit->rule].name,
	         tokens,
	         error != -ENOSPC ? shmlimit_strerror(error)
	                          : "charge_max= or the rule's max-wait allows no more debt, or there is no slot");
	segment_ref_report_rate(ref, text);
}

/* Change what was paid to what was used. Returns 0, an error, or -ENOSPC: a part was charged. */
static int change(struct shmlimit *l, int rule, const struct key *key, const struct shmlimit_limit *limit,
                  uint64_t paid, uint64_t used)
{
	struct shmlimit_request q = { .rule = rule, .key = key->bytes, .key_len = key->length, .limit = limit };
	struct shmlimit_result r = { .retry_after_ns = 0 };
	int answer;

	if (used < paid) {
		q.cost = paid - used;
		return shmlimit_decide(l, SHMLIMIT_REFUND, &q, NULL);
	}
	q.cost = used - paid;
	answer = shmlimit_decide(l, SHMLIMIT_CHARGE, &q, &r);
	return answer >= 0 && r.retry_after_ns != 0 ? -ENOSPC : answer;
}

static void settle(struct shmlimit_gate *gate, struct view *view, const struct shmlimit_gate_key *from,
                   struct shmlimit_gate_bill *bill, uint64_t used)
{
	const struct spec_limit *limit = &gate->spec.limits[from->limit];
	struct shmlimit_limit own;
	struct key key;
	int answer = -ESRCH, has_own = rate_find(&gate->rates, &gate->segment_ref, limit, from, &own);

	if (used == bill->paid)
		return;
	if (has_own > 0)
		own.max_wait_ns = limit->charge_max_ns != 0 ? limit->charge_max_ns
		                                            : debt_of_charges(own.capacity, own.refill, own.period_ns);
	key_make(limit, from->bytes, from->length, &key);
	/* BOUND: as a take, a missing rule may have been set again under another id. */
	for (int again = 0; answer == -ESRCH && again < 2; again++) {
		if (again)
			segment_ref_find_rules(&gate->segment_ref, view);
		answer = change(view->limiter, __atomic_load_n(&view->ids[limit->rule], __ATOMIC_RELAXED), &key,
		                has_own > 0 ? &own : NULL, bill->paid, used);
	}
	bill->paid = used;
	if (answer < 0)
		report_charge(&gate->segment_ref, limit, used, answer);
}

/*
 * Is it to be settled now? A request that goes on only when it has used a whole estimate more than
 * it has paid.
 */
static int is_due(const struct shmlimit_gate *gate, const struct shmlimit_gate_key *from,
                  const struct shmlimit_gate_bill *bill, uint64_t used, int goes_on)
{
	uint64_t estimate = from->cost != 0 ? from->cost : gate->spec.limits[from->limit].cost;

	if (used == SHMLIMIT_GATE_NOT_KNOWN)
		return 0;
	return !goes_on || (used > bill->paid && used - bill->paid >= estimate);
}

static int settle_due(struct shmlimit_gate *gate, const struct shmlimit_gate_key *keys, size_t n, const uint64_t *used,
                      struct shmlimit_gate_held *held, int goes_on)
{
	struct view *view = NULL;
	int error, entered = 0;

	if (gate == NULL || ((keys == NULL || used == NULL) && n > 0) || held == NULL ||
	    held->struct_size < HELD_SIZE_1_0 || held->bill_count > SHMLIMIT_REQUESTS_MAX)
		return -EINVAL;
	for (uint32_t i = 0; i < held->bill_count; i++)
		if (!gate_has_key(gate, keys, n, held->bills[i].key))
			return -EINVAL;
	for (uint32_t i = 0; i < held->bill_count; i++) {
		struct shmlimit_gate_bill *bill = &held->bills[i];

		if (!is_due(gate, &keys[bill->key], bill, used[bill->key], goes_on))
			continue;
		if (!entered)
			view = segment_ref_enter(&gate->segment_ref, &error);
		entered = 1;
		if (view != NULL && view->number == held->segment)
			settle(gate, view, &keys[bill->key], bill, used[bill->key]);
	}
	if (entered)
		segment_ref_leave();
	return 0;
}

EXPORT int shmlimit_gate_charge(struct shmlimit_gate *gate, const struct shmlimit_gate_key *keys, size_t n,
                                const uint64_t *used, struct shmlimit_gate_held *held)
{
	return settle_due(gate, keys, n, used, held, 1);
}

EXPORT int shmlimit_gate_settle(struct shmlimit_gate *gate, const struct shmlimit_gate_key *keys, size_t n,
                                const uint64_t *used, struct shmlimit_gate_held *held)
{
	return settle_due(gate, keys, n, used, held, 0);
}
