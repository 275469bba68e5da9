/*
 * count_undecided: requests that a server let pass or refused without the limiter.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>

#include "atomic.h"
#include "export.h"
#include "limiter.h"

EXPORT int shmlimit_count_undecided(struct shmlimit *l, uint32_t refused, uint64_t n)
{
	if (l == NULL || refused > 1)
		return -EINVAL;
	if (l->read_only)
		return -EROFS;
	add_relaxed(&l->header->undecided[refused], n);
	return 0;
}
