/*
 * traits: those of each algorithm. See traits.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <string.h>

#include "traits.h"

static const struct traits *const list[ALGORITHMS] = {
#define ALGORITHM(number, name) [number] = &traits_##name,
#include "list.h"
};

const struct traits *traits_of(uint32_t algorithm)
{
	return list[algorithm < ALGORITHMS ? algorithm : SHMLIMIT_FUNNEL];
}

int traits_find(const char *name, uint32_t *algorithm)
{
	for (uint32_t i = 0; i < ALGORITHMS; i++)
		if (strcmp(name, list[i]->name) == 0 || (list[i]->alias != NULL && strcmp(name, list[i]->alias) == 0)) {
			*algorithm = i;
			return 1;
		}
	return 0;
}
