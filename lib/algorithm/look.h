/*
 * look: what a word is read by.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_LOOK_H
#define SHMLIMIT_LIB_LOOK_H

#include "funnel.h"
#include "limiter.h"
#include "when.h"

/* Where the word is (slot NULL: nowhere), by which parameters it is read, and when. */
struct look {
	const struct shmlimit *l;
	const struct table *t;
	const struct layout_slot *slot;
	const struct layout_params *params;
	struct funnel_time at;
	int given; /* that time is the caller's: there is no clock to read */
};

static inline struct look look_make(const struct shmlimit *l, const struct table *t, const struct layout_slot *slot,
                                    const struct layout_params *params, struct when when)
{
	return (struct look){ l, t, slot, params, funnel_time(params, when.ns), when.given };
}

/* The same without ticks, for algorithms that count in nanoseconds. */
static inline struct look look_ns(const struct shmlimit *l, const struct table *t, const struct layout_slot *slot,
                                  const struct layout_params *params, struct when when)
{
	return (struct look){ l, t, slot, params, { .now_ns = when.ns }, when.given };
}

#endif
