/*
 * rules: define, find, read and remove rules.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>

#include "algorithm.h"
#include "export.h"
#include "name.h"
#include "rule.h"
#include "rule_writer.h"
#include "segment.h"
#include "sized.h"
#include "table.h"

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
	if (rule.flags & SHMLIMIT_RULE_NO_WAIT)
		wait_ns = 0;
	rule.flags &= ~SHMLIMIT_RULE_NO_WAIT;
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
	algorithm_rule(&view.params, &found);
	if (is_damaged(&found))
		return -EUCLEAN;
	found.mode = rule_mode(&view);
	found.set_unix_ns = rule_set_unix_ns(l, (uint32_t)rule, &view);
	found.mark = load_word(&l->rules[rule].mark);
	return sized_out(out, &found, sizeof(found));
}

EXPORT int shmlimit_rule_algorithm(struct shmlimit *l, int rule)
{
	struct rule_view view;

	if (l == NULL)
		return -EINVAL;
	return rule_load(l, (uint32_t)rule, &view) != 0 ? -ESRCH : (int)params_algorithm(&view.params);
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
	algorithm_of(&view.params)->range(&view.params, &range);
	return sized_out(out, &range, sizeof(range));
}

EXPORT int shmlimit_rule_capacity_max(const struct shmlimit_rule *rule, uint64_t *capacity)
{
	struct shmlimit_rule known;
	int error = sized_in(&known, rule, sizeof(known));

	known.flags &= ~SHMLIMIT_RULE_NO_WAIT;
	if (error == 0 && capacity == NULL)
		error = -EINVAL;
	return error != 0 ? error : algorithm_capacity_max(&known, capacity);
}

EXPORT int shmlimit_rule_remove(struct shmlimit *l, const char *rule_name)
{
	int error, lock, id;

	if (l == NULL)
		return -EINVAL;
	error = name_check_any_rule(rule_name);
	if (error == 0 && l->read_only)
		error = -EROFS;
	if (error == 0)
		error = segment_lock(l->name, l->device, l->inode, SEGMENT_LOCK_WAIT_NS, &lock);
	if (error != 0)
		return error;
	id = rule_find(l, rule_name);
	if (id >= 0) {
		uint64_t *published = &l->rules[id].published;

		/* ORDER before the slots are freed: a claim that ends after that asks rule_holds(). */
		publish(published, load_acquire(published) & ~(uint64_t)1);
		table_clear(l, id);
	}
	segment_unlock(lock);
	return id < 0 ? id : 0;
}
