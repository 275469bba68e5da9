/*
 * close: release a handle.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "attach.h"
#include "export.h"

EXPORT void shmlimit_close(struct shmlimit *l)
{
	attach_end(l);
}
