/*
 * next: walk the segments of the host.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <string.h>

#include "export.h"
#include "layout.h"
#include "name.h"
#include "segment.h"

EXPORT int shmlimit_next(char name[SHMLIMIT_NAME_MAX + 1])
{
	int found;

	_Static_assert(sizeof(((struct layout_header *)0)->magic) == SEGMENT_MAGIC_LEN, "what a segment begins with");
	if (name == NULL)
		return -EINVAL;
	if (strnlen(name, SHMLIMIT_NAME_MAX + 1) > SHMLIMIT_NAME_MAX)
		return -ENAMETOOLONG;
	do {
		found = segment_next(name, LAYOUT_MAGIC);
	} while (found == 1 && name_check_segment(name) != 0); /* a name that another program chose */
	return found;
}
