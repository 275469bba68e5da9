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
 * round trips if that is longer. Where the backend is far away, a lease begins to be spent one
 * round trip after it was asked for, and the next one is asked for one round trip before its end.
 */
uint64_t policy_answer_ns(uint64_t deadline_ns, uint64_t far_ns);

/*
 * Returns the duration of a rule's leases: `wanted_ns`, or twice `deadline_ns` if that is longer.
 * It is at most an eighth of the time to full, because leased tokens do not come back during a
 * lease. In any case it is at least `deadline_ns`, or a lease could expire before the call ends.
 */
uint64_t policy_lease_ns(uint64_t capacity, uint64_t count, uint64_t period_ns, uint64_t wanted_ns,
                         uint64_t deadline_ns);

/*
 * Returns how many tokens to ask for where a key wants `want` and the last answer took
 * `round_trip_ns`. What a key wants is computed from how fast it spent its last lease, and a lone
 * process could spend nothing until the answer came. If an answer takes more than half of a lease,
 * a key looks half as busy as it is, and its leases would not grow. So:
 *
 * - Of a small limit, `want` is asked for, however long an answer takes.
 * - Of a capacity of 131072 or more, and where fewer than 8 tokens are wanted, twice `want` is
 *   asked for if an answer takes more than half of a lease.
 * - Otherwise, and where leases of few tokens last longer, half as much again is asked for if an
 *   answer takes more than two thirds of a lease: of twice as many, some would expire.
 * - A key that wants one token, which lasts longer than a lease, is asked for two if an answer
 *   takes more than a fifth of a lease (lease_next()).
 */
uint64_t policy_want(const struct script_params *params, uint64_t want, uint64_t round_trip_ns);

/*
 * Returns the duration of a claim, after which another process may ask for the key. `deadline_ns`
 * is the time that an answer takes: the deadline, or a usual round trip if that is longer.
 */
uint64_t policy_claim_ns(uint64_t deadline_ns);

/*
 * Returns how long a denial holds on this host, where the question was sent since_ns ago. A denial
 * that says when tokens come back holds until then. A denial by chance holds for as long as the
 * wanted tokens would have lasted, counted from when the question was sent. So it denies as many
 * requests as a grant would have admitted, and no request has a better chance than another. A key
 * that wants one token asks again with its next request.
 *
 * `random` has 64 random bits: the rest of the time is multiplied by 0.5 to 1.5. WHY NOT by 1:
 * each lease of a large limit lasts 75 ms to within a hundredth. If denials did, too, hosts would
 * ask in the same order for a minute, and those that ask after a busy one would find less.
 */
uint64_t policy_denied_ns(const struct script_params *params, uint64_t need, uint64_t want, uint64_t retry_us,
                          uint64_t since_ns, uint64_t random);

/*
 * Returns the duration of the n-th nap, from 0, of a process that waits for another one's answer.
 */
uint64_t policy_nap_ns(unsigned n, uint64_t left_ns);

/*
 * Returns the time until a caller looks for its answer again. It has waited for waited_ns, and
 * waits for left_ns at most.
 */
uint64_t policy_look_ns(uint64_t waited_ns, uint64_t left_ns);

/* Scale a limit to a host's share of it, as a funnel of its own. Each number stays 1 or more. */
void policy_share(uint64_t milli, uint64_t *capacity, uint64_t *count, uint64_t *period_ns);

#endif
