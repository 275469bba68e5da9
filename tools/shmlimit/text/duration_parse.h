/*
 * duration_parse.h: durations and limits that a user gives, and what is wrong with them.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef DURATION_PARSE_H
#define DURATION_PARSE_H

#include <stdint.h>

#include "duration.h"
#include "number_text.h"
#include "shmlimit.h"

/* `what` begins the message, as in "--max-wait". They return a status. */
int duration_parse(const char *what, const char *text, uint64_t *ns);                   /* 1.5s, 1h30m, 0 */
int limit_option_parse(const char *what, const char *text, struct shmlimit_rule *rule); /* as shmlimit_rule_parse() */
int call_limit_parse(const char *what, const char *text, struct shmlimit_limit *limit); /* as shmlimit_limit_parse() */

const char *resolution_text(char text[TEXT_LEN], uint64_t ps); /* picoseconds: "0.954ns" */

#endif
