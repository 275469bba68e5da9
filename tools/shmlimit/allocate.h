/*
 * allocate.h: what becomes of a command without memory.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef ALLOCATE_H
#define ALLOCATE_H

#include <stddef.h>

/*
 * malloc() and reallocarray(). Where there is no memory, the program says so and ends with
 * STATUS_ERROR.
 */
void *allocate(size_t size);
void *allocate_array(void *old, size_t count, size_t size);

/*
 * Give it to jansson. WHY NOT check what each of its calls returns: it drops members and makes
 * shorter lists.
 */
void allocate_for_json(void);

#endif
