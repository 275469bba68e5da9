/*
 * zone_data: reads a time zone from the bytes of a TZif file (RFC 9636). Pure.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_ZONE_DATA_H
#define SHMLIMIT_LIB_ZONE_DATA_H

#include "zone.h"

/*
 * Returns 0; or -EINVAL: the bytes are no such file, or the zone's offset will not change by one
 * yearly rule from now_s on, such as Morocco's, whose summer time depends on the moon. On error
 * *zone is undefined.
 */
int zone_data_read(const unsigned char *bytes, unsigned long len, int64_t now_s, struct zone *zone);

/* Is it a name that a zone can have: letters, digits and "_+-" between slashes? */
int zone_data_is_name(const char *name);

#endif
