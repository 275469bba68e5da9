/*
 * rule_facts.h: all there is to say about a rule.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef RULE_FACTS_H
#define RULE_FACTS_H

#include <jansson.h>

#include "shmlimit.h"

/* All there is to say about a rule. */
struct rule_facts {
	int id;
	char name[SHMLIMIT_RULE_NAME_MAX + 1];
	struct shmlimit_rule rule;
	struct shmlimit_range range;
};

int rule_find(struct shmlimit *limiter, const char *segment, const char *name, int *id);
int rule_is_internal(const char *name);     /* made by a library: a throttle's, a host's share, the breaker */
int rule_is_breaker(const char *name);      /* the circuit breaker of libshmlimit-global: no decisions of users */
int rule_breaker(struct shmlimit *limiter); /* its id, or negative */
int rule_is_pause(struct shmlimit *limiter, int id); /* the keys of pauses, see shmlimit_pause() */
/*
 * Of all rules but those whose decisions are steps of others: the breaker, pauses, lines of delay=.
 */
void rule_counters_all(struct shmlimit *limiter, struct shmlimit_counters *out);
int rule_read(struct shmlimit *limiter, int id, struct rule_facts *out); /* 0 or -errno, silently */
json_t *rule_json(const struct rule_facts *facts);

#endif
