/*
 * cancel: end a request that was begun and is no longer wanted.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <string.h>

#include "export.h"
#include "pending.h"

/*
 * Returns whether the claim ends without this process: by a decision, or by the agent, which has the request and
 * will settle it.
 */
static int withdraw(struct shmlimit_global *g, const struct pending_state *p, const struct shmlimit_request *request)
{
	struct ticket ticket = { p->cell, p->word };
	struct request_answer answer;
	int taken = requests_waits(g->requests, &ticket);
	enum request_state state = requests_wait(g->requests, &ticket, 0, &answer);

	/* An answer of ALLOWED under a DRY_RUN rule that would have denied has a retry_after_ns, and took nothing. */
	if (state == REQUEST_ALLOWED && answer.retry_after_ns == 0)
		shmlimit_refund(g->limiter, request->rule, request->key, request->key_len, request->cost, NULL);
	return state == REQUEST_ALLOWED || state == REQUEST_DENIED || (state == REQUEST_FREE && taken);
}

EXPORT void shmlimit_global_cancel(struct shmlimit_global *g, struct shmlimit_global_ticket *ticket)
{
	const struct shmlimit_request *q;
	struct pending_state p;

	if (g == NULL || !pending_is(ticket))
		return;
	q = &ticket->request;
	memcpy(&p, ticket->opaque, sizeof(p));
	if ((!p.posted || !withdraw(g, &p, q)) && p.answer == SHMLIMIT_LEASE_ASK)
		shmlimit_lease_abandon(g->limiter, q->rule, q->key, q->key_len);
	memset(ticket->opaque, 0, sizeof(ticket->opaque));
}
