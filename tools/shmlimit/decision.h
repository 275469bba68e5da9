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

/* The commands that take or refund a rule's tokens differ in one call only. */
typedef int decision_verb(struct shmlimit *limiter, int rule, const void *key, size_t key_len, uint64_t tokens,
                          struct shmlimit_result *r);
typedef int reservation_verb(struct shmlimit *limiter, int rule, const void *key, size_t key_len, uint64_t tokens,
                             uint64_t max_wait_ns, struct shmlimit_result *r);

extern const struct command_option decision_options[], take_options[], reservation_options[], refund_options[],
	charge_options[];

int decision_run(const struct call *call, uint32_t flags, decision_verb *verb);
int reservation_run(const struct call *call, reservation_verb *verb);
void decision_print(int answer, const struct shmlimit_result *r);
json_t *decision_json(int answer, const struct shmlimit_result *r);

#endif
