/*
 * script: the funnel that hosts share, as the backend stores it: one hash per key.
 *
 *	capacity  tokens
 *	rate      "count/period_ns"
 *	quota     whole tokens left
 *	time      of the last refill, us
 *	part      what was refilled since, less than a token: n of `den` parts
 *	lease_us  the longest lease of any host that asked
 *	parts     "num/den"
 *	set       when this rule was set on its host, us: the newest rule is in force
 *	lent      "a b c d": tokens leased in this third of a lease and in the three before
 *
 * The first four are from the original article: capacity, refill rate, quota left and time of the
 * last refill.
 *
 * num/den tokens are refilled per microsecond. All numbers are whole and below 2^53, where Lua
 * counts exactly.
 *
 * INVARIANT quota + lent <= capacity. A leased token may be spent up to lease_us later, and is not
 * refilled before that. So the tokens that hosts hold, plus those that can still be leased, never
 * exceed a full funnel. Over all hosts no stretch of time sees more than capacity + rate * time:
 * leases add nothing. WHY NOT refill at once: hosts that lease all of a funnel, wait until it is
 * full, and then spend, would have two capacities. WHY NOT make an exception for tokens that are
 * spent within the call that leases them: they may be refunded as long as the lease lasts.
 *
 * A host whose rule is older than the funnel's is served by the newer one. A host whose rule is
 * newer changes the funnel. The funnel keeps its tokens, up to the new capacity less what is lent.
 * So the invariant holds and no reset is needed. If a host's clock is ahead, its time counts as the
 * backend's.
 *
 * The time is the backend's (TIME). When that clock steps back, nothing is refilled for the step.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef GLOBAL_SCRIPT_H
#define GLOBAL_SCRIPT_H

#include <stdint.h>

/*
 * Of a LEASE rule, KEYS[1]; ARGV: capacity, rate, num, den, lease_us, need, want, when the rule was
 * set (us), and in tests the time. Leases up to `want` tokens, at least `need`, or none. A `want`
 * of 0 changes nothing.
 *
 * Returns: tokens leased; us until some can be leased, 0 if they were, -1 never; tokens left; us
 * until it would be full; 1 if a newer rule than this host's is in force.
 *
 * Of a COUNTER rule, KEYS[1]; ARGV: what to add (1 or more), the bound, the time to live of a count
 * that begins (ms), and 1 to add what fits. The key is a number that expires, as INCRBY makes it.
 *
 * Returns: what was added; us until the count ends if nothing was, -1: it never fits; the count; us
 * until it ends; 0.
 */
extern const char script_text[];

/* The script's error if the key exists and is not a funnel. */
#define SCRIPT_FOREIGN "SHMLIMIT not a funnel"

#define SCRIPT_BUCKETS 4u

/* A rule in the form that the script takes. */
struct script_params {
	uint64_t capacity, count, period_ns, num, den, lease_us, set_us;
};

/* Returns 0, or -ERANGE if the script cannot count exactly. lease_us must be 1 or more. */
int script_params(struct script_params *params, uint64_t capacity, uint64_t count, uint64_t period_ns,
                  uint64_t lease_us);

#endif
