/*
 * ticket: see ticket.h.
 *
 * The states of a ticket: posted (LEASE_ASK, with a cell); not posted (LEASE_ASK: the cell was
 * taken away, since this process was stopped for long); waiting for another caller that asks for
 * the key, or for a free cell (LEASE_WAIT); and decided.
 *
 * A step does not wait, except for the backend if there is no agent. A ticket that is forgotten is
 * to others one of a killed process. So the protocol of mailbox.h needs no other step for it:
 * polling is waiting with a pause.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <string.h>

#include "agent_thread.h"
#include "all_or_none.h"
#include "export.h"
#include "via_agent.h"
#include "fallback.h"
#include "global_take.h"
#include "lease_request.h"
#include "ticket.h"
#include "policy.h"
#include "pool.h"

/* Bytes in release 1.0, which are all that is used here. */
#define TICKET_SIZE_1_0 104u

static struct ticket_state ticket_state_of(const struct shmlimit_global_ticket *ticket)
{
	struct ticket_state p;

	memcpy(&p, ticket->opaque, sizeof(p));
	return p;
}

static void set_state(struct shmlimit_global_ticket *ticket, const struct ticket_state *p)
{
	memcpy(ticket->opaque, p, sizeof(*p));
}

int ticket_is_valid(const struct shmlimit_global_ticket *ticket)
{
	return ticket != NULL && ticket->struct_size >= TICKET_SIZE_1_0 &&
	       (ticket->flags == 0 || ticket->flags == SHMLIMIT_GLOBAL_TICKET_NO_WAIT ||
	        ticket->flags == SHMLIMIT_GLOBAL_TICKET_AGENT_ONLY);
}

int ticket_is_pending(const struct shmlimit_global_ticket *ticket)
{
	return ticket_is_valid(ticket) && ticket_state_of(ticket).answer > SHMLIMIT_DENIED;
}

/* Fetch the agent's answer to a posted request. `last`: the request ends now, answered or not. */
static void fetch_answer(struct shmlimit_global *g, struct lease_request *lr, struct ticket_state *p, int last)
{
	struct receipt receipt = { p->cell, p->word };
	struct request_answer answer;
	enum request_state state = last ? REQUEST_FREE : mailbox_poll(g->mailbox, &receipt, &answer);

	p->posted = request_is_open(state);
	if (last)
		via_agent_fetch(g, lr, &receipt, 0);
	else if (!p->posted)
		via_agent_conclude(g, lr, state, &answer);
}

static void post_request(struct shmlimit_global *g, struct lease_request *lr, struct ticket_state *p)
{
	struct receipt receipt;

	p->posted = (uint8_t)via_agent_post(g, lr, &receipt);
	if (!p->posted)
		return;
	p->cell = receipt.cell;
	p->word = receipt.word;
}

/*
 * ORDER the agent is looked for after the request was posted, in this step or in the next one; the
 * partner is in mailbox_resign().
 */
static void advance(struct shmlimit_global *g, struct lease_request *lr, struct ticket_state *p, uint32_t flags)
{
	struct backend_error waited = { .kind = ERROR_WAITED };
	int has_agent = via_agent_exists(g), is_over = monotonic_now_ns() >= p->until_ns;
	int is_late = p->posted && is_over;

	if (!has_agent)
		(void)agent_thread_begin(g->home);
	if (p->posted)
		fetch_answer(g, lr, p, is_over || !has_agent);
	if (lr->answer == SHMLIMIT_LEASE_WAIT && has_agent && !is_late)
		lr->answer =
			lease_request_slot(g, lr->rule, key_bytes(lr->key, lr->key_len), lr->cost, &lr->lease, lr->r);
	if (lr->answer <= SHMLIMIT_DENIED)
		return;
	if (has_agent && !is_over) {
		if (lr->answer == SHMLIMIT_LEASE_ASK && !p->posted)
			post_request(g, lr, p);
		return;
	}
	if (!has_agent && !is_over && flags == 0) {
		lease_request_wait(g, lr, 1, p->until_ns);
		return;
	}
	if (!has_agent && !is_over && flags == SHMLIMIT_GLOBAL_TICKET_AGENT_ONLY) {
		if (lr->answer == SHMLIMIT_LEASE_ASK)
			shmlimit_lease_abandon(g->limiter, lr->rule, lr->key, lr->key_len);
		lr->answer = -EAGAIN;
		return;
	}
	if (has_agent)
		handle_report(g, &waited, NULL);
	lease_request_give_up(g, lr);
}

