/*
 * rules: what stands under each id, as a whole, to be compared.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_CRASH_RULES_H
#define TESTS_CRASH_RULES_H

#include "scene.h"

struct rules {
	int found[RULES];
	char name[RULES][SHMLIMIT_RULE_NAME_MAX + 1];
	struct shmlimit_rule rule[RULES]; /* when each was set apart: a call that is made again sets it later */
};

static inline void rules_read(struct rules *rules)
{
	memset(rules, 0, sizeof(*rules));
	for (int id = 0; id < (int)RULES; id++) {
		rules->rule[id].struct_size = sizeof(rules->rule[id]);
		rules->found[id] = shmlimit_rule_get(scene.l, id, &rules->rule[id]) == 0 &&
		                   shmlimit_rule_name(scene.l, id, rules->name[id]) == 0;
		rules->rule[id].set_unix_ns = 0;
	}
}

static inline int rules_agree(const struct rules *a, const struct rules *b, int id)
{
	return a->found[id] == b->found[id] && strcmp(a->name[id], b->name[id]) == 0 &&
	       memcmp(&a->rule[id], &b->rule[id], sizeof(a->rule[id])) == 0;
}

/* Is each rule one or the other, all of it? */
static inline int rules_are_due(const struct rules *before, const struct rules *after)
{
	struct rules now;
	int due = 1;

	rules_read(&now);
	for (int id = 0; id < (int)RULES; id++)
		due &= rules_agree(&now, before, id) || rules_agree(&now, after, id);
	return due;
}

#endif
