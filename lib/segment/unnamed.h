/*
 * unnamed: rules that go by their numbers, (capacity, count, period), as
 * redis-cell's callers carry them along. In the segment each is a rule like any
 * other, under a name that no caller can give; here a process remembers which id
 * that was. The only file that knows liburcu: its hash table, of the flavour
 * that needs no registration of threads, is read without waiting while other
 * threads insert. It cannot be in the segment, since it holds pointers.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_UNNAMED_H
#define SHMLIMIT_LIB_UNNAMED_H

#include "limiter.h"

/*
 * The id of the rule, which is defined if it is new, or -errno as
 * shmlimit_rule_set() has it. Threads: safe. Cost, if known: a look-up in
 * process memory.
 */
int unnamed_rule(struct shmlimit *l, uint64_t capacity, uint64_t count, uint64_t period_s);

/* Free what this process remembers. No thread may be in unnamed_rule(). */
void unnamed_forget(struct shmlimit *l);

#endif