/* There is no handle to ask with: on_failure decides. */
static int give_up(struct shmlimit_global *g, struct shmlimit_global_ticket *ticket, struct shmlimit_result *r)
{
	const struct shmlimit_request q = ticket->request;
	int from, answer;

	ticket_cancel(g, ticket);
	answer = fallback(g, q.rule, key_bytes(q.key, q.key_len), q.cost, &from, r);
	ticket_decided(ticket, &q, answer == SHMLIMIT_ALLOWED && all_or_none_has_taken(r) ? from : -1);
	return answer;
}

/* Without a result it is not known whether an allowed request has taken tokens: get one. */
int ticket_step(struct shmlimit_global *g, struct shmlimit_global_ticket *ticket, struct shmlimit_result *r)
{
	struct shmlimit_result own;
	struct ticket_state p = ticket_state_of(ticket);
	struct lease_request lr;
	uint64_t now_ns;
	int error;
	struct shmlimit_global *mine = pool_borrow(g, &error);

	r = r != NULL ? r : &own;
	if (mine == NULL)
		return give_up(g, ticket, r);
	lease_request_begin(&lr, &ticket->request, r);
	lr.answer = p.answer;
	lr.lease = (struct shmlimit_lease){
		.struct_size = sizeof(lr.lease), .need = p.need, .want = p.want, .steady = p.steady
	};
	advance(mine, &lr, &p, ticket->flags);
	pool_return(mine);
	p.answer = lr.answer;
	p.need = lr.lease.need;
	p.want = lr.lease.want;
	p.steady = (uint8_t)lr.lease.steady;
	p.taken = lr.answer == SHMLIMIT_ALLOWED && all_or_none_has_taken(r) ? (uint32_t)(lr.taken_from + 1) : 0;
	set_state(ticket, &p);
	if (lr.answer <= SHMLIMIT_DENIED)
		return lr.answer;
	now_ns = monotonic_now_ns();
	ticket->poll_ns = policy_look_ns(now_ns - p.began_ns, now_ns < p.until_ns ? p.until_ns - now_ns : 0);
	return SHMLIMIT_GLOBAL_PENDING;
}

int ticket_begin(struct shmlimit_global *g, const struct shmlimit_request *request,
                 struct shmlimit_global_ticket *ticket, struct shmlimit_result *r)
{
	struct ticket_state p = { .began_ns = 0 };
	struct shmlimit_result own;
	struct shmlimit_lease lease;
	int from = request->rule;

	r = r != NULL ? r : &own;
	p.answer = lease_request_slot(g, request->rule, key_bytes(request->key, request->key_len), request->cost,
	                              &lease, r);
	if (p.answer > SHMLIMIT_DENIED && (g->options.flags & SHMLIMIT_GLOBAL_OPTION_NO_WAIT)) {
		struct lease_request lr;

		lease_request_begin(&lr, request, r);
		lr.answer = p.answer;
		lr.lease = lease;
		global_take_undecided(g, &lr, 1);
		p.answer = lr.answer;
		from = lr.taken_from;
	} else if (p.answer > SHMLIMIT_DENIED) {
		p.began_ns = monotonic_now_ns();
		p.until_ns = p.began_ns + g->options.deadline_ns;
		p.need = lease.need;
		p.want = lease.want;
		p.steady = (uint8_t)lease.steady;
	}
	p.taken = p.answer == SHMLIMIT_ALLOWED && all_or_none_has_taken(r) ? (uint32_t)(from + 1) : 0;
	ticket->request = *request;
	set_state(ticket, &p);
	return p.answer <= SHMLIMIT_DENIED ? p.answer : SHMLIMIT_GLOBAL_PENDING;
}

