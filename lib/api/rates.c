/*
 * rates: a rate that is a double. Pure.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <math.h>
#include <stddef.h>

#include "export.h"
#include "fraction.h"
#include "shmlimit.h"

EXPORT int shmlimit_rate_from_double(double rate, uint64_t per_ns, uint64_t *refill, uint64_t *period_ns)
{
	uint64_t count, period;
	int error;

	if (refill == NULL || period_ns == NULL || per_ns == 0 || !(rate > 0) || !isfinite(rate))
		return -EINVAL;
	error = fraction_rate_double(rate, per_ns, &count, &period);
	if (error != 0)
		return error;
	*refill = count;
	*period_ns = period;
	return 0;
}
