/*
 * rebase: moves a word's time from a moment of one clock to a moment
 * of another. Numbers in, numbers out.
 *
 * A funnel's time is kept in ticks from the moment, a window's in nanoseconds. The
 * old clock's moment is known to the nanosecond, and so is the new one's, so that
 * both clocks' places within a tick count: a time that is a whole number of ticks
 * later is the same to the tick; else it is the next tick's, so that a funnel has
 * less than a tick less than it had, and never more.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_REBASE_H
#define SHMLIMIT_LIB_REBASE_H

#include "funnel.h"

/* The moment `then_ns` of the old clock was `elapsed_ns` before `now_ns` of the new one. */
struct rebase {
	uint64_t then_ns, now_ns, elapsed_ns;
};

/* Ticks from the moment `then_ns` to a funnel's time, the funnel being refilled up to `at`. */
int64_t rebase_ticks(const struct layout_params *params, struct funnel funnel, struct funnel_time at, uint64_t then_ns);

/*
 * The word that says at now_ns what `quota` and `ticks` said then, refilled since.
 * Total: whatever the numbers, it is a word that could have been written then,
 * with no more than the capacity, no further ahead than the rule allows.
 */
uint64_t rebase_word(const struct layout_params *params, uint64_t quota, int64_t ticks, const struct rebase *rebase);

/* Where a time of the old clock, told in nanoseconds from the moment, is on the new one. */
static inline uint64_t rebase_ns(const struct rebase *rebase, int64_t ns)
{
	return rebase->now_ns - rebase->elapsed_ns + (uint64_t)ns;
}

#endif
