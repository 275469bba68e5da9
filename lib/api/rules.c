/*
 * rules: define, find, read and remove rules.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <string.h>

#include "algorithm.h"
#include "export.h"
#include "name.h"
#include "rule.h"
#include "rule_writer.h"
#include "segment.h"
#include "shmlimit.h"
#include "sized.h"
#include "table.h"
#include "zone_file.h"

/* Checks the arguments of a public function. *wait_ns: for how long it waits for the lock. */
static int read_arguments(const struct shmlimit *l, const char *rule_name, const struct shmlimit_rule *given,
                          struct shmlimit_rule *rule, uint64_t *wait_ns)
{
	int error;

	if (l == NULL)
		return -EINVAL;
	error = name_check_any_rule(rule_name);
	if (error == 0)
		error = sized_in(rule, given, sizeof(*rule));
	if (error == 0)
		error = zone_file_fill(rule);
	if (error != 0)
		return error;
	*wait_ns = rule->flags & SHMLIMIT_RULE_NO_WAIT ? 0 : SEGMENT_LOCK_WAIT_NS;
	rule->flags &= ~SHMLIMIT_RULE_NO_WAIT;
	return 0;
}

EXPORT int shmlimit_rule_set(struct shmlimit *l, const char *rule_name, const struct shmlimit_rule *given)
{
	struct shmlimit_rule rule;
	uint64_t wait_ns;
	int error = read_arguments(l, rule_name, given, &rule, &wait_ns);

	return error != 0 ? error : rule_put(l, rule_name, &rule, wait_ns, when_clock());
}

/* In a mark: the mode is of the configuration. */
#define MARK_MODE 2u

/* The number by which shmlimit_rule_ensure() knows what it was given last. */
static uint64_t mark_of_rule(const struct shmlimit_rule *rule)
{
	const uint64_t odd = UINT64_C(0x9e3779b97f4a7c15);
	const uint64_t parts[] = {
		rule->algorithm, rule->mode,        rule->flags,           rule->capacity,          rule->refill,
		rule->period_ns, rule->max_wait_ns, rule->warmup_ns,       rule->cold_factor_milli, rule->credit,
		rule->law,       rule->least,       rule->zone_offsets[0], rule->zone_offsets[1]
	};
	uint64_t mark = 0;

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		mark = (mark ^ (mark >> 32) ^ parts[i]) * odd;
	for (const char *c = rule->zone; *c != '\0'; c++)
		mark = (mark ^ (mark >> 32) ^ (unsigned char)*c) * odd;
	return (mark & ~(uint64_t)3) | 1 | (rule->mode != SHMLIMIT_ENFORCE ? MARK_MODE : 0);
}

/* What a configuration does not say, but an operator or another program. */
static void keep_the_rest(struct shmlimit_rule *wanted, const struct shmlimit_rule *found)
{
	if (wanted->mode == SHMLIMIT_ENFORCE && (found->mark & MARK_MODE) == 0)
		wanted->mode = found->mode;
	if (wanted->algorithm != found->algorithm)
		return;
	wanted->flags |= found->flags;
	if (wanted->max_wait_ns == 0)
		wanted->max_wait_ns = found->max_wait_ns;
	if (wanted->credit == 0)
		wanted->credit = found->credit;
}

static int is_same_rate(const struct shmlimit_rule *a, const struct shmlimit_rule *b)
{
	return a->algorithm == b->algorithm && a->mode == b->mode && a->capacity == b->capacity &&
	       a->refill == b->refill && a->period_ns == b->period_ns && a->law == b->law && a->least == b->least &&
	       strcmp(a->zone, b->zone) == 0;
}

EXPORT int shmlimit_rule_ensure(struct shmlimit *l, const char *rule_name, const struct shmlimit_rule *given)
{
	struct shmlimit_rule wanted, found = { .struct_size = sizeof(found) };
	uint64_t wait_ns;
	int error = read_arguments(l, rule_name, given, &wanted, &wait_ns), id, set;

	if (error != 0)
		return error;
	wanted.mark = mark_of_rule(&wanted);
	id = rule_find(l, rule_name);
	if (id >= 0 && shmlimit_rule_get(l, id, &found) == 0) {
		if (found.mark == wanted.mark) {
			if (!l->read_only)
				rule_note_refused(l, id, 0);
			return id;
		}
		keep_the_rest(&wanted, &found);
	}
	set = rule_replace(l, rule_name, &wanted, wait_ns, when_clock());
	if (set >= 0 || id < 0)
		return set;
	if (is_same_rate(&wanted, &found))
		return id;
	/* These are not of the limit: the segment is gone, or another process has its lock. */
	if (set != -ENOENT && set != -EAGAIN)
		rule_refuse(l, rule_name);
	return set;
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
	const struct traits *traits = traits_of(rule->algorithm);

	if (traits->takes_limits && rule->capacity == 0)
		return rule->refill != 0 || rule->period_ns != 0;
	return rule->capacity == 0 || rule->period_ns == 0 || (rule->refill == 0 && !traits->is_window);
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
	found.refused_unix_ns = load_word(&l->rules[rule].refused_unix_ns);
	return sized_out(out, &found, sizeof(found));
}

/* WHY NOT rule_load(): a gate asks for each request, and needs one word of the twelve. */
EXPORT int shmlimit_rule_algorithm(struct shmlimit *l, int rule)
{
	if (l == NULL)
		return -EINVAL;
	return rule_algorithm(l, (uint32_t)rule);
}

EXPORT int shmlimit_rule_version(struct shmlimit *l, int rule, uint64_t *version)
{
	uint64_t published;

	if (l == NULL || version == NULL)
		return -EINVAL;
	if (!rule_is_listed(l, (uint32_t)rule))
		return -ESRCH;
	published = load_acquire(&l->rules[rule].published);
	if (!published_in_use(published))
		return -ESRCH;
	*version = published & ~PUBLISHED_PAUSED;
	return 0;
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
	int error = l == NULL ? -EINVAL : name_check_any_rule(rule_name);

	if (error == 0 && l->read_only)
		error = -EROFS;
	return error != 0 ? error : rule_remove(l, rule_name);
}
