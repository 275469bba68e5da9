/*
 * via_agent: see via_agent.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <string.h>

#include "via_agent.h"
#include "fallback.h"
#include "outage.h"

int via_agent_exists(const struct shmlimit_global *g)
{
	return g->mailbox != NULL && mailbox_has_agent(g->mailbox, g->backend, monotonic_now_ns());
}

/* End the claim, so that this process or another one asks again. */
static void ask_again_later(struct shmlimit_global *g, struct lease_request *lr)
{
	shmlimit_lease_abandon(g->limiter, lr->rule, lr->key, lr->key_len);
	lr->answer = SHMLIMIT_LEASE_WAIT;
}

/* Post what was read of the rule. Returns 0, -EAGAIN: no cell is free. */
static int post_of_rule(struct shmlimit_global *g, const struct lease_request *lr, unsigned kind,
                        struct receipt *receipt)
{
	struct request_text text;

	fallback_prepare(g, lr->rule);
	text.backend = g->backend;
	text.rule = (uint32_t)lr->rule;
	text.key_len = (uint16_t)lr->key_len;
	text.set_us = lr->of.set_us;
	text.cost = lr->cost;
	text.kind = (uint16_t)kind;
	text.need = lr->lease.need;
	text.want = lr->lease.want;
	memcpy(text.key, lr->key, lr->key_len);
	memset(text.key + lr->key_len, 0, (8 - lr->key_len % 8) % 8);
	return mailbox_post(g->mailbox, &text, receipt);
}

/* The same, or an error of the request. */
static int post(struct shmlimit_global *g, struct lease_request *lr, unsigned kind, struct receipt *receipt)
{
	int error = lease_request_rule(g, lr);

	/*
	 * -ERANGE is not an error here: the agent refuses and reports a rule that the backend
	 * cannot count exactly.
	 */
	if (error != 0 && error != -ERANGE)
		return error;
	return post_of_rule(g, lr, kind, receipt);
}

int via_agent_post(struct shmlimit_global *g, struct lease_request *lr, struct receipt *receipt)
{
	int error = post(g, lr, lr->lease.steady != 0 ? REQUEST_STEADY + lr->lease.steady : REQUEST_AWAITED, receipt);

	if (error == -EAGAIN)
		ask_again_later(g, lr);
	else if (error != 0)
		lr->answer = error;
	return error == 0;
}

/* Kept off the fast path: a lease request is more than a kilobyte. */
__attribute__((noinline, cold)) void via_agent_prefetch(struct shmlimit_global *g, int rule, const void *key,
                                                        size_t key_len, uint64_t want)
{
	struct lease_request lr;
	struct receipt receipt;

	if (!via_agent_exists(g))
		return;
	lease_request_begin(&lr, &(struct shmlimit_request){ .rule = rule, .key = key, .key_len = key_len, .cost = 0 },
	                    NULL);
	lr.lease = (struct shmlimit_lease){ .need = 1, .want = want };
	post(g, &lr, REQUEST_UNAWAITED, &receipt);
}

/*
 * The debit is posted first: a process that is killed in between has lent nothing without a debit.
 * If the agent has the backend's denial before the key has its credit, the credit replaces it, and
 * the next request asks again.
 */
__attribute__((noinline, cold)) int via_agent_lend(struct shmlimit_global *g, int rule, const void *key, size_t key_len,
                                                   uint64_t cost, struct shmlimit_result *r)
{
	struct lease_request lr;
	struct receipt receipt;

	lease_request_begin(&lr, &(struct shmlimit_request){ .rule = rule, .key = key, .key_len = key_len }, NULL);
	if (lease_request_rule(g, &lr) != 0 || lr.of.credit < cost || lr.of.credit == 0 || !via_agent_exists(g) ||
	    mailbox_is_failing(g->mailbox, monotonic_now_ns()))
		return SHMLIMIT_LEASE_ASK;
	lr.cost = lr.lease.need = lr.lease.want = lr.of.credit;
	if (post_of_rule(g, &lr, REQUEST_DEBIT, &receipt) != 0)
		return SHMLIMIT_LEASE_ASK;
	return shmlimit_lease_deposit(g->limiter, rule, key, key_len, lr.of.credit, cost, 0,
	                              lease_request_lasts_ns(g, &lr, NULL), r);
}

