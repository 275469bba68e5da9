/*
 * rule_find: the id of a rule.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "export.h"
#include "name.h"
#include "rule.h"

/* WHY the name is checked last: that costs more than to find it. */
EXPORT int shmlimit_rule_find(struct shmlimit *l, const char *rule_name)
{
	int id, error;

	if (l == NULL || rule_name == NULL)
		return -EINVAL;
	id = rule_name[0] != '\0' ? rule_find(l, rule_name) : -ESRCH;
	if (id >= 0)
		return id;
	error = name_check_any_rule(rule_name);
	return error != 0 ? error : id;
}
