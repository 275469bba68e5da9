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
	       rule->rate.capacity <= info->window_limit;
}

int room_text(char *to, size_t size, const struct spec_rule *rule, int error, const struct shmlimit_info *info)
{
	switch (-error) {
	case EFBIG:
		if (room_has_cells(rule, info))
			return snprintf(to, size, "it needs a segment that was created with --window-max %" PRIu64,
			                rule->rate.capacity);
		return snprintf(to, size, "it needs a segment of --window-limit %" PRIu64 ", and this one has %" PRIu32,
		                rule->rate.capacity, info->window_limit);
	case EALREADY:
		return snprintf(to, size,
		                "the segment has just grown, and grows again when its keys have left the old table");
	case ENOSPC:
		return snprintf(to, size, "/dev/shm has too little room for it");
	default:
		return snprintf(to, size, "the segment has no room for another rule (rules-max %" PRIu32 ")",
		                info->rules_max);
	}
}

void room_options(const struct spec *spec, const struct shmlimit_info *info, void (*say)(void *arg, const char *text),
                  void *arg)
{
	const struct shmlimit_options *o = &spec->options;
	char text[200];

	if (o->slots > info->slots) {
		snprintf(text, sizeof(text),
		         "it has %" PRIu64 " slots, and slots=%" PRIu64 " does not change that (shmlimit grow)",
		         info->slots, o->slots);
		say(arg, text);
	}
	if (o->mode != 0 && o->mode != (info->mode & 0777)) {
		snprintf(text, sizeof(text), "it has mode 0%o, and mode=0%o does not change that",
		         (unsigned)(info->mode & 0777), (unsigned)o->mode);
		say(arg, text);
	}
	if ((o->flags & SHMLIMIT_OPTION_GROUP) != 0 && o->gid != info->gid) {
		snprintf(text, sizeof(text), "it has the group %" PRIu32 ", and group= does not change that",
		         info->gid);
		say(arg, text);
	}
}
