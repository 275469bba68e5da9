/*
 * breaker: see breaker.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <string.h>

#include "backoff.h"
#include "breaker.h"

/*
 * A closed breaker is tested again by a single call after this time. Other processes wait for that
 * call.
 */
#define CLOSED_NS UINT64_C(60000000000)

int breaker_begin(struct breaker *b, struct shmlimit *limiter, const struct url *url)
{
	struct shmlimit_rule there = { .struct_size = sizeof(there) }, rule = {
		.struct_size = sizeof(rule),
		.algorithm = SHMLIMIT_LEASE,
		.capacity = 1,
		.refill = 1,
		.period_ns = 1000000000,
	};
	int id = shmlimit_rule_find(limiter, BREAKER_RULE);

	if (id < 0)
		id = shmlimit_rule_set(limiter, BREAKER_RULE, &rule);
	if (id < 0)
		return id;
	if (shmlimit_rule_get(limiter, id, &there) == 0 && there.algorithm != SHMLIMIT_LEASE)
		return -EBUSY;
	*b = (struct breaker){ .limiter = limiter, .rule = id };
	url_text(url, b->key);
	return 0;
}

int breaker_permits(struct breaker *b)
{
	struct shmlimit_lease lease = { .struct_size = sizeof(lease) };
	size_t len = strlen(b->key);
	int answer = shmlimit_peek(b->limiter, b->rule, b->key, len, 1, NULL);

	if (answer == SHMLIMIT_ALLOWED || answer < 0)
		return answer < 0 ? answer : BREAKER_CLOSED;
	answer = shmlimit_lease_take(
		b->limiter, b->rule, b->key, len,
		&(struct shmlimit_lease_request){ .struct_size = sizeof(struct shmlimit_lease_request),
	                                          .cost = 1,
	                                          .lease_ns = CLOSED_NS,
	                                          .claim_ns = b->claim_ns },
		&lease, NULL);
	switch (answer) {
	case SHMLIMIT_LEASE_ASK:
	case SHMLIMIT_ALLOWED: /* it closed a moment ago: the token is taken, so this call is the probe */
		b->probing = 1;
		return BREAKER_PROBE;
	case SHMLIMIT_LEASE_WAIT:
		return BREAKER_WAIT;
	case SHMLIMIT_DENIED:
		return BREAKER_OPEN;
	default:
		return answer;
	}
}

uint64_t breaker_open_for_ns(const struct breaker *b)
{
	struct shmlimit_result r = { 0 };
	int answer = shmlimit_peek(b->limiter, b->rule, b->key, strlen(b->key), 1, &r);

	/* A breaker that was never used has no slot, so reset_after_ns has no meaning. */
	return answer == SHMLIMIT_DENIED ? r.reset_after_ns : 0;
}

void breaker_succeeded(struct breaker *b)
{
	b->failures = 0;
	if (b->probing)
		shmlimit_lease_deposit(b->limiter, b->rule, b->key, strlen(b->key), 1, 0, 0, CLOSED_NS, NULL);
	b->probing = 0;
}

void breaker_failed(struct breaker *b, uint64_t rng)
{
	size_t len = strlen(b->key);

	if (++b->failures < b->open_after && !b->probing)
		return;
	b->failures = 0;
	/*
	 * Several processes may meet the same failure: the one that takes the token opens the
	 * breaker.
	 */
	if (!b->probing && shmlimit_take(b->limiter, b->rule, b->key, len, 1, NULL) != SHMLIMIT_ALLOWED)
		return;
	b->probing = 0;
	shmlimit_lease_count(b->limiter, SHMLIMIT_LEASE_BREAKER_OPENINGS, 1);
	shmlimit_lease_deny(b->limiter, b->rule, b->key, len, 1, backoff_ns(b->open_ns, rng), NULL);
}

void breaker_not_called(struct breaker *b)
{
	if (b->probing)
		shmlimit_lease_abandon(b->limiter, b->rule, b->key, strlen(b->key));
	b->probing = 0;
}
