/*
 * attach: what create, load, open and verify share on the way to a handle.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_ATTACH_H
#define SHMLIMIT_LIB_ATTACH_H

#include "clock.h"
#include "header.h"
#include "limiter.h"
#include "segment.h"

/* The clock of a segment that was made with this option. */
static inline int attach_clock(uint32_t clock)
{
	return clock == SHMLIMIT_CLOCK_COARSE ? CLOCK_MONOTONIC_COARSE : CLOCK_MONOTONIC;
}

/* This host, as header_check() compares it. */
void attach_host(struct header_host *host);

/*
 * Make a handle on an open file whose header was checked; the file is the
 * caller's to close. Returns 0, -ENOMEM, or what mmap(2) says.
 */
int attach(const char *name, const struct layout_header *header, struct segment *segment, int fd, int writable,
           struct shmlimit **out);

/* Release it, if there is one. */
void attach_end(struct shmlimit *l);

#endif
