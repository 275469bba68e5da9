/*
 * now: the time by a segment's clock.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "clock.h"
#include "export.h"
#include "limiter.h"

EXPORT uint64_t shmlimit_now(struct shmlimit *l)
{
	return clock_read(l == NULL ? CLOCK_MONOTONIC : l->clock_id);
}
