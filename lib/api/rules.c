/*
 * rules: define a rule, or change it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "export.h"
#include "name.h"
#include "rule_writer.h"
#include "segment.h"
#include "sized.h"

static int rule_set(struct shmlimit *l, const char *rule_name, const struct shmlimit_rule *given, struct when when)
{
	uint64_t wait_ns = SEGMENT_LOCK_WAIT_NS;
	struct shmlimit_rule rule;
	int error;

	if (l == NULL)
		return -EINVAL;
	error = name_check_new_rule(rule_name);
	if (error == 0)
		error = sized_in(&rule, given, sizeof(rule));
	if (error != 0)
		return error;
	if (rule.flags & SHMLIMIT_NO_WAIT)
		wait_ns = 0;
	rule.flags &= ~SHMLIMIT_NO_WAIT;
	return rule_put(l, rule_name, &rule, wait_ns, when);
}

EXPORT int shmlimit_rule_set(struct shmlimit *l, const char *rule_name, const struct shmlimit_rule *given)
{
	return rule_set(l, rule_name, given, when_clock());
}

EXPORT int shmlimit_rule_set_at(struct shmlimit *l, const char *rule_name, const struct shmlimit_rule *given,
                                uint64_t now_ns)
{
	return rule_set(l, rule_name, given, when_given(now_ns));
}
