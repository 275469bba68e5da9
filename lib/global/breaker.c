/*
 * breaker: see breaker.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <string.h>

#include "breaker.h"
#include "policy.h"

/* Calls, and the time, after which a closed one is tried again by a single call: while it runs others wait for it. */
#define CALLS (UINT64_C(1) << 20)
#define CLOSED_NS UINT64_C(60000000000)

int breaker_begin(struct breaker *b, struct shmlimit *limiter, const struct url *url)
{
	struct shmlimit_rule rule = {
		.struct_size = sizeof(rule),
		.algorithm = SHMLIMIT_LEASE,
		.capacity = CALLS,
		.count = 1,
		.period_ns = 1000000000,
	};
	int id = shmlimit_rule_find(limiter, BREAKER_RULE);

	if (id < 0)
		id = shmlimit_rule_set(limiter, BREAKER_RULE, &rule);
	if (id < 0)
		return id;
	*b = (struct breaker){ .limiter = limiter, .rule = id };
	url_text(url, b->key);
	return 0;
}

int breaker_ask(struct breaker *b)
{
	struct shmlimit_lease lease = { .struct_size = sizeof(lease) };
	int answer = shmlimit_lease_take(b->limiter, b->rule, b->key, strlen(b->key), 1, CLOSED_NS, b->claim_ns, &lease,
	                                 NULL);

	b->probing = answer == SHMLIMIT_LEASE_ASK;
	switch (answer) {
	case SHMLIMIT_ALLOWED:
		return BREAKER_CLOSED;
	case SHMLIMIT_DENIED:
		return BREAKER_OPEN;
	case SHMLIMIT_LEASE_ASK:
		return BREAKER_PROBE;
	case SHMLIMIT_LEASE_WAIT:
		return BREAKER_WAIT;
	default:
		return answer;
	}
}

void breaker_good(struct breaker *b)
{
	b->failures = 0;
	if (b->probing)
		shmlimit_lease_deposit(b->limiter, b->rule, b->key, strlen(b->key), CALLS, 1, CLOSED_NS, NULL);
	b->probing = 0;
}

void breaker_bad(struct breaker *b, uint64_t dice)
{
	size_t len = strlen(b->key);

	if (++b->failures < b->open_after && !b->probing)
		return;
	b->failures = 0;
	/* Others may have met the same, and opened it. */
	if (!b->probing && shmlimit_take(b->limiter, b->rule, b->key, len, 1, NULL) != SHMLIMIT_ALLOWED)
		return;
	shmlimit_lease_count(b->limiter, SHMLIMIT_LEASE_BREAKER_OPENINGS, 1);
	if (!b->probing)
		shmlimit_charge(b->limiter, b->rule, b->key, len, CALLS, NULL);
	shmlimit_lease_deny(b->limiter, b->rule, b->key, len, 1, policy_open_ns(b->open_ns, dice), NULL);
	b->probing = 0;
}

void breaker_unused(struct breaker *b)
{
	if (b->probing)
		shmlimit_lease_abandon(b->limiter, b->rule, b->key, strlen(b->key));
	b->probing = 0;
}