void via_agent_at_once(struct shmlimit_global *g, struct lease_request *requests, size_t n)
{
	struct backend_error none = { .kind = ERROR_AGENT };
	int has_agent = via_agent_exists(g);
	struct receipt receipt;

	if (!has_agent)
		handle_report(g, &none, NULL);
	else if (g->reported.kind == ERROR_AGENT)
		handle_recovered(g);
	if (has_agent)
		outage_over(g);
	for (size_t i = 0; i < n; i++) {
		if (requests[i].answer <= SHMLIMIT_DENIED)
			continue;
		/* The claim of what was posted goes on: the agent ends it. */
		if (has_agent && requests[i].answer == SHMLIMIT_LEASE_ASK &&
		    post(g, &requests[i], REQUEST_UNAWAITED, &receipt) == 0)
			requests[i].answer = SHMLIMIT_LEASE_WAIT;
		lease_request_give_up(g, &requests[i]);
	}
}

void via_agent_conclude(struct shmlimit_global *g, struct lease_request *lr, enum request_state state,
                        const struct request_answer *answer)
{
	switch (state) {
	case REQUEST_ALLOWED:
	case REQUEST_DENIED:
		outage_over(g);
		lr->answer = state == REQUEST_ALLOWED ? SHMLIMIT_ALLOWED : SHMLIMIT_DENIED;
		if (lr->r != NULL)
			*lr->r = (struct shmlimit_result){
				.limit = answer->limit,
				.remaining = answer->remaining,
				.retry_after_ns = answer->retry_after_ns,
				.reset_after_ns = answer->reset_after_ns,
			};
		break;
	case REQUEST_FAILED:
		lease_request_give_up(g, lr);
		break;
	case REQUEST_AGAIN:
		ask_again_later(g, lr);
		break;
	default:
		break;
	}
}

/*
 * The agent concludes what it has on the way, late or not. So the claim goes on, and the next
 * requests wait for that answer. WHY NOT end it: each of them would ask again, and wait for as long
 * as this one did, while the tokens of the late answer expire. A worker that had a server 50 ms
 * away, and a deadline of 50 ms, got 0.1 % of its limit.
 */
void via_agent_fetch(struct shmlimit_global *g, struct lease_request *lr, const struct receipt *receipt,
                     uint64_t until_ns)
{
	struct request_answer answer;
	enum request_state state = mailbox_await(g->mailbox, receipt, until_ns, &answer);
	int is_on_way = mailbox_is_awaited(g->mailbox, receipt);

	if (request_is_open(state))
		state = mailbox_wait(g->mailbox, receipt, 0, &answer);
	if (state == REQUEST_FREE && is_on_way && via_agent_exists(g))
		lr->answer = SHMLIMIT_LEASE_WAIT;
	else
		via_agent_conclude(g, lr, state, &answer);
}

/*
 * ORDER posting is a full barrier; the partner is in mailbox_resign(). An agent that ended before
 * answers nothing.
 */
void via_agent(struct shmlimit_global *g, struct lease_request *requests, size_t n, uint64_t until_ns)
{
	struct receipt receipts[LEASE_REQUESTS_MAX];
	unsigned posted = 0;

	for (size_t i = 0; i < n; i++)
		if (requests[i].answer == SHMLIMIT_LEASE_ASK && via_agent_post(g, &requests[i], &receipts[i]))
			posted |= 1u << i;
	for (size_t i = 0; i < n; i++)
		if (posted >> i & 1)
			via_agent_fetch(g, &requests[i], &receipts[i], via_agent_exists(g) ? until_ns : 0);
}
