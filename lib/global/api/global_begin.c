/*
 * begin: take tokens of the funnel that all hosts share, without waiting for the agent.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>

#include "export.h"
#include "ticket.h"

EXPORT int shmlimit_global_begin(struct shmlimit_global *g, const struct shmlimit_request *request,
                                 struct shmlimit_global_ticket *ticket, struct shmlimit_result *r)
{
	int answer;

	if (g == NULL || request == NULL || request->reserved32 != 0 || !pending_is_valid(ticket))
		return -EINVAL;
	answer = pending_begin(g, request, ticket, r);
	return answer == SHMLIMIT_GLOBAL_PENDING ? pending_step(g, ticket, r) : answer;
}
