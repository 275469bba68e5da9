/*
 * limit_text: the one reader of limits as people write them, and their printer. Pure. What it reads
 * is in shmlimit(7).
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_LIMIT_TEXT_H
#define SHMLIMIT_LIB_LIMIT_TEXT_H

#include "shmlimit.h"

/* shmlimit_rule_parse(), with arguments that are there. */
int limit_parse(const char *text, struct shmlimit_rule *rule, struct shmlimit_problem *wrong);

/* The words for SHMLIMIT_LAW_VEGAS ..., "" for none, and NULL at the end. */
extern const char *const limit_laws[];

/* shmlimit_rule_text(), the same. */
void limit_text(const struct shmlimit_rule *rule, char text[SHMLIMIT_RULE_TEXT_MAX]);

/* "5/m": a period of one unit is that unit alone. Needs SHMLIMIT_RULE_TEXT_MAX bytes. */
const char *rate_text(char *text, uint64_t count, uint64_t period_ns);

#endif
