/*
 * script: the funnel that hosts share, as the backend stores it: one string per key, which expires
 * when the funnel is full.
 *
 *	time debt
 *	time debt cell a b c d
 *
 *	time  of the last change, us by the backend's clock (TIME)
 *	debt  time in which the funnel was full again then, us
 *	cell  length of a cell of time, us: a third of the longest lease
 *	a..d  time in which tokens come back that may be spent until the end of the cell of `time`, and
 *	      of the next three
 *
 * A token is the time in which it comes back, us rounded up to a power of two below a millionth, so
 * sums are exact, and never too much is leased. Nothing of the rule is stored. Hosts with different
 * rules share the time, as calls with different limits share a key of GCRA: each takes by its own
 * rule, and what all hosts take adds up to no more than the longest time to full among them allows.
 *
 * INVARIANT a + b + c + d <= debt. A leased token may be spent until its cell is over, and does not
 * come back before that. So the tokens that hosts hold, plus those that can still be leased, never
 * exceed a full funnel. Over all hosts no stretch of time sees more than capacity + rate * time:
 * leases add nothing. WHY NOT refill at once: hosts that lease all of a funnel, wait until it is
 * full, and then spend, would have two capacities.
 *
 * A question that gets just what it needs is not counted as lent: that is spent at once. So most keys
 * are the short form, for which a call costs at most 1.3 times one of GCRA. A refund can move such a
 * token by a lease at most; only then a stretch of time sees what comes back in a lease more.
 *
 * When the backend's clock steps back, nothing is refilled for the step.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef GLOBAL_SCRIPT_H
#define GLOBAL_SCRIPT_H

#include <stdint.h>

/*
 * Of a LEASE rule, KEYS[1]; ARGV: the time to full of an empty funnel and the time of a token (us),
 * and `need`: leases that many tokens, or none, which are spent at once. A `need` of 0 changes nothing.
 * Four more ARGV: `want`, `most`, the duration of a lease and the length of a cell (us); and in tests
 * the time. Leases up to `want` tokens, at least `need`; or, while the funnel is over three quarters
 * full, up to `most`, for three cells.
 *
 * Returns: tokens leased; us until some can be leased, 0 if they were, -1 never; tokens left; us
 * until it would be full; us that the lease lasts, 0: as long as was asked for.
 *
 * Of a COUNTER rule, KEYS[1]; ARGV: what to add (1 or more), the bound, the time to live of a count
 * that begins (ms), 1 to add what fits; then how many additions of this host are kept (1 or
 * more), and the host with the number of this one. The key is a hash that expires: `count`, and for each
 * host its latest additions, oldest first: " number=added". One that is there is answered as it was.
 *
 * Returns: what was added; us until the count ends if nothing was, -1: it never fits; the count; us
 * until it ends; 0.
 */
extern const char script_text[];

/* The script's error if the key exists and is not a funnel. */
#define SCRIPT_FOREIGN "SHMLIMIT not a funnel"

/* The longest lease, us: longer ones are answers of something else. */
#define SCRIPT_LEASE_MAX_US UINT64_C(30000000)

/* A rule in the form that the script takes. */
struct script_params {
	double full, token;         /* us */
	uint64_t lease_us, cell_us; /* of a lease; of a cell */
};

/* Returns 0, or -ERANGE if the script cannot count exactly. lease_us must be 1 or more. */
int script_params(struct script_params *params, uint64_t capacity, uint64_t count, uint64_t period_ns,
                  uint64_t lease_us);

#define SCRIPT_ARGUMENTS_MAX 8
#define SCRIPT_ARGUMENT_MAX 40 /* bytes, the NUL included */
#define SCRIPT_HOST_LEN 16     /* of a host, in the last argument of an addition */

/* What is asked of a funnel: see script_text. */
struct script_question {
	uint64_t need, want, most;
};

/*
 * Write the script's arguments. Returns their number: if `always_all`, 7, which the time may follow;
 * otherwise fewer where they suffice.
 */
int script_arguments(const struct script_params *params, const struct script_question *question, int always_all,
                     char text[SCRIPT_ARGUMENTS_MAX][SCRIPT_ARGUMENT_MAX]);

#endif
