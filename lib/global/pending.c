/*
 * pending: see pending.h.
 *
 * The states of a ticket: posted (LEASE_ASK, with a cell); not posted (LEASE_ASK: the cell was taken away, since this
 * process was stopped for long); waiting for another caller that asks for the key, or for a free cell (LEASE_WAIT); and
 * decided.
 *
 * A step does not wait, except for the backend if there is no agent. A ticket that is forgotten is to others one of a
 * killed process. So the protocol of requests.h needs no other step for it: polling is waiting with a pause.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <string.h>

#include "ask_agent.h"
#include "pending.h"
#include "policy.h"

int pending_is_valid(const struct shmlimit_global_ticket *ticket)
{
	return ticket != NULL && ticket->struct_size >= sizeof(*ticket) && ticket->flags <= SHMLIMIT_GLOBAL_AGENT_ONLY;
}

int pending_is(const struct shmlimit_global_ticket *ticket)
{
	struct pending_state p;

	if (!pending_is_valid(ticket))
		return 0;
	memcpy(&p, ticket->opaque, sizeof(p));
	return p.answer > SHMLIMIT_DENIED;
}

/* Fetch the agent's answer to a posted ask. `last`: the request ends now, answered or not. */
static void hear(struct shmlimit_global *g, struct ask *a, struct pending_state *p, int last)
{
	struct ticket ticket = { p->cell, p->word };
	struct request_answer answer;
	enum request_state state = last ? requests_wait(g->requests, &ticket, 0, &answer) :
	                                  requests_poll(g->requests, &ticket, &answer);

	p->posted = state == REQUEST_POSTED || state == REQUEST_TAKEN;
	if (!p->posted)
		ask_agent_settle(g, a, state, &answer);
}

static void post(struct shmlimit_global *g, struct ask *a, struct pending_state *p)
{
	struct ticket ticket;

	p->posted = (uint32_t)ask_agent_post(g, a, &ticket);
	if (!p->posted)
		return;
	p->cell = ticket.cell;
	p->word = ticket.word;
}

/*
 * ORDER the agent is looked for after the ask was posted, in this step or in the next one; the partner is in
 * requests_resign().
 */
static void step(struct shmlimit_global *g, struct ask *a, struct pending_state *p, uint32_t flags)
{
	struct trouble waited = { .kind = TROUBLE_WAITED };
	int lives = ask_agent_lives(g), over = monotonic_now_ns() >= p->until_ns;

	if (p->posted)
		hear(g, a, p, over || !lives);
	if (a->answer == SHMLIMIT_LEASE_WAIT && lives)
		a->answer = ask_slot(g, a->rule, a->key, a->key_len, a->cost, &a->lease, a->r);
	if (a->answer <= SHMLIMIT_DENIED)
		return;
	if (lives && !over) {
		if (a->answer == SHMLIMIT_LEASE_ASK && !p->posted)
			post(g, a, p);
		return;
	}
	if (!lives && !over && flags == 0) {
		ask_until(g, a, 1, p->until_ns);
		return;
	}
	if (!lives && !over && flags == SHMLIMIT_GLOBAL_AGENT_ONLY) {
		if (a->answer == SHMLIMIT_LEASE_ASK)
			shmlimit_lease_abandon(g->limiter, a->rule, a->key, a->key_len);
		a->answer = -EAGAIN;
		return;
	}
	if (lives)
		handle_say(g, &waited, NULL);
	ask_give_up(g, a);
}

int pending_step(struct shmlimit_global *g, struct shmlimit_global_ticket *ticket, struct shmlimit_result *r)
{
	struct pending_state p;
	struct ask a;
	uint64_t now_ns;

	memcpy(&p, ticket->opaque, sizeof(p));
	ask_begin(&a, &ticket->request, r);
	a.answer = p.answer;
	a.lease = (struct shmlimit_lease){ .struct_size = sizeof(a.lease), .need = p.need, .want = p.want };
	step(g, &a, &p, ticket->flags);
	p.answer = a.answer;
	p.need = a.lease.need;
	p.want = a.lease.want;
	memcpy(ticket->opaque, &p, sizeof(p));
	if (a.answer <= SHMLIMIT_DENIED)
		return a.answer;
	now_ns = monotonic_now_ns();
	ticket->poll_ns = policy_look_ns(now_ns - p.began_ns, now_ns < p.until_ns ? p.until_ns - now_ns : 0);
	return SHMLIMIT_GLOBAL_PENDING;
}