/*
 * Returns whether the claim ends without this process: by a decision, or by the agent, which has
 * the request and will conclude it.
 */
static int withdraw(struct shmlimit_global *g, const struct ticket_state *p, const struct shmlimit_request *request)
{
	struct receipt receipt = { p->cell, p->word };
	struct request_answer answer;
	int taken = mailbox_is_awaited(g->mailbox, &receipt);
	enum request_state state = mailbox_wait(g->mailbox, &receipt, 0, &answer);

	/*
	 * An answer of ALLOWED under a DRY_RUN rule that would have denied has a retry_after_ns,
	 * and took nothing.
	 */
	if (state == REQUEST_ALLOWED && answer.retry_after_ns == 0)
		shmlimit_refund(g->limiter, request->rule, request->key, request->key_len, request->cost, NULL);
	return state == REQUEST_ALLOWED || state == REQUEST_DENIED || (state == REQUEST_FREE && taken);
}

void ticket_cancel(struct shmlimit_global *g, struct shmlimit_global_ticket *ticket)
{
	const struct shmlimit_request *q = &ticket->request;
	struct ticket_state p = ticket_state_of(ticket);

	if (p.answer <= SHMLIMIT_DENIED) {
		if (p.taken != 0)
			shmlimit_refund(g->limiter, (int)(p.taken - 1), q->key, q->key_len, q->cost, NULL);
	} else if ((!p.posted || !withdraw(g, &p, q)) && p.answer == SHMLIMIT_LEASE_ASK) {
		shmlimit_lease_abandon(g->limiter, q->rule, q->key, q->key_len);
	}
	ticket_end(ticket);
}

void ticket_end(struct shmlimit_global_ticket *ticket)
{
	memset(ticket->opaque, 0, sizeof(ticket->opaque));
}

void ticket_decided(struct shmlimit_global_ticket *ticket, const struct shmlimit_request *request, int taken_from)
{
	ticket->request = *request;
	set_state(ticket, &(struct ticket_state){ .taken = (uint32_t)(taken_from + 1) });
}

void ticket_later(struct shmlimit_global_ticket *ticket)
{
	set_state(ticket, &(struct ticket_state){ .later = 1 });
}

int ticket_is_later(const struct shmlimit_global_ticket *ticket)
{
	return ticket_state_of(ticket).later;
}

EXPORT int shmlimit_global_begin(struct shmlimit_global *g, const struct shmlimit_request *request,
                                 struct shmlimit_global_ticket *ticket, struct shmlimit_result *r)
{
	int answer;

	if (g == NULL || request == NULL || !ticket_is_valid(ticket))
		return -EINVAL;
	if (request->limit != NULL || request->place != NULL || request->share != 0)
		return -EOPNOTSUPP;
	answer = ticket_begin(g, request, ticket, r);
	return answer == SHMLIMIT_GLOBAL_PENDING ? ticket_step(g, ticket, r) : answer;
}

EXPORT int shmlimit_global_poll(struct shmlimit_global *g, struct shmlimit_global_ticket *ticket,
                                struct shmlimit_result *r)
{
	return g != NULL && ticket_is_pending(ticket) ? ticket_step(g, ticket, r) : -EINVAL;
}

EXPORT void shmlimit_global_cancel(struct shmlimit_global *g, struct shmlimit_global_ticket *ticket)
{
	if (g != NULL && ticket_is_pending(ticket))
		ticket_cancel(g, ticket);
}
