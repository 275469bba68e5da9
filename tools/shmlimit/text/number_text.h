/*
 * number_text.h: numbers as people write them.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef NUMBER_TEXT_H
#define NUMBER_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "decimal.h"

/* `what` begins the message, as in "--slots". Returns a status; on an error nothing is stored. */
int number_parse(const char *what, const char *text, uint64_t min, uint64_t max, uint64_t *value);

/* Writers of text: TEXT_LEN bytes are enough for each. All but size_text() are read back. */
#define TEXT_LEN 64
const char *number_text(char text[TEXT_LEN], uint64_t number); /* "64Ki", "10M", "1001" */
const char *size_text(char text[TEXT_LEN], uint64_t bytes);    /* rounded down: "108.5Ki" */

#endif
