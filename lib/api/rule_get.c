/*
 * rule_find, _get, _algorithm, _name, _range: what a rule is; _capacity_max: what it can be.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "algorithm.h"
#include "export.h"
#include "name.h"
#include "rule.h"
#include "sized.h"

EXPORT int shmlimit_rule_find(struct shmlimit *l, const char *rule_name)
{
	int error;

	if (l == NULL)
		return -EINVAL;
	error = name_check_any_rule(rule_name);
	return error != 0 ? error : rule_find(l, rule_name);
}

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

/* What no rule is set with, so that callers may divide by it. A WINDOW's count may be left out. */
static int is_damaged(const struct shmlimit_rule *rule)
{
	return rule->capacity == 0 || rule->period_ns == 0 || (rule->count == 0 && rule->algorithm != SHMLIMIT_WINDOW);
}

EXPORT int shmlimit_rule_get(struct shmlimit *l, int rule, struct shmlimit_rule *out)
{
	struct shmlimit_rule found = { 0 };
	struct rule_view view;
	int error;

	if (l == NULL)
		return -EINVAL;
	error = rule_read(l, (uint32_t)rule, &view, NULL);
	if (error != 0)
		return error;
	algorithm_rule(&view.terms, &found);
	if (is_damaged(&found))
		return -EUCLEAN;
	found.mode = rule_mode(&view);
	found.set_unix_ns = rule_set_unix_ns(l, (uint32_t)rule, &view);
	return sized_out(out, &found, sizeof(found));
}

EXPORT int shmlimit_rule_algorithm(struct shmlimit *l, int rule)
{
	struct rule_view view;

	if (l == NULL)
		return -EINVAL;
	return rule_load(l, (uint32_t)rule, &view) != 0 ? -ESRCH : (int)terms_algorithm(&view.terms);
}

EXPORT int shmlimit_rule_capacity_max(const struct shmlimit_rule *rule, uint64_t *capacity)
{
	struct shmlimit_rule known;
	int error = sized_in(&known, rule, sizeof(known));

	if (error == 0 && capacity == NULL)
		error = -EINVAL;
	return error != 0 ? error : algorithm_capacity_max(&known, capacity);
}

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
	algorithm_range(&view.terms, &range);
	return sized_out(out, &range, sizeof(range));
}
