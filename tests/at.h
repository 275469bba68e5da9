/*
 * at: calls at a time that a test gives: shmlimit_take(at_time(l, now_ns), ...).
 *
 * The handle keeps that time, until at_clock().
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_TESTS_AT_H
#define SHMLIMIT_TESTS_AT_H

#include "shmlimit.h"

static inline struct shmlimit *at_time(struct shmlimit *l, uint64_t now_ns)
{
	shmlimit_set_time(l, &now_ns);
	return l;
}

static inline struct shmlimit *at_clock(struct shmlimit *l)
{
	shmlimit_set_time(l, NULL);
	return l;
}

#endif
