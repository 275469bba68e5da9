/*
 * cancel_all: end several requests that were begun together and are no longer wanted.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "ticket_set.h"
#include "export.h"

EXPORT void shmlimit_global_cancel_all(struct shmlimit_global *g, struct shmlimit_global_ticket *tickets, size_t n)
{
	if (g != NULL && all_pending_is(tickets, n))
		all_pending_cancel(g, tickets, n);
}
