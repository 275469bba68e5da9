/*
 * policy: the durations of leases, claims, denials and naps. Pure: no clock, no socket, no memory.
 * So tests can run the same decisions on a simulated clock.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef GLOBAL_POLICY_H
#define GLOBAL_POLICY_H

#include <stdint.h>

#include "script.h"

/*
 * Returns the time that an answer may take, for policy_lease_ns(): the deadline, or four usual
 * round trips if the backend is far away: after one the lease begins to be spent, and one before
 * its end the next one is asked for.
 */
uint64_t policy_answer_ns(uint64_t deadline_ns, uint64_t far_ns);

/*
 * Returns the duration of a rule's leases: `wanted_ns`, or twice `deadline_ns` if that is longer,
 * but at most an eighth of the time to full, since leased tokens do not come back during a lease;
 * and at least `deadline_ns`, or leases could expire before the call ends.
 */
uint64_t policy_lease_ns(uint64_t capacity, uint64_t count, uint64_t period_ns, uint64_t wanted_ns,
                         uint64_t deadline_ns);

/*
 * Returns how many tokens to ask for, where a key wants `want`, and the last answer took
 * `round_trip_ns`. A key is known by how long its last lease lasted, in which a lone process could
 * spend nothing until the answer came. Where that is more than half of a lease, keys look half as
 * busy as they are, and leases would not grow: twice as much is asked for. Of 8 tokens or more, and
 * where few tokens last longer, half as much again is, from two thirds of a lease on: twice as
 * many would expire. A key that wants one token, which would last longer, is asked for two where an
 * answer takes more than a fifth of a lease (lease_next()).
 */
uint64_t policy_want(const struct script_params *params, uint64_t want, uint64_t round_trip_ns);

/*
 * Returns the duration of a claim, where an answer takes the deadline or, if that is longer, a
 * usual round trip: after it another process may ask for the key.
 */
uint64_t policy_claim_ns(uint64_t deadline_ns);

/*
 * Returns how long a denial holds on this host, where the question was sent since_ns ago. One that
 * says when tokens come back holds until then. One by chance holds for as long as the tokens that
 * were wanted would have been spent, the first of them when the question was sent: so of each host
 * it denies as many requests as its grant would have admitted, and no request has a better chance
 * than another. A key that wants one token asks again with its next request. `random` uses all 64
 * bits: the rest of the time is half as long to half as long again. WHY NOT always as long: of a
 * large limit each lease lasts 75 ms to within a hundredth. If denials did, too, hosts would ask in
 * the same order for a minute, and those that ask after a busy one would find less.
 */
uint64_t policy_denied_ns(const struct script_params *params, uint64_t need, uint64_t want, uint64_t retry_us,
                          uint64_t since_ns, uint64_t random);

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
