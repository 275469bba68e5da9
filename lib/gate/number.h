/*
 * number: a whole number in a spec.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_GATE_NUMBER_H
#define SHMLIMIT_GATE_NUMBER_H

#include <stdint.h>

/*
 * Read a decimal number from `min` to `max` that `end` follows. Returns what follows `end`, or where that is a NUL, the NUL
 * itself; NULL if there is no such number.
 */
const char *number(const char *at, uint64_t min, uint64_t max, char end, uint64_t *value);

/* What follows `name` if the text begins with it, else NULL. */
const char *number_after(const char *text, const char *name);

#endif
