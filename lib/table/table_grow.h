/*
 * table_grow: see table_grow.c.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_TABLE_GROW_H
#define SHMLIMIT_LIB_TABLE_GROW_H

#include "limiter.h"
#include "when.h"

/* shmlimit_grow_at(); the caller holds the segment's lock. `lines` 0: only leave the old table. */
int table_grow(const struct shmlimit *l, uint64_t lines, struct when when);

/*
 * A table with the same slots whose windows admit `window_max`, and twice what they did before, as far as there may be
 * so much. Does nothing where they do. Otherwise the same, with -EFBIG too if that is above the window_limit.
 */
int table_grow_windows(const struct shmlimit *l, uint64_t window_max, struct when when);

/*
 * Give a segment that has no name yet, and is open as fd, a larger table of empty slots. Returns 0
 * or as shmlimit_grow().
 */
int table_grow_unlinked(const struct shmlimit *l, int fd, uint64_t lines, uint32_t window_max);

#endif
