/*
 * begin: take tokens of the funnel that all hosts share, without waiting for the agent.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <string.h>

#include "ask.h"
#include "export.h"
#include "pending.h"

EXPORT int shmlimit_global_begin(struct shmlimit_global *g, const struct shmlimit_request *request,
                                 struct shmlimit_global_ticket *ticket, struct shmlimit_result *r)
{
	struct pending_state p = { .began_ns = 0 };
	struct shmlimit_lease lease;

	if (g == NULL || request == NULL || request->reserved32 != 0 || !pending_is_valid(ticket))
		return -EINVAL;
	p.answer = ask_slot(g, request->rule, request->key, request->key_len, request->cost, &lease, r);
	if (p.answer > SHMLIMIT_DENIED) {
		p.began_ns = monotonic_now_ns();
		p.until_ns = p.began_ns + g->options.deadline_ns;
		p.need = lease.need;
		p.want = lease.want;
	}
	ticket->request = *request;
	memcpy(ticket->opaque, &p, sizeof(p));
	return p.answer <= SHMLIMIT_DENIED ? p.answer : pending_step(g, ticket, r);
}
