/*
 * duration.h: durations as people write them: 1.5s, 1h30m.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef DURATION_H
#define DURATION_H

#include <stdint.h>

#include "number_text.h"

int duration_parse(const char *what, const char *text, uint64_t *ns);                  /* 1.5s, 1h30m, 0 */
int period_parse(const char *what, const char *whole, const char *text, uint64_t *ns); /* or a unit alone: m */
const char *duration_text(char text[TEXT_LEN], uint64_t ns);   /* exact: "1h30m", "1.5s", "0s"; UINT64_MAX: "never" */
const char *resolution_text(char text[TEXT_LEN], uint64_t ps); /* the same of picoseconds: "0.954ns" */

#endif
