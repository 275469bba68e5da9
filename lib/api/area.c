/*
 * area: the bytes of a segment that libshmlimit-global shares between processes.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "export.h"
#include "limiter.h"

EXPORT void *shmlimit_area(struct shmlimit *l, size_t *size)
{
	if (l == NULL || l->read_only)
		return NULL;
	if (size != NULL)
		*size = LAYOUT_AREA;
	return l->area;
}
