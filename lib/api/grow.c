/*
 * grow: give a segment a larger table.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>

#include "export.h"
#include "segment.h"
#include "table_grow.h"

static int grow(struct shmlimit *l, uint64_t slots, struct when when)
{
	int error, lock;

	if (l == NULL)
		return -EINVAL;
	if (l->read_only)
		return -EROFS;
	if (slots > l->lines_max * SLOTS_PER_LINE)
		return -EFBIG;
	error = segment_lock(l->name, l->device, l->inode, SEGMENT_LOCK_WAIT_NS, &lock);
	if (error != 0)
		return error;
	error = table_grow(l, (slots + SLOTS_PER_LINE - 1) / SLOTS_PER_LINE, when);
	segment_unlock(lock);
	return error;
}

EXPORT int shmlimit_grow(struct shmlimit *l, uint64_t slots)
{
	return grow(l, slots, when_clock());
}

EXPORT int shmlimit_grow_at(struct shmlimit *l, uint64_t slots, uint64_t now_ns)
{
	return grow(l, slots, when_given(now_ns));
}
