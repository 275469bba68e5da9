/*
 * close: release a handle.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <stdlib.h>

#include "export.h"
#include "limiter.h"
#include "segment.h"

EXPORT void shmlimit_close(struct shmlimit *l)
{
	if (l == NULL)
		return;
	segment_unmap(l->header, l->size);
	free(l);
}
