/*
 * zone_file: see zone_file.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <string.h>

#include "segment.h"
#include "zone_data.h"
#include "zone_file.h"

#define SECOND UINT64_C(1000000000)
#define FILE_MAX 16384 /* the largest has 4 KiB */

int zone_file_fill(struct shmlimit_rule *rule)
{
	unsigned char bytes[FILE_MAX];
	struct zone zone;
	size_t len;
	int error;

	if (rule->zone[0] == '\0')
		return 0;
	if (memchr(rule->zone, '\0', sizeof(rule->zone)) == NULL || !zone_data_is_name(rule->zone))
		return -EINVAL;
	if (rule->zone_offsets[0] != 0 || rule->zone_offsets[1] != 0 || strcmp(rule->zone, "UTC") == 0)
		return 0;
	error = segment_zone(rule->zone, bytes, sizeof(bytes), &len);
	if (error != 0)
		return error;
	if (zone_data_read(bytes, len, (int64_t)(segment_unix_ns() / SECOND), &zone) != 0)
		return -ENOPKG;
	memcpy(rule->zone_offsets, zone.words, sizeof(zone.words));
	return 0;
}
