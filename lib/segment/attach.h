/*
 * attach: what create, load, open and verify share on the way to a handle.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_ATTACH_H
#define SHMLIMIT_LIB_ATTACH_H

#include "header.h"
#include "limiter.h"
#include "segment.h"

/* Where this process stands. */
void attach_host(struct header_host *host);

/*
 * Make a segment that has no name yet, as shmlimit_create() does, with the hash
 * secret given or (NULL) another one. Returns 0 or an error of that.
 */
int attach_new(const struct shmlimit_options *options, const uint64_t secret[2], struct layout_header *header,
               struct segment *segment, int *fd);

/*
 * Would attach_new() make that, given room and rights? Returns 0 or its error. If so, make the smallest segment that
 * rules and windows of these options fit into, in this process's memory.
 */
int attach_new_private(const struct shmlimit_options *options, const uint64_t secret[2], struct layout_header *header,
                       struct segment *segment, int *fd);

/*
 * Make a handle on an open file whose header was checked; the file is the
 * caller's to close. Returns 0, -ENOMEM, or what mmap(2) says.
 */
int attach(const char *name, const struct layout_header *header, struct segment *segment, int fd, int writable,
           struct shmlimit **out);

#endif
