/*
 * destroy: remove a segment's name.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <string.h>

#include "export.h"
#include "layout.h"
#include "name.h"
#include "segment.h"

EXPORT int shmlimit_destroy(const char *name)
{
	uint8_t magic[sizeof(((struct layout_header *)0)->magic)] = { 0 };
	struct segment segment;
	int error;

	error = name_check_segment(name);
	if (error == 0)
		error = segment_peek(name, 0, magic, sizeof(magic), &segment, NULL);
	if (error != 0)
		return error;
	/* Other files in /dev/shm belong to other programs. */
	if (memcmp(magic, LAYOUT_MAGIC, sizeof(magic)) != 0)
		return -EMEDIUMTYPE;
	return segment_unlink(name);
}
