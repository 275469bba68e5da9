/*
 * close: release a handle.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <stdlib.h>

#include "export.h"
#include "limiter.h"
#include "segment.h"
#include "unnamed.h"

EXPORT void shmlimit_close(struct shmlimit *l)
{
	if (l == NULL)
		return;
	unnamed_forget(l);
	segment_unmap(l->header, l->size);
	free(l);
}
