/*
 * nearest.h: the word that was probably meant.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_NEAREST_H
#define SHMLIMIT_LIB_NEAREST_H

/* Of several words, the one that was probably meant. */
struct nearest {
	const char *word; /* as it was typed; all else is zero at first */
	unsigned distance;
	char best[32], text[64];
};

void nearest_try(struct nearest *nearest, const char *candidate);
/* "did you mean --json? ", or "" */
const char *nearest_text(struct nearest *nearest, const char *dashes);

#endif
