/*
 * policy: how long things last, and what an answer is taken for. Pure: no clock,
 * no socket, no memory; so that the same decisions run on a clock that is made up.
 *
 * `dice` is a random number, all 64 bits of it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef GLOBAL_POLICY_H
#define GLOBAL_POLICY_H

#include <stdint.h>

#include "script.h"

/*
 * How long leases of a rule last: as wished, but no longer than an eighth of the
 * time to fill, since the room of what is leased is not filled again meanwhile; and
 * not shorter than a call may take, or nothing would arrive in time.
 */
uint64_t policy_lease_ns(uint64_t capacity, uint64_t count, uint64_t period_ns, uint64_t wished_ns,
                         uint64_t deadline_ns);

/* How long who asks has for it, before the next one may. */
uint64_t policy_claim_ns(uint64_t deadline_ns);

/*
 * How long a denial holds on this host. Who wanted no more than he needed comes
 * back when that is there; a busy key, after about a lease: half of one to one
 * and a half, so that hosts take turns at coming first.
 */
uint64_t policy_denied_ns(const struct script_terms *terms, uint64_t need, uint64_t want, uint64_t retry_us,
                          uint64_t dice);

/* How long the breaker stays open: three quarters to five quarters of what was wished. */
uint64_t policy_open_ns(uint64_t open_ns, uint64_t dice);

/* The n-th nap, from 0, of who waits for another's answer. */
uint64_t policy_nap_ns(unsigned n, uint64_t left_ns);

/* What a host's share of a limit is, as a funnel of its own: 1 or more of each. */
void policy_share(uint64_t milli, uint64_t *capacity, uint64_t *count, uint64_t *period_ns);

#endif
