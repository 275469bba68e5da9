/*
 * script: the funnel that hosts share, as the engine keeps it: a hash a key.
 *
 *	capacity  tokens                       the article's four:
 *	rate      "count/period_ns"            capacity, leaking rate,
 *	quota     whole tokens left            left quota and
 *	time      of the last leak, us         time of the last leak
 *	part      what leaked since, less than a token: n of `den` parts
 *	lease_us  the longest that a lease lasts
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
 * The time is the engine's (TIME). When that steps back, nothing leaks for the step.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef GLOBAL_SCRIPT_H
#define GLOBAL_SCRIPT_H

#include <stdint.h>

/*
 * KEYS[1]; ARGV: capacity, rate, num, den, lease_us, need, want, and, where a test brings its own, the time. Leases
 * min(want, what is to spare) tokens, `need` at least, or none. A `want` of 0
 * changes nothing.
 *
 * Returns: tokens leased; us until some can be, 0 if they were, -1 never; tokens left;
 * us until it would be full.
 */
extern const char script_text[];

/* What the script says when a funnel of other terms stands there: this, and those. */
#define SCRIPT_MIXED "SHMLIMIT other terms: "
/* ... and when it is no funnel at all. */
#define SCRIPT_FOREIGN "SHMLIMIT not a funnel"

#define SCRIPT_BUCKETS 4u

/* A rule as the script wants it. */
struct script_terms {
	uint64_t capacity, count, period_ns, num, den, lease_us;
};

/* Returns 0, or -ERANGE if the script could not count exactly. lease_us is 1 or more. */
int script_terms(struct script_terms *terms, uint64_t capacity, uint64_t count, uint64_t period_ns,
                 uint64_t lease_us);

#endif
