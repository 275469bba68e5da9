/*
 * rule_name: the name of a rule.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "export.h"
#include "name.h"
#include "rule.h"

EXPORT int shmlimit_rule_name(struct shmlimit *l, int rule, char name[SHMLIMIT_RULE_NAME_MAX + 1])
{
	struct rule_view view;
	int error;

	if (l == NULL || name == NULL)
		return -EINVAL;
	error = rule_read(l, (uint32_t)rule, &view, name);
	/* A process with write access can put any bytes there, and programs write names to logs. */
	if (error == 0)
		name_clean(name);
	return error;
}
