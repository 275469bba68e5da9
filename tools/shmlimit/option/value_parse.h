/*
 * value_parse.h: numbers, durations and limits that a user gives, and what is wrong with them.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef VALUE_PARSE_H
#define VALUE_PARSE_H

#include <stdint.h>

#include "duration.h"
#include "shmlimit.h"

/*
 * `what` begins the message, as in "--max-wait". They return a status; on an error nothing is
 * stored.
 */
int number_parse(const char *what, const char *text, uint64_t min, uint64_t max, uint64_t *value); /* 64Ki, 1.5k */
/* Above 0, `max` at most, with up to three decimals; in thousandths */
int thousandths_parse(const char *what, const char *text, uint64_t max, uint32_t *value);
int duration_parse(const char *what, const char *text, uint64_t *ns); /* 1.5s, 1h30m, 0 */
int duration_range_parse(const char *what, const char *text, uint64_t least, uint64_t most, uint64_t *ns);
int limit_option_parse(const char *what, const char *text, struct shmlimit_rule *rule); /* as shmlimit_rule_parse() */
int call_limit_parse(const char *what, const char *text, struct shmlimit_limit *limit); /* as shmlimit_limit_parse() */

#endif
