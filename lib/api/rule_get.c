/*
 * rule_get: a rule as it was set.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "algorithm.h"
#include "export.h"
#include "rule.h"
#include "sized.h"

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
	algorithm_rule(&view.params, &found);
	if (is_damaged(&found))
		return -EUCLEAN;
	found.mode = rule_mode(&view);
	found.set_unix_ns = rule_set_unix_ns(l, (uint32_t)rule, &view);
	found.mark = load_word(&l->rules[rule].mark);
	return sized_out(out, &found, sizeof(found));
}
