/*
 * rule: writers of rules, one at a time, and those readers that want all of a
 * record. See rule.h for how the two get along.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <string.h>

#include "counter.h"
#include "export.h"
#include "funnel.h"
#include "name.h"
#include "rule.h"
#include "segment.h"
#include "sized.h"
#include "table.h"

#define NAME_WORDS ((SHMLIMIT_RULE_NAME_MAX + 1) / sizeof(uint64_t))

static void copy_words(uint64_t *to, const void *from, size_t words)
{
	const uint64_t *p = from;

	for (size_t i = 0; i < words; i++)
		to[i] = load_word(&p[i]);
}

int rule_read(const struct shmlimit *l, uint32_t id, struct rule_view *view, char name[SHMLIMIT_RULE_NAME_MAX + 1])
{
	const struct layout_rule *record;
	uint64_t text[NAME_WORDS];

	if (id >= l->rule_count)
		return -ESRCH;
	record = &l->rules[id];
	for (int i = 0; i < RULE_RETRIES; i++) {
		view->published = load_acquire(&record->published);
		if ((view->published & 1) == 0)
			return -ESRCH;
		copy_words((uint64_t *)(void *)&view->terms, rule_terms(record, view->published),
		           sizeof(view->terms) / sizeof(uint64_t));
		copy_words(text, record->name, NAME_WORDS);
		if (load_again(&record->published) != view->published)
			continue;
		if (name != NULL) {
			memcpy(name, text, sizeof(text));
			name[SHMLIMIT_RULE_NAME_MAX] = '\0';
		}
		return 0;
	}
	return -ESRCH;
}

static int find(const struct shmlimit *l, const char *rule_name)
{
	char name[SHMLIMIT_RULE_NAME_MAX + 1];
	struct rule_view view;

	for (uint32_t id = 0; id < l->rule_count; id++)
		if (rule_read(l, id, &view, name) == 0 && strcmp(name, rule_name) == 0)
			return (int)id;
	return -ESRCH;
}

/* An id that is not in use; one never used before one whose old funnels have to be cleared away first. */
static int find_unused(const struct shmlimit *l)
{
	int used_before = -EXFULL;

	for (uint32_t id = 0; id < l->rule_count; id++) {
		uint64_t published = load_acquire(&l->rules[id].published);

		if (published == 0)
			return (int)id;
		if ((published & 1) == 0 && used_before < 0)
			used_before = (int)id;
	}
	return used_before;
}

static void store_words(void *to, const void *from, size_t len)
{
	uint64_t *p = to;
	uint64_t word;

	for (size_t i = 0; i < len / sizeof(word); i++) {
		memcpy(&word, (const char *)from + i * sizeof(word), sizeof(word));
		store_relaxed(&p[i], word);
	}
}

static void define(const struct shmlimit *l, uint32_t id, const char *rule_name, uint32_t mode,
                   const struct layout_terms *terms)
{
	struct layout_rule *record = &l->rules[id];
	uint64_t version = (load_acquire(&record->published) >> 1) + 1;
	char name[SHMLIMIT_RULE_NAME_MAX + 1] = "";
	uint64_t counted[COUNTERS] = { 0 };

	strcpy(name, rule_name);
	counter_sum(l, id, counted);
	/* A remover may have been killed before he was done with the table. */
	if (version > 1)
		table_clear(l, id);
	store_words(record->name, name, sizeof(name));
	store_words(record->counted_before, counted, sizeof(counted));
	store_words(&record->terms[version % RULE_VERSIONS], terms, sizeof(*terms));
	store_relaxed32(&record->mode, mode);
	store_release(&record->published, version * 2 + 1);
}

