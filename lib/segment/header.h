/*
 * header: what makes a segment's header good. Pure: bytes in, verdict out.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_HEADER_H
#define SHMLIMIT_LIB_HEADER_H

#include "layout.h"

/*
 * Where this process stands: a segment's clock readings mean something only to its own boot and
 * time namespace.
 */
struct header_host {
	uint8_t boot_id[16];
	uint64_t time_namespace;
};

/*
 * Check a header, copied out of the segment, of a file of `size` bytes.
 * Returns 0, -EMEDIUMTYPE not ours, -EPROTO another layout, -EUCLEAN damaged,
 * -ESTALE another boot, -EXDEV another time namespace; *why (unless NULL) gets a
 * sentence about it, a static string.
 */
int header_check(const struct layout_header *header, uint64_t size, const struct header_host *host, const char **why);

#endif
