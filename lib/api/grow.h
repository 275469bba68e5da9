/*
 * grow: see grow.c.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_GROW_H
#define SHMLIMIT_LIB_GROW_H

#include "limiter.h"

/* Give a segment that has no name yet, and is open as fd, a larger table of empty slots. Returns 0 or as shmlimit_grow(). */
int grow_unlinked(const struct shmlimit *l, int fd, uint64_t lines);

#endif
