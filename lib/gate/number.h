/*
 * number: a whole number in a spec.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_GATE_NUMBER_H
#define SHMLIMIT_GATE_NUMBER_H

#include <stdint.h>

/*
 * Read a decimal number from `min` to `max` that is followed by `end`. Returns a pointer behind
 * `end`, or to the NUL if `end` is the NUL. Returns NULL if there is no such number.
 */
const char *number(const char *at, uint64_t min, uint64_t max, char end, uint64_t *value);

/*
 * Read a number above 0 with up to three decimals, `max` at most, that the NUL follows, as
 * thousandths. Returns as number().
 */
const char *number_thousandths(const char *at, uint32_t max, uint32_t *value);

/* Returns the part of the text after `name` if the text begins with it, else NULL. */
const char *number_after(const char *text, const char *name);

#endif
