/*
 * poll_all: have several requests that were begun together been decided?
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>

#include "ticket_set.h"
#include "export.h"

EXPORT int shmlimit_global_poll_all(struct shmlimit_global *g, struct shmlimit_global_ticket *tickets, size_t n,
                                    size_t *failed, struct shmlimit_result *results)
{
	return g != NULL && all_pending_is(tickets, n) ? all_pending_step(g, tickets, n, failed, results) : -EINVAL;
}
