/*
 * other_layout.h: what another version of shmlimit made under a segment's name, in a file of its
 * own.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef OTHER_LAYOUT_H
#define OTHER_LAYOUT_H

#include <stdint.h>

#include "number_text.h"

/* The layout version of that, the latest of several; 0: there is none. */
uint32_t other_layout(const char *segment);

/* What is wrong with it. */
const char *other_layout_text(char text[TEXT_LEN], uint32_t layout);

#endif
