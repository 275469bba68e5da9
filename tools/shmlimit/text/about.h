/*
 * about.h: measured times for people, who do not read nanoseconds.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef ABOUT_H
#define ABOUT_H

#include <stdint.h>

#include "duration.h"
#include "number_text.h"

/*
 * As duration_text(), rounded up: below a minute to three digits, then to seconds, from an hour on
 * to minutes, from a day on to hours, from 100 days on to days: "19m59.987654321s" is "20m". JSON
 * has the exact number.
 */
const char *duration_about(char text[TEXT_LEN], uint64_t ns);

#endif
