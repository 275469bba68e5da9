/*
 * rule_algorithm: which algorithm a rule has.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "export.h"
#include "rule.h"

EXPORT int shmlimit_rule_algorithm(struct shmlimit *l, int rule)
{
	struct rule_view view;

	if (l == NULL)
		return -EINVAL;
	return rule_load(l, (uint32_t)rule, &view) != 0 ? -ESRCH : (int)params_algorithm(&view.params);
}
