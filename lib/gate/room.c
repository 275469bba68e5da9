/*
 * room: see room.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <inttypes.h>
#include <stdio.h>

#include "room.h"

int room_has_cells(const struct spec_rule *rule, const struct shmlimit_info *info)
{
	return (rule->rate.algorithm != SHMLIMIT_WINDOW && rule->rate.algorithm != SHMLIMIT_HOLD) ||
	       rule->rate.capacity <= info->window_max;
}

int room_text(char *to, size_t size, const struct spec_rule *rule, int error, const struct shmlimit_info *info)
{
	if (error == -EFBIG)
		return snprintf(to, size, "it needs a segment of --window-max %" PRIu64 ", and this one has %" PRIu32,
		                rule->rate.capacity, info->window_max);
	return snprintf(to, size, "the segment's %" PRIu32 " rules are all in use", info->rules);
}
