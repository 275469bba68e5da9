/*
 * script: the funnel that hosts share, as the backend stores it: one string per key, which expires
 * when the funnel is full.
 *
 *	time debt
 *	time debt cell a b c d
 *
 *	time  of the last change, us by the backend's clock (TIME)
 *	debt  time in which the funnel was full again then, us
 *	cell  length of a cell of time, us: a third of the longest lease, or more
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
 * INVARIANT a request has the same chance on every host. Proof: a host that wants n tokens would
 * spend them on its next n requests. It is granted g of them, 1 to n, or denied by chance, and then
 * denies n on average (policy_denied_ns()). If it is granted with the chance q, it asks again,
 * after g requests that were admitted or n that were denied: of its requests g * q / (g * q + n *
 * (1 - q)) are admitted. With q = p / (p + g / n * (1 - p)) that is p, whatever n and g are, and
 * however well the host knows its demand: no more than how full the funnel is decides it. p is the
 * square of the tokens that are there, less a sixth of the grant, by those that a limit has when it
 * is scarce: what comes back in 200 ms, or in a quarter of the time to full if that is less; less
 * four. At or above that nothing is denied but what is not there. So it is below half of the funnel
 * at all times, and of limits of 20 a second or less, whose hosts ask for each token: the first
 * that asks when there is a token gets it. Chance is the time of the question, by the backend's
 * clock. WHY NOT the first that asks of larger limits: a busy host wants more at once than an idle
 * one, and is denied for as long: of 100 hosts by Zipf's law the busiest got 0.02 of what it asked
 * for, the idlest 0.97. WHY NOT n * p tokens of n: what is left of the time would have to be denied
 * here, which a word has no state for; and of few tokens a part expires where requests come at
 * random.
 *
 * INVARIANT While requests of one token go on and none is denied by chance, a key is denied, though
 * its limit has a token, for no longer than a lease of few tokens, and a cell. Proof: a lease is
 * granted with what its request needs, which is admitted. So while none is admitted none is
 * granted, and the debt falls as time passes, except while all of it is lent. That ends with the
 * cell in which the last lease ends. A host that was denied asks again when the script said that
 * the token is there. build/bench/hosts measures it.
 *
 * Of a small limit (its capacity below 8,192, less than 8 tokens in a quarter of a lease) a host
 * gets no more beyond what it needs than comes back in a quarter of a lease. So it holds no more in
 * vain while another one is denied. WHY NOT as many as it wants: in bursts of 100 a minute over 4
 * hosts a tenth of the limit expired, and half of the denials were wrong. WHY NOT so of all limits:
 * a host that spends 1,000 a second would ask 40 times a second.
 *
 * Few tokens last for three leases, or hosts that get some requests in a lease let a part expire:
 * of 1000 a second over 100 hosts 7 %, now 2 %.
 *
 * A question that gets just what it needs is not counted as lent: that is spent at once. So most
 * keys are the short form, for which a call costs at most 1.3 times one of GCRA. A refund can move
 * such a token by a lease (of few tokens) at most; only then a stretch of time sees what comes back
 * in such a lease more.
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
 * and `need`: leases that many tokens, or none, which are spent at once. A `need` of 0 changes
 * nothing. Four more ARGV: `want`, `most`, the duration of a lease and the length of a cell (us);
 * and in tests the time. Leases up to `want` tokens, at least `need`, for script_lease_us(); or,
 * while the funnel is over three quarters full, up to `most`, for three cells.
 *
 * Returns: tokens leased; us until some can be leased, 0 if they were, -1 never, SCRIPT_BY_CHANCE
 * if they can, but others had the chance; tokens left; us until it would be full; us that the lease
 * lasts, 0: as long as was asked for.
 *
 * Of a COUNTER rule, KEYS[1]; ARGV: what to add (1 or more), the bound, the time to live of a count
 * that begins (ms), 1 to add what fits; then how many additions of this host are kept (1 or more),
 * and the host with the number of this one. The key is a hash that expires: `count`, and for each
 * host its latest additions, oldest first: " number=added". One that is there is answered as it
 * was.
 *
 * Returns: what was added; us until the count ends if nothing was, -1: it never fits; the count; us
 * until it ends; 0.
 */
extern const char script_text[];

/* The script's error if the key exists and is not a funnel. */
#define SCRIPT_FOREIGN "SHMLIMIT not a funnel"

/* The longest lease, us: longer ones are answers of something else. */
#define SCRIPT_LEASE_MAX_US UINT64_C(30000000)

#define SCRIPT_BY_CHANCE 1

/* A rule in the form that the script takes. */
struct script_params {
	double full, token;         /* us */
	uint64_t lease_us, cell_us; /* of a lease; of a cell */
};

/* Returns 0, or -ERANGE if the script cannot count exactly. lease_us must be 1 or more. */
int script_params(struct script_params *params, uint64_t capacity, uint64_t count, uint64_t period_ns,
                  uint64_t lease_us);

#define SCRIPT_FEW_TIMES 3u

/*
 * How long a lease of some tokens lasts, us: SCRIPT_FEW_TIMES as long as others where they are 30
 * or fewer, of a capacity below 131,072, and a lease is at most an eighth of the time to full.
 */
uint64_t script_lease_us(const struct script_params *params, uint64_t tokens);

#define SCRIPT_ARGUMENTS_MAX 8
#define SCRIPT_ARGUMENT_MAX 40 /* bytes, the NUL included */
#define SCRIPT_HOST_LEN 16     /* of a host, in the last argument of an addition */

/* What is asked of a funnel: see script_text. */
struct script_question {
	uint64_t need, want, most;
};

/*
 * Write the script's arguments. Returns their number: if `always_all`, 7, which the time may
 * follow; otherwise fewer where they suffice.
 */
int script_arguments(const struct script_params *params, const struct script_question *question, int always_all,
                     char text[SCRIPT_ARGUMENTS_MAX][SCRIPT_ARGUMENT_MAX]);

#endif
