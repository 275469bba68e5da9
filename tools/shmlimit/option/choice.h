/*
 * choice.h: one of a few words.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef CHOICE_H
#define CHOICE_H

#include <stdint.h>

struct choice {
	const char *word; /* NULL behind the last */
	uint32_t value;
};

extern const struct choice choices_on_full[], choices_clock[], choices_mode[], choices_yes[], choices_lease[],
	choices_law[];

/* The words for algorithms. The first of one is that which is printed. */
const struct choice *choices_algorithm(void);

int choice_parse(const char *what, const char *text, const struct choice *choices, uint32_t *value);
const char *choice_word(const struct choice *choices, uint32_t value);

#endif
