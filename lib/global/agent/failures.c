/*
 * failures: how many requests on_failure decided.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "export.h"
#include "mailbox.h"

EXPORT uint64_t shmlimit_global_failures(struct shmlimit *limiter, int rule)
{
	const struct requests *q;
	size_t size = 0;
	void *area;

	if (limiter == NULL)
		return 0;
	area = shmlimit_area(limiter, &size);
	q = requests_in(area, size);
	return q != NULL ? requests_failures(q, rule) : 0;
}
