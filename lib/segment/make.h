/*
 * make: a segment's creation, from its options to the file with its header.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_MAKE_H
#define SHMLIMIT_LIB_MAKE_H

#include "layout.h"
#include "segment.h"

/* Copy a caller's options (NULL: none), with defaults filled in. Returns 0, -EINVAL or -E2BIG. */
int make_options(const struct shmlimit_options *options, struct shmlimit_options *o);

/* How far a segment with these slots can grow, unless its options say otherwise. */
uint64_t make_slots_max(uint64_t slots);

/*
 * The slots of a segment of these options, which are filled in, with SHMLIMIT_OPTION_FIT. Returns
 * 0, or -ENOSPC there is room for none.
 */
int make_fit(const struct shmlimit_options *o, uint64_t *slots);

/*
 * Make a segment that has no name yet, as shmlimit_create() does, with the hash
 * secret given or (NULL) another one. Returns 0 or an error of that.
 */
int make_segment(const struct shmlimit_options *options, const uint64_t secret[2], struct layout_header *header,
                 struct segment *segment, int *fd);

/*
 * Would make_segment() make that, given room and rights? Returns 0 or its error. If so, make the
 * smallest segment that rules and windows of these options fit into, in this process's memory.
 */
int make_private(const struct shmlimit_options *options, const uint64_t secret[2], struct layout_header *header,
                 struct segment *segment, int *fd);

#endif
