/*
 * rule: readers of records. See rule.h for how they get along with writers.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <string.h>

#include "counter.h"
#include "rule.h"
#include "segment.h"

#define NAME_WORDS ((SHMLIMIT_RULE_NAME_MAX + 1) / sizeof(uint64_t))

__attribute__((cold, noinline)) uint32_t rule_count(const struct shmlimit *l)
{
	uint64_t known = load_relaxed(&l->rule_count), rules = load_acquire(&l->header->rules_now);

	/*
	 * INVARIANT I7: a damaged number may lead into a hole, which a full file system cannot
	 * fill.
	 */
	if (rules <= known || rules > l->rules_max ||
	    !segment_has((const uint64_t *)(const void *)&l->rules[rules] - 1) ||
	    !segment_has(counter_line(l, l->cpus + l->stripes - 1, (int64_t)rules - 1)))
		return (uint32_t)known;
	store_relaxed(&l->self->rule_count, rules);
	return (uint32_t)rules;
}

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

	if (!rule_is_listed(l, id))
		return -ESRCH;
	record = &l->rules[id];
	for (int i = 0; i < RULE_RETRIES; i++) {
		view->published = load_acquire(&record->published);
		if (!published_in_use(view->published))
			return -ESRCH;
		copy_words((uint64_t *)(void *)&view->params, rule_params(record, rule_version(view)),
		           sizeof(view->params) / sizeof(uint64_t));
		copy_words(text, record->name, NAME_WORDS);
		/* ORDER pairs with publish(): unchanged, so all that was copied is one version. */
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

/* A version's time is overwritten only by the fourth one after it. */
uint64_t rule_set_unix_ns(const struct shmlimit *l, uint32_t id, const struct rule_view *view)
{
	return load_word(&l->rules[id].set_unix_ns[rule_version(view) % RULE_VERSIONS]);
}

/* Have two versions one algorithm? A word that was written under another says nothing. */
static int is_same_algorithm(const struct layout_rule *record, uint64_t version, uint64_t other)
{
	struct layout_params one = { .shape = load_word(&rule_params(record, version)->shape) };
	struct layout_params two = { .shape = load_word(&rule_params(record, other)->shape) };

	return params_algorithm(&one) == params_algorithm(&two);
}

int rule_load_tag(const struct shmlimit *l, uint64_t tag, struct rule_view *view)
{
	const struct layout_rule *record;
	uint32_t id = tag_rule(tag);

	if (!rule_is_listed(l, id))
		return -ESRCH;
	record = &l->rules[id];
	for (int i = 0; i < RULE_RETRIES; i++) {
		uint64_t published = load_acquire(&record->published);
		uint64_t version = published_version(published);
		uint64_t age = (version - tag) & TAG_VERSION;

		/* Three versions ago would be the entry that the next writer is filling. */
		if (!published_in_use(published) || (tag & (TAG_TENTATIVE | TAG_FROZEN)) != 0 || age == 3 ||
		    version - age < load_word(&record->born) || age > version)
			return -ESRCH;
		int is_kept = age == 0 || is_same_algorithm(record, version, version - age);

		rule_copy(rule_params(record, version - age), &view->params, 1);
		view->published = published;
		/* ORDER as in rule_read(). */
		if (load_again(&record->published) == published)
			return is_kept ? 0 : -ESRCH;
	}
	return -ESRCH;
}

uint64_t rule_plain(const struct shmlimit *l, uint64_t tag)
{
	uint32_t id = tag_rule(tag);
	uint64_t version = rule_is_listed(l, id) ? published_version(load_acquire(&l->rules[id].published)) : 0;

	return tag_plain(tag, version);
}

static int has_name(const struct layout_rule *record, const char *name, size_t size)
{
	uint64_t text[NAME_WORDS];

	for (int i = 0; i < RULE_RETRIES; i++) {
		uint64_t published = load_acquire(&record->published);

		if (!published_in_use(published))
			return 0;
		copy_words(text, record->name, NAME_WORDS);
		/* ORDER as in rule_read(). */
		if (load_again(&record->published) == published)
			return memcmp(text, name, size) == 0;
	}
	return 0;
}

/* Most names differ in their first word, which is all that is read of them. */
int rule_find(const struct shmlimit *l, const char *rule_name)
{
	size_t size = strnlen(rule_name, SHMLIMIT_RULE_NAME_MAX) + 1;
	uint64_t first = 0, mask = 0;

	memcpy(&first, rule_name, size < sizeof(first) ? size : sizeof(first));
	memset(&mask, 0xff, size < sizeof(mask) ? size : sizeof(mask));
	for (uint32_t id = 0, rules = rule_count(l); id < rules; id++) {
		const struct layout_rule *record = &l->rules[id];
		uint64_t word = load_word((const uint64_t *)(const void *)record->name);

		if (((word ^ first) & mask) == 0 && has_name(record, rule_name, size))
			return (int)id;
	}
	return -ESRCH;
}
