/*
 * number_text.h: numbers as people write them.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef NUMBER_TEXT_H
#define NUMBER_TEXT_H

#include <stddef.h>
#include <stdint.h>

/*
 * Readers of text: `what` begins the message, as in "--slots". On an error nothing is stored. Those that end in _parse
 * return a status. Those that end in _scan move *text behind what they read and return 0, -EINVAL: it is none, or
 * -ERANGE: it is too large.
 */
int digits_scan(const char **text, uint64_t *value); /* of digits alone */
int number_scan(const char **text, uint64_t *value); /* 1500, 1.5k, 64Ki; -EDOM: not a whole number */
int number_parse(const char *what, const char *text, uint64_t min, uint64_t max, uint64_t *value);

/* A decimal number is whole + fraction / scale; *value is that number of units: 0, -ERANGE, or -EDOM: not a whole number. */
int decimal_scan(const char **text, uint64_t *whole, uint64_t *fraction, uint64_t *scale);
int decimal_times(uint64_t whole, uint64_t fraction, uint64_t scale, uint64_t unit, uint64_t *value);

/* Writers of text: TEXT_LEN bytes are enough for each. All but size_text() are read back. */
#define TEXT_LEN 64
const char *number_text(char text[TEXT_LEN], uint64_t number); /* "64Ki", "10M", "1001" */
const char *size_text(char text[TEXT_LEN], uint64_t bytes);    /* rounded down: "108.5Ki" */

#endif
