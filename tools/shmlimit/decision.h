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

/* A row of --help for each of them. */
#define LIMIT_ROW \
	{ \
		"limit", "LIMIT", "decide by this limit: 5/minute under a gcra rule, '20 at once' under hold" \
	}

extern const struct command_option decision_options[], take_options[], reservation_options[], refund_options[],
	charge_options[];

/* The commands that take or refund tokens differ in the verb only. */
int decision_run(const struct call *call, uint32_t flags, enum shmlimit_verb verb);
/* --limit into *limit, whose struct_size is 0 if it is not given. */
int limit_option_read(const struct call *call, struct shmlimit_limit *limit);
/*
 * Returns 0, or why the rule cannot be read. UINT64_MAX: a limit of --limit waits as long as its
 * rule.
 */
int limit_wait_set(struct shmlimit *limiter, int id, uint64_t max_wait_ns, struct shmlimit_limit *limit);
/* Says what is wrong with a decision, also with its --limit. */
/* Of a rule whose places a reservation would enter, and none would leave. */
int places_refuse(struct shmlimit *limiter, int id, const char *segment, const char *rule);
int fail_decision(const struct call *call, const char *rule, int error);
void decision_print(int answer, const struct shmlimit_result *r);
json_t *decision_json(int answer, const struct shmlimit_result *r);

#endif
