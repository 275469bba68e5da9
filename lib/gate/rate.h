/*
 * rate: a rate as people write it in their programs' settings.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_GATE_RATE_H
#define SHMLIMIT_GATE_RATE_H

#include "shmlimit.h"

/*
 * Read "COUNT/[N] UNIT [burst B]" into capacity, count and period_ns of *rule: "5/minute", "100 per hour", "10r/s
 * burst=20", "1 per 10 seconds". The unit is second, minute, hour, day, week, month (30 days), year (365 days), or an
 * abbreviation. COUNT and B may end in K, M or G, which are decimal. Without a burst the capacity is COUNT. Or read
 * "COUNT at once [for N UNIT]", which also sets the algorithm to HOLD, and count to COUNT. Returns 0, or -EINVAL with *rule
 * unchanged.
 */
int rate_read(const char *text, struct shmlimit_rule *rule);

#endif
