/*
 * rate_text.h: rates as people write them: 100/s, 30/60s.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef RATE_TEXT_H
#define RATE_TEXT_H

#include <stdint.h>

#include "number_text.h"

int rate_parse(const char *what, const char *text, uint64_t *count, uint64_t *period_ns);
const char *rate_text(char text[TEXT_LEN], uint64_t count, uint64_t period_ns);

#endif
