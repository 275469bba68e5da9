/*
 * check_names: whether a segment and a rule may have these names.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <stddef.h>

#include "export.h"
#include "name.h"
#include "shmlimit.h"

EXPORT int shmlimit_check_names(const char *name, const char *rule_name)
{
	int error = name != NULL ? name_check_segment(name) : 0;

	return error == 0 && rule_name != NULL ? name_check_any_rule(rule_name) : error;
}