static int check(const struct shmlimit_rule *rule, struct layout_terms *terms)
{
	memset(terms, 0, sizeof(*terms));
	if (rule->algorithm != SHMLIMIT_FUNNEL || rule->mode > SHMLIMIT_OFF || rule->flags != 0)
		return -EINVAL;
	for (size_t i = 0; i < sizeof(rule->reserved) / sizeof(rule->reserved[0]); i++)
		if (rule->reserved[i] != 0)
			return -E2BIG;
	terms->count = rule->count;
	terms->period_ns = rule->period_ns;
	return funnel_compile(rule->capacity, rule->count, rule->period_ns, terms);
}

/* The lock is held. */
static int set_locked(struct shmlimit *l, const char *rule_name, uint32_t mode, const struct layout_terms *terms)
{
	struct rule_view view;
	int id = find(l, rule_name);

	if (id < 0) {
		id = find_unused(l);
		if (id >= 0)
			define(l, (uint32_t)id, rule_name, mode, terms);
		return id;
	}
	/* All that decides, not how it was written: 30/60s is 1/2s. */
	if (rule_load(l, (uint32_t)id, &view, 1) != 0 ||
	    memcmp(&view.terms, terms, offsetof(struct layout_terms, count)) != 0)
		return -EBUSY;
	store_relaxed32(&l->rules[id].mode, mode);
	return id;
}

EXPORT int shmlimit_rule_set(struct shmlimit *l, const char *rule_name, const struct shmlimit_rule *given)
{
	struct layout_terms terms;
	struct shmlimit_rule rule;
	int error, lock, id;

	if (l == NULL)
		return -EINVAL;
	error = name_check_rule(rule_name);
	if (error == 0)
		error = sized_in(&rule, given, sizeof(rule));
	if (error == 0)
		error = check(&rule, &terms);
	if (error == 0 && l->read_only)
		error = -EROFS;
	if (error == 0)
		error = segment_lock(l->name, l->device, l->inode, &lock);
	if (error != 0)
		return error;
	id = set_locked(l, rule_name, rule.mode, &terms);
	segment_unlock(lock);
	return id;
}

EXPORT int shmlimit_rule_remove(struct shmlimit *l, const char *rule_name)
{
	int error, lock, id;

	if (l == NULL)
		return -EINVAL;
	error = name_check_rule(rule_name);
	if (error == 0 && l->read_only)
		error = -EROFS;
	if (error == 0)
		error = segment_lock(l->name, l->device, l->inode, &lock);
	if (error != 0)
		return error;
	id = find(l, rule_name);
	if (id >= 0) {
		uint64_t *published = &l->rules[id].published;

		store_release(published, load_acquire(published) & ~(uint64_t)1);
		table_clear(l, id);
	}
	segment_unlock(lock);
	return id < 0 ? id : 0;
}

EXPORT int shmlimit_rule_find(struct shmlimit *l, const char *rule_name)
{
	int error;

	if (l == NULL)
		return -EINVAL;
	error = name_check_rule(rule_name);
	return error != 0 ? error : find(l, rule_name);
}

EXPORT int shmlimit_rule_name(struct shmlimit *l, int rule, char name[SHMLIMIT_RULE_NAME_MAX + 1])
{
	struct rule_view view;

	if (l == NULL || name == NULL)
		return -EINVAL;
	return rule_read(l, (uint32_t)rule, &view, name);
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
	found.algorithm = terms_algorithm(&view.terms);
	found.mode = rule_mode(l, (uint32_t)rule);
	found.capacity = view.terms.capacity;
	found.count = view.terms.count;
	found.period_ns = view.terms.period_ns;
	return sized_out(out, &found, sizeof(found));
}

EXPORT int shmlimit_rule_range(struct shmlimit *l, int rule, struct shmlimit_range *out)
{
	struct shmlimit_range range = { 0 };
	struct rule_view view;
	int error;

	if (l == NULL)
		return -EINVAL;
	error = rule_load(l, (uint32_t)rule, &view, 1);
	if (error != 0)
		return error;
	funnel_range(&view.terms, &range);
	return sized_out(out, &range, sizeof(range));
}
