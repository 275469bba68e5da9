/*
 * lost: a segment whose owner truncates its file while a command reads it neither ends the command
 * nor hides other segments.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <unistd.h>

#include "named_segment.h"

#include "../unit/unit.h"

static unsigned visited, come_to_end;

/* What an owner can do at any moment. */
static void visit_truncated(void *context, struct shmlimit *limiter)
{
	struct shmlimit_slot slot = { .struct_size = sizeof(slot) };
	char path[SHMLIMIT_PATH_MAX];

	(void)context;
	visited++;
	(void)shmlimit_path(unit_name, path);
	if (truncate(path, 4096) != 0)
		bail("truncate");
	for (uint64_t i = 0; i < 65536; i++)
		(void)shmlimit_slot(limiter, i, &slot, SECOND);
	come_to_end++;
}

static void visit_sound(void *info, struct shmlimit *limiter)
{
	shmlimit_info(limiter, info);
}

int main(void)
{
	struct shmlimit_options options = { .struct_size = sizeof(options), .slots = 65536 };
	struct shmlimit_info info = { .struct_size = sizeof(info) };
	struct shmlimit *l = unit_create("lost", &options);

	is(segment_visit(unit_name, visit_sound, &info), 0, "a sound segment is visited");
	is(info.slots, 65536, "its visitor reads it");
	is(segment_visit(unit_name, visit_truncated, NULL), -EUCLEAN,
	   "a segment that is truncated during a visit is damaged");
	is(visited - come_to_end, 1, "its visitor does not come to its end, and the process lives");
	shmlimit_close(l);
	l = unit_create("lost", &options);
	info.slots = 0;
	is(segment_visit(unit_name, visit_sound, &info), 0, "the next segment is visited");
	is(info.slots, 65536, "its visitor reads it, too");
	shmlimit_close(l);
	return tap_done();
}
