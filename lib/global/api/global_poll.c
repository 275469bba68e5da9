/*
 * poll: has a request that was begun been decided?
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>

#include "export.h"
#include "ticket.h"

EXPORT int shmlimit_global_poll(struct shmlimit_global *g, struct shmlimit_global_ticket *ticket,
                                struct shmlimit_result *r)
{
	return g != NULL && pending_is(ticket) ? pending_step(g, ticket, r) : -EINVAL;
}
