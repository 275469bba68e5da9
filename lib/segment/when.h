/*
 * when: the time of a call, and whose it is.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_WHEN_H
#define SHMLIMIT_LIB_WHEN_H

#include "clock.h"
#include "limiter.h"

/*
 * `given`: the time is the caller's, and there is no other. Else it is what the
 * limiter's clock said (0: it was not read yet), which may be read again.
 */
struct when {
	uint64_t ns;
	int given;
};

/* The limiter's clock, to be read where a time is needed. */
static inline struct when when_clock(void)
{
	return (struct when){ 0, 0 };
}

static inline struct when when_given(uint64_t ns)
{
	return (struct when){ ns, 1 };
}

/* The limiter's clock, read now. */
static inline struct when when_read(const struct shmlimit *l)
{
	return (struct when){ clock_read(l->clock_id), 0 };
}

/* A time after what was just read from shared memory: the caller's, or the clock, read again. */
static inline struct when when_again(const struct shmlimit *l, struct when when)
{
	return when.given ? when : when_read(l);
}

#endif
