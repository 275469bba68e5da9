/*
 * rule_range: the shortest and longest times that a rule can tell.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "algorithm.h"
#include "export.h"
#include "rule.h"
#include "sized.h"

EXPORT int shmlimit_rule_range(struct shmlimit *l, int rule, struct shmlimit_range *out)
{
	struct shmlimit_range range = { 0 };
	struct rule_view view;
	int error;

	if (l == NULL)
		return -EINVAL;
	error = rule_load(l, (uint32_t)rule, &view);
	if (error != 0)
		return error;
	algorithm_of(&view.params)->range(&view.params, &range);
	return sized_out(out, &range, sizeof(range));
}
