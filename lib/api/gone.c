/*
 * gone: is a segment still the one of its name?
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>

#include "export.h"
#include "limiter.h"
#include "segment.h"

EXPORT int shmlimit_gone(struct shmlimit *l)
{
	if (l == NULL)
		return -EINVAL;
	/* Nobody else gets the inode's number while the handle maps the file. */
	return segment_moved(l->name, l->device, l->inode);
}
