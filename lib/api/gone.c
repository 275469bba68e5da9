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
	/* No other file gets the inode's number while the handle maps this one. */
	return segment_moved(l->name, l->device, l->inode);
}
