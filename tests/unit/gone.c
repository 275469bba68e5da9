/*
 * gone: a handle tells when its segment's name is free or another segment's.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "unit.h"

/* A gate counts here what happened while there was no segment. */
static void undecided(struct shmlimit *l)
{
	struct shmlimit_info info = { .struct_size = sizeof(info) };
	struct shmlimit_problem problem;

	is(shmlimit_count_undecided(l, 0, 3), 0, "requests that passed undecided are counted");
	is(shmlimit_count_undecided(l, 1, 5), 0, "requests that were refused undecided are counted");
	shmlimit_count_undecided(l, 0, 4);
	is(shmlimit_info(l, &info), 0, "a segment's information is read");
	ok(info.undecided_passed == 7 && info.undecided_refused == 5, "both counts are in it");
	is(shmlimit_verify(unit_name, &problem, 1), 0, "a segment with such counts is sound");
}

int main(void)
{
	struct shmlimit *first = unit_create("gone", NULL), *second, *reader;
	char aside[SHMLIMIT_PATH_MAX + 8], path[SHMLIMIT_PATH_MAX];

	(void)shmlimit_path(unit_name, path);
	snprintf(aside, sizeof(aside), "%s.aside", path);
	is(shmlimit_gone(NULL), -EINVAL, "no limiter");
	is(shmlimit_gone(first), 0, "a segment is that of its name");
	is(shmlimit_open(unit_name, SHMLIMIT_OPEN_READ_ONLY, NULL, &reader), 0,
	   "a segment of that name can be opened again, read-only");
	is(shmlimit_gone(reader), 0, "it is the same");
	undecided(first);
	is(shmlimit_destroy(unit_name), 0, "destroyed");
	is(shmlimit_gone(first), 1, "it is gone");
	is(shmlimit_gone(reader), 1, "for every handle");
	second = unit_create("gone", NULL);
	is(shmlimit_gone(first), 1, "a segment that is created again is another");
	is(shmlimit_gone(second), 0, "a name that is taken again is another segment to all handles but new ones");
	if (rename(path, aside) != 0)
		bail("rename");
	is(shmlimit_gone(second), 1, "one under another name is gone");
	if (symlink(aside, path) != 0)
		bail("symlink");
	is(shmlimit_gone(second), 1, "a link to it is not followed");
	if (rename(aside, path) != 0)
		bail("rename");
	is(shmlimit_gone(second), 0, "a segment whose name is back is not gone");
	errno = 77;
	shmlimit_gone(first);
	shmlimit_destroy(unit_name);
	shmlimit_gone(second);
	is(errno, 77, "errno is left as it was");
	shmlimit_close(first);
	shmlimit_close(second);
	shmlimit_close(reader);
	return tap_done();
}
