/*
 * unnamed: rules that go by their numbers, (capacity, count, period), as
 * redis-cell's callers carry them along. In the segment each is a rule like any
 * other, under a name that no caller can give; the handle remembers which id
 * that was, in an array that is as long as the handle lives. WHY NOT a table that
 * grows: a request must not fail, or abort, because the process has no memory.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_UNNAMED_H
#define SHMLIMIT_LIB_UNNAMED_H

#include "limiter.h"

/*
 * The id of the rule, which is defined if it is new, or -errno as
 * shmlimit_rule_set() has it. Threads: safe. Allocates nothing. Cost, if known: a
 * look-up in process memory.
 */
int unnamed_rule(struct shmlimit *l, uint64_t capacity, uint64_t count, uint64_t period_s);

#endif
