/*
 * policy: the durations of leases, claims, denials and naps. Pure: no clock, no socket, no memory.
 * So tests can run the same decisions on a simulated clock.
 *
 * `random` is a random number that uses all 64 bits.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef GLOBAL_POLICY_H
#define GLOBAL_POLICY_H

#include <stdint.h>

#include "script.h"

/*
 * Returns the duration of a rule's leases: `wanted_ns`, or twice `deadline_ns` if that is longer, but at most
 * an eighth of the time to full, since leased tokens do not come back during a lease; and at least
 * `deadline_ns`, or leases could expire before the call ends.
 */
uint64_t policy_lease_ns(uint64_t capacity, uint64_t count, uint64_t period_ns, uint64_t wanted_ns,
                         uint64_t deadline_ns);

/*
 * Returns how many tokens to ask for, where a key wants `want`, and the last answer took `round_trip_ns`. A key
 * is known by how long its last lease lasted, in which it could spend nothing until the answer came. Where that
 * is more than half of a lease, keys look half as busy as they are, and leases would not grow.
 */
uint64_t policy_want(const struct script_params *params, uint64_t want, uint64_t round_trip_ns);

/* Returns the duration of a claim: after it another process may ask for the key. */
uint64_t policy_claim_ns(uint64_t deadline_ns);

/*
 * Returns how long a denial holds on this host. A request that wanted no more than it needed is
 * retried when that is available. A busy key waits at least about one lease: half of one to one and
 * a half, at random, so that hosts take turns.
 */
uint64_t policy_denied_ns(const struct script_params *params, uint64_t need, uint64_t want, uint64_t retry_us,
                          uint64_t random);

/*
 * Returns the duration of the n-th nap, from 0, of a process that waits for another one's answer.
 */
uint64_t policy_nap_ns(unsigned n, uint64_t left_ns);

/*
 * Returns the time to the next look for an answer that a caller has waited for since `waited_ns`,
 * and awaits for left_ns.
 */
uint64_t policy_look_ns(uint64_t waited_ns, uint64_t left_ns);

/* Scale a limit to a host's share of it, as a funnel of its own. Each number stays 1 or more. */
void policy_share(uint64_t milli, uint64_t *capacity, uint64_t *count, uint64_t *period_ns);

#endif
