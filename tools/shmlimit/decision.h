/*
 * decision.h: what the commands share that take or refund tokens.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef DECISION_H
#define DECISION_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "command.h"

/*
 * The commands that take or refund a rule's tokens differ in one call only, or two: the other is by
 * a limit of --limit.
 */
typedef int decision_verb(struct shmlimit *limiter, int rule, const void *key, size_t key_len, uint64_t tokens,
                          struct shmlimit_result *r);
typedef int reservation_verb(struct shmlimit *limiter, int rule, const void *key, size_t key_len, uint64_t tokens,
                             uint64_t max_wait_ns, struct shmlimit_result *r);
typedef int limit_verb(struct shmlimit *limiter, int rule, const void *key, size_t key_len, uint64_t tokens,
                       const struct shmlimit_limit *limit, struct shmlimit_result *r);

/* A row of --help for each of them. */
#define LIMIT_ROW \
	{ \
		"limit", "LIMIT", "decide by this limit, under a gcra rule: 5/minute, '10/s burst 20'" \
	}

extern const struct command_option decision_options[], take_options[], reservation_options[], refund_options[],
	charge_options[];

int decision_run(const struct call *call, uint32_t flags, decision_verb *verb, limit_verb *by_limit);
int reservation_run(const struct call *call, reservation_verb *verb, limit_verb *by_limit);
/* --limit into *limit, whose struct_size is 0 if it is not given. */
int limit_option_read(const struct call *call, struct shmlimit_limit *limit);
/*
 * Returns 0, or why the rule cannot be read. UINT64_MAX: a limit of --limit waits as long as its
 * rule.
 */
int limit_wait_set(struct shmlimit *limiter, int id, uint64_t max_wait_ns, struct shmlimit_limit *limit);
/* Says what is wrong with a decision, also with its --limit. */
int fail_decision(const struct call *call, const char *rule, int error);
void decision_print(int answer, const struct shmlimit_result *r);
json_t *decision_json(int answer, const struct shmlimit_result *r);

#endif
