/*
 * table_grow: see table_grow.c.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_TABLE_GROW_H
#define SHMLIMIT_LIB_TABLE_GROW_H

#include "limiter.h"
#include "when.h"

/* shmlimit_grow(); the caller holds the segment's lock. `lines` 0: only leave the old table. */
int table_grow(const struct shmlimit *l, uint64_t lines, struct when when);

/*
 * Give a segment that has no name yet, and is open as fd, a larger table of empty slots. Returns 0
 * or as shmlimit_grow().
 */
int table_grow_unlinked(const struct shmlimit *l, int fd, uint64_t lines);

#endif
