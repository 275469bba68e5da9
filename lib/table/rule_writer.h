/*
 * rule_writer: writers of rules, one at a time by the segment's lock. rule.h says how readers and
 * writers get along.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_RULE_WRITER_H
#define SHMLIMIT_LIB_RULE_WRITER_H

#include "rule.h"

/* shmlimit_rule_set(), with a valid name. Waits for the lock for up to wait_ns. */
int rule_put(struct shmlimit *l, const char *name, const struct shmlimit_rule *rule, uint64_t wait_ns,
             struct when when);

/* The same, but a rule of another algorithm is replaced: its keys begin again. */
int rule_replace(struct shmlimit *l, const char *name, const struct shmlimit_rule *rule, uint64_t wait_ns,
                 struct when when);

/* shmlimit_rule_remove(), with a valid name and a handle that can write. */
int rule_remove(struct shmlimit *l, const char *name);

/*
 * Note when another limit was refused for the rule of this name, for shmlimit_rule_get(). Not where
 * the lock is another process's: a program that is refused tries again.
 */
void rule_refuse(struct shmlimit *l, const char *name);

/* The same, of an id; 0: a change succeeded. */
void rule_note_refused(const struct shmlimit *l, int id, uint64_t unix_ns);

/* Define a rule under an id that is not in use, by a caller that keeps other writers out. */
struct rule_definition {
	const char *name;
	uint32_t mode;
	const struct layout_params *params;
	uint64_t set_unix_ns, mark;
	uint64_t paused; /* for `published` */
};

void rule_define(const struct shmlimit *l, uint32_t id, const struct rule_definition *rule);

#endif
