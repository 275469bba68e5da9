/*
 * leases: a key under a rule of leases, as libraries use one: spend what is here,
 * ask where told to, and carry the backend's answer back. The backend gives what is
 * wanted and some more, or says no, or nothing. All of it is booked.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_TORTURE_LEASES_H
#define TESTS_TORTURE_LEASES_H

#include "../process/process.h"

#include "books.h"

#define DENIAL_NS (CLAIM_NS / 4)

/* The backend gave this many: spend `cost` of them, or of what is here. Returns as shmlimit_lease_deposit() does. */
static inline int leases_deposit(struct shmlimit *l, int rule, struct books *books, uint32_t key, uint64_t tokens,
                                 uint64_t cost)
{
	uint64_t began_ns = shmlimit_now(l);
	struct entry *gift = books_add(books, ANSWERED, key, tokens, began_ns, UINT64_MAX);
	int answer = shmlimit_lease_deposit(l, rule, &key, sizeof(key), tokens, cost, 0, LEASE_NS, NULL);

	atomic_store(&gift->ended_ns, shmlimit_now(l));
	if (answer == SHMLIMIT_ALLOWED && cost != 0)
		books_add(books, SPENT, key, cost, began_ns, shmlimit_now(l));
	return answer;
}

/* The backend said no, or nothing. */
static inline int leases_refuse(struct shmlimit *l, int rule, struct books *books, uint32_t key, uint64_t cost, int no)
{
	struct entry *none = books_add(books, ANSWERED, key, 0, shmlimit_now(l), UINT64_MAX);
	int answer;

	if (no)
		answer = shmlimit_lease_deny(l, rule, &key, sizeof(key), cost, DENIAL_NS, NULL);
	else
		answer = shmlimit_lease_abandon(l, rule, &key, sizeof(key));
	atomic_store(&none->ended_ns, shmlimit_now(l));
	return answer;
}

/* A call, and what follows from its answer. Returns the last answer. */
static inline int leases_spend(struct shmlimit *l, int rule, struct books *books, uint32_t key, uint64_t cost,
                               struct rng *rng)
{
	struct shmlimit_lease lease = { .struct_size = sizeof(lease) };
	uint64_t began_ns = shmlimit_now(l);
	int answer = shmlimit_lease_take(
		l, rule, &key, sizeof(key),
		&(struct shmlimit_lease_request){ .struct_size = sizeof(struct shmlimit_lease_request),
	                                          .cost = cost,
	                                          .lease_ns = LEASE_NS,
	                                          .claim_ns = CLAIM_NS },
		&lease, NULL);

	if (answer == SHMLIMIT_ALLOWED)
		books_add(books, SPENT, key, cost, began_ns, shmlimit_now(l));
	if (answer != SHMLIMIT_LEASE_ASK)
		return answer;
	books_add(books, ASKED, key, 0, began_ns, shmlimit_now(l));
	switch (rng_below(rng, 8)) {
	case 0: /* as if it were killed now */
		return answer;
	case 1:
		return leases_refuse(l, rule, books, key, cost, 0);
	case 2:
		return leases_refuse(l, rule, books, key, cost, 1);
	default:
		return leases_deposit(l, rule, books, key, lease.want + rng_below(rng, 3), cost);
	}
}

#endif
