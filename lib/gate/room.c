/*
 * room: see room.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <inttypes.h>
#include <stdio.h>

#include "room.h"

int room_text(char *to, size_t size, int error, const struct shmlimit_info *info)
{
	if (error == -ENOSPC)
		return snprintf(to, size, "/dev/shm has too little room for it");
	return snprintf(to, size, "the segment has no room for another rule (rules-max %" PRIu32 ")", info->rules_max);
}

void room_options(const struct spec *spec, const struct shmlimit_info *info, void (*say)(void *arg, const char *text),
                  void *arg)
{
	const struct shmlimit_options *o = &spec->options;
	char text[200];

	if (info->slots_asked != 0) {
		snprintf(text, sizeof(text),
		         "it has %" PRIu64 " slots, since /dev/shm had no room for %" PRIu64 " (shmlimit grow)",
		         info->slots, info->slots_asked);
		say(arg, text);
	} else if (o->slots > info->slots) {
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
