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
 * limiter's clock said, which may be read again. 0: nothing was read yet.
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

/*
 * WHY NOT as in atomic.h: it is the handle's own memory, where no other process comes in between.
 */
static inline int when_is_set(const struct shmlimit *l)
{
	return __atomic_load_n(&l->is_set, __ATOMIC_ACQUIRE);
}

/* Set the time that stands for the clock; NULL: none. */
static inline void when_set(struct shmlimit *l, const uint64_t *ns)
{
	if (ns != NULL)
		__atomic_store_n(&l->set_ns, *ns, __ATOMIC_RELAXED);
	__atomic_store_n(&l->is_set, ns != NULL, __ATOMIC_RELEASE);
}

/* The limiter's clock, or the time that stands for it, read now. */
static inline struct when when_read(const struct shmlimit *l)
{
	if (__builtin_expect(when_is_set(l), 0))
		return when_given(__atomic_load_n(&l->set_ns, __ATOMIC_RELAXED));
	return (struct when){ clock_read(l->clock_id), 0 };
}

/* A time after what was just read from shared memory: the caller's, or the clock, read again. */
static inline struct when when_again(const struct shmlimit *l, struct when when)
{
	return when.given ? when : when_read(l);
}

#endif
