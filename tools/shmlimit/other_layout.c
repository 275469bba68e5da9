/*
 * other_layout.c: see other_layout.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "other_layout.h"
#include "shmlimit.h"

uint32_t other_layout(const char *segment)
{
	char name[SHMLIMIT_NAME_MAX + 1] = "";
	uint32_t layout = 0, other = 0;

	if (shmlimit_check_names(segment, NULL) != 0)
		return 0;
	strcpy(name, segment);
	while (shmlimit_next_layout(name, &layout) > 0 && strcmp(name, segment) == 0)
		if (layout != shmlimit_layout())
			other = layout;
	return other;
}

const char *other_layout_text(char text[TEXT_LEN], uint32_t layout)
{
	snprintf(text, TEXT_LEN, "has layout version %" PRIu32 ", and this shmlimit has %" PRIu32, layout,
	         shmlimit_layout());
	return text;
}
