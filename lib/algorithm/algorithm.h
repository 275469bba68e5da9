/*
 * algorithm: what differs between FUNNEL, WARMUP, WINDOW and LEASE for those who only
 * keep words: compiling a rule, when a word says no more than none, converting
 * it. What verbs do with it is decide's.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_ALGORITHM_H
#define SHMLIMIT_LIB_ALGORITHM_H

#include "atomic.h"
#include "funnel.h"
#include "limiter.h"

/*
 * Fill *terms from a rule, for a segment whose windows admit up to `window_max`.
 * Returns 0, or -EINVAL the algorithm is unknown or a field is set that it has
 * not, or what the algorithm's own compile says.
 */
int algorithm_compile(const struct shmlimit_rule *rule, uint32_t window_max, struct layout_terms *terms);

/* The largest capacity with which algorithm_compile() accepts the rest of *rule, or its error with a capacity of 1. */
int algorithm_capacity_max(const struct shmlimit_rule *rule, uint64_t *capacity);

/* The rule as it was set, mode and struct_size apart. */
void algorithm_rule(const struct layout_terms *terms, struct shmlimit_rule *out);

/* What compiled terms can tell: for shmlimit_rule_range(). struct_size is left alone. */
void algorithm_range(const struct layout_terms *terms, struct shmlimit_range *out);

/*
 * Nanoseconds until what was seen in a slot says the same as none: 0 if it does.
 * Where no time is given the clock may be read again.
 */
uint64_t algorithm_wait(const struct shmlimit *l, const struct table *t, const struct layout_slot *slot,
                        const struct layout_terms *terms, uint64_t word, struct funnel_time at, int given);

/*
 * Nanoseconds since the time in a word, which says no more than none does: how
 * long ago, about, its key was last granted something. 0 where that is in the future.
 */
uint64_t algorithm_idle_ns(const struct shmlimit *l, const struct layout_terms *terms, uint64_t word,
                           struct funnel_time at);

/*
 * The word that says under `to` what was seen in a
 * slot under `from`; both of one algorithm.
 */
uint64_t algorithm_convert(const struct shmlimit *l, const struct table *t, const struct layout_slot *slot,
                           const struct layout_terms *from, uint64_t word, const struct layout_terms *to,
                           uint64_t now_ns);

/* What is wrong with a word, in a few words, or NULL. */
const char *algorithm_fault(const struct layout_terms *terms, uint64_t word, uint32_t window_max);

/*
 * What decisions make of a word that has a fault, as a word without: *mended. Returns
 * what that is, in a few words, or NULL where no word says it: such a slot holds nothing.
 */
const char *algorithm_mend(const struct layout_terms *terms, uint64_t word, uint32_t window_max, uint64_t *mended);

#endif
