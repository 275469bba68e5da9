/*
 * allocate.c: see allocate.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <jansson.h>
#include <stdlib.h>

#include "command.h"
#include "fail.h"
#include "allocate.h"

void *allocate(size_t size)
{
	void *block = malloc(size);

	if (block == NULL)
		exit(fail_memory());
	return block;
}

void *allocate_array(void *old, size_t count, size_t size)
{
	void *block = reallocarray(old, count, size);

	if (block == NULL)
		exit(fail_memory());
	return block;
}

void allocate_for_json(void)
{
	json_set_alloc_funcs(allocate, free);
}
