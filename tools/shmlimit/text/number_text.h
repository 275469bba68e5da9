/*
 * number_text.h: numbers as people write them.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef NUMBER_TEXT_H
#define NUMBER_TEXT_H

#include <stddef.h>
#include <stdint.h>

/* Writers of text: TEXT_LEN bytes are enough for each. What number_text() writes is read back. */
#define TEXT_LEN 96
const char *number_text(char text[TEXT_LEN], uint64_t number); /* "64Ki", "10M", "1001" */
const char *size_text(char text[TEXT_LEN], uint64_t bytes);    /* rounded down: "108.5Ki" */
const char *resolution_text(char text[TEXT_LEN], uint64_t ps); /* picoseconds: "0.954ns" */

#endif
