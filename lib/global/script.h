/*
 * script: the funnel that hosts share, as the engine keeps it: a hash a key.
 *
 *	capacity  tokens                       the article's four:
 *	rate      "count/period_ns"            capacity, leaking rate,
 *	quota     whole tokens left            left quota and
 *	time      of the last leak, us         time of the last leak
 *	part      what leaked since, less than a token: n of `den` parts
 *	lease_us  the longest that a lease lasts, of any host that asked
 *	parts     "num/den"
 *	set       when this rule was set on its host, us: the newest rule is in force
 *	lent      "a b c d": tokens leased in this third of a lease and in the three before
 *
 * In a microsecond num/den tokens leak. All numbers are whole and below 2^53,
 * where Lua counts exactly.
 *
 * INVARIANT quota + lent <= capacity. A token that was leased may be spent up to
 * lease_us later, and until then its room is not filled again. So what hosts hold
 * and what may still be leased are together never more than a full funnel, and
 * over all hosts no stretch of time sees more than capacity + rate * time: not
 * more with leases than without them. WHY NOT fill it at once: hosts that lease a
 * funnel empty, wait until it is full, and then spend, had two. WHY NOT except what is
 * spent within the call that leases it: it may be refunded as long as the lease lasts.
 *
 * A host whose rule is older than the funnel's is served by the newer one. A host
 * whose rule is newer changes the funnel: it keeps its tokens, clamped to the new
 * capacity less what is lent, so the invariant holds and nobody has to reset it. A
 * time of a host's clock that is ahead counts as the engine's.
 *
 * The time is the engine's (TIME). When that steps back, nothing leaks for the step.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef GLOBAL_SCRIPT_H
#define GLOBAL_SCRIPT_H

#include <stdint.h>

/*
 * KEYS[1]; ARGV: capacity, rate, num, den, lease_us, need, want, when the rule was
 * set, us, and, where a test brings its own, the time. Leases
 * min(want, what is to spare) tokens, `need` at least, or none. A `want` of 0
 * changes nothing.
 *
 * Returns: tokens leased; us until some can be, 0 if they were, -1 never; tokens left;
 * us until it would be full; 1 if a newer rule than the asker's is in force.
 */
extern const char script_text[];

/* What the script says when no funnel stands there, but something else. */
#define SCRIPT_FOREIGN "SHMLIMIT not a funnel"

#define SCRIPT_BUCKETS 4u

/* A rule as the script wants it. */
struct script_terms {
	uint64_t capacity, count, period_ns, num, den, lease_us, set_us;
};

/* Returns 0, or -ERANGE if the script could not count exactly. lease_us is 1 or more. */
int script_terms(struct script_terms *terms, uint64_t capacity, uint64_t count, uint64_t period_ns,
                 uint64_t lease_us);

#endif
