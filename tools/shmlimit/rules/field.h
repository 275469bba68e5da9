/*
 * field.h: what a rule is set with, in words.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef FIELD_H
#define FIELD_H

#include <stdint.h>

#include "number_text.h"
#include "shmlimit.h"

/* What a rule is set with. */
enum {
	FIELD_ALGORITHM,
	FIELD_CAPACITY,
	FIELD_RATE,
	FIELD_PERIOD,
	FIELD_WARMUP,
	FIELD_COLD_FACTOR,
	FIELD_COUNT_REFUSED,
	FIELD_MAX_WAIT,
	FIELD_NEXT_PAYS,
	FIELD_CREDIT,
	FIELD_CUT_OFF,
	FIELD_LAW,
	FIELD_LEAST,
	FIELD_ZONE,
	FIELD_PROTECTED,
	FIELD_MODE,
	FIELDS,
};

/* field.c: one of these, in words and in a rule. */
extern const char *const field_names[FIELDS];

int field_parse(const char *rule_name, int field, const char *text, struct shmlimit_rule *rule); /* a status */
const char *field_text(char text[TEXT_LEN], int field, const struct shmlimit_rule *rule);
const char *field_cell(char text[TEXT_LEN], int field, const struct shmlimit_rule *rule); /* of a table: "-" */
int field_applies(int field, uint32_t algorithm); /* does the algorithm have it? */
/* Has the rule none: a limit, since requests bring theirs, or a zone? */
int field_is_empty(int field, const struct shmlimit_rule *rule);
void field_copy(int field, const struct shmlimit_rule *from, struct shmlimit_rule *to);

#endif
