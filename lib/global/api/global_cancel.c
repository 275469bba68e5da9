/*
 * cancel: end a request that was begun and is no longer wanted.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "export.h"
#include "ticket.h"

EXPORT void shmlimit_global_cancel(struct shmlimit_global *g, struct shmlimit_global_ticket *ticket)
{
	if (g != NULL && pending_is(ticket))
		pending_cancel(g, ticket);
}
