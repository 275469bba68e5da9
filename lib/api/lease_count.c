/*
 * lease_count: count what happened between a host and its backend.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>

#include "clock.h"
#include "counter.h"
#include "export.h"

EXPORT int shmlimit_lease_count(struct shmlimit *l, uint32_t which, uint64_t n)
{
	if (l == NULL || which > SHMLIMIT_LEASE_BREAKER_OPENINGS)
		return -EINVAL;
	if (l->read_only)
		return -EROFS;
	counter_add_lease(l, LEASE_BACKEND_ERRORS + which, n, clock_read(l->clock_id));
	return 0;
}
