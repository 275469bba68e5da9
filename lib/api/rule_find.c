/*
 * rule_find: the id of a rule.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "export.h"
#include "name.h"
#include "rule.h"

EXPORT int shmlimit_rule_find(struct shmlimit *l, const char *rule_name)
{
	int error;

	if (l == NULL)
		return -EINVAL;
	error = name_check_any_rule(rule_name);
	return error != 0 ? error : rule_find(l, rule_name);
}
