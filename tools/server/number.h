/*
 * number: a whole number in an option.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_SERVER_NUMBER_H
#define SHMLIMIT_SERVER_NUMBER_H

#include <stdint.h>

/* One from `min` to `max`, in decimal, that ends at `end`. Returns what follows `end`, its NUL, or NULL. */
const char *number(const char *at, uint64_t min, uint64_t max, char end, uint64_t *value);

/* What follows `name` if the option begins with it, else NULL. */
const char *number_after(const char *option, const char *name);

#endif
