/*
 * rule_capacity_max: the largest capacity that the rest of a rule allows.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>

#include "algorithm.h"
#include "export.h"
#include "sized.h"

EXPORT int shmlimit_rule_capacity_max(const struct shmlimit_rule *rule, uint64_t *capacity)
{
	struct shmlimit_rule known;
	int error = sized_in(&known, rule, sizeof(known));

	if (error == 0 && capacity == NULL)
		error = -EINVAL;
	return error != 0 ? error : algorithm_capacity_max(&known, capacity);
}
