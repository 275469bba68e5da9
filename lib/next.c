/*
 * next: walk the segments of the host.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <string.h>

#include "export.h"
#include "layout.h"
#include "segment.h"

EXPORT int shmlimit_next(char name[SHMLIMIT_NAME_MAX + 1])
{
	if (name == NULL)
		return -EINVAL;
	if (strnlen(name, SHMLIMIT_NAME_MAX + 1) > SHMLIMIT_NAME_MAX)
		return -ENAMETOOLONG;
	return segment_next(name, LAYOUT_MAGIC, sizeof(((struct layout_header *)0)->magic));
}
