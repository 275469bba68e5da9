/*
 * via_agent: see via_agent.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <string.h>

#include "via_agent.h"
#include "fallback.h"

int ask_agent_lives(const struct shmlimit_global *g)
{
	return g->mailbox != NULL && mailbox_has_agent(g->mailbox, g->backend, monotonic_now_ns());
}

/* End the claim, so that this process or another one asks again. */
static void ask_later(struct shmlimit_global *g, struct ask *a)
{
	shmlimit_lease_abandon(g->limiter, a->rule, a->key, a->key_len);
	a->answer = SHMLIMIT_LEASE_WAIT;
}

/* Post what was read of the rule. Returns 0, -EAGAIN: no cell is free. */
static int post_of_rule(struct shmlimit_global *g, const struct ask *a, enum request_kind kind, struct receipt *receipt)
{
	struct request_text text;

	fallback_prepare(g, a->rule);
	text.backend = g->backend;
	text.rule = (uint32_t)a->rule;
	text.key_len = (uint16_t)a->key_len;
	text.set_us = a->of.set_us;
	text.cost = a->cost;
	text.kind = (uint16_t)kind;
	text.need = a->lease.need;
	text.want = a->lease.want;
	memcpy(text.key, a->key, a->key_len);
	memset(text.key + a->key_len, 0, (8 - a->key_len % 8) % 8);
	return mailbox_post(g->mailbox, &text, receipt);
}

/* The same, or an error of the ask. */
static int post(struct shmlimit_global *g, struct ask *a, enum request_kind kind, struct receipt *receipt)
{
	int error = ask_rule(g, a);

	/*
	 * -ERANGE is not an error here: the agent refuses and reports a rule that the backend cannot count exactly.
	 */
	if (error != 0 && error != -ERANGE)
		return error;
	return post_of_rule(g, a, kind, receipt);
}

int ask_agent_post(struct shmlimit_global *g, struct ask *a, struct receipt *receipt)
{
	int error = post(g, a, REQUEST_AWAITED, receipt);

	if (error == -EAGAIN)
		ask_later(g, a);
	else if (error != 0)
		a->answer = error;
	return error == 0;
}

/* Kept off the fast path: an ask is more than a kilobyte. */
__attribute__((noinline, cold)) void ask_agent_ahead(struct shmlimit_global *g, int rule, const void *key,
                                                     size_t key_len, uint64_t want)
{
	struct ask a;
	struct receipt receipt;

	if (!ask_agent_lives(g))
		return;
	ask_begin(&a, &(struct shmlimit_request){ .rule = rule, .key = key, .key_len = key_len, .cost = 0 }, NULL);
	a.lease = (struct shmlimit_lease){ .need = 1, .want = want };
	post(g, &a, REQUEST_UNAWAITED, &receipt);
}

/*
 * The debit is posted first: a process that is killed in between has lent nothing without a debit. If the agent has the
 * backend's denial before the key has its credit, the credit replaces it, and the next request asks again.
 */
__attribute__((noinline, cold)) int ask_agent_lend(struct shmlimit_global *g, int rule, const void *key, size_t key_len,
                                                   uint64_t cost, struct shmlimit_result *r)
{
	struct ask a;
	struct receipt receipt;

	ask_begin(&a, &(struct shmlimit_request){ .rule = rule, .key = key, .key_len = key_len }, NULL);
	if (ask_rule(g, &a) != 0 || a.of.credit < cost || a.of.credit == 0 || !ask_agent_lives(g) ||
	    mailbox_is_failing(g->mailbox, monotonic_now_ns()))
		return SHMLIMIT_LEASE_ASK;
	a.cost = a.lease.need = a.lease.want = a.of.credit;
	if (post_of_rule(g, &a, REQUEST_DEBIT, &receipt) != 0)
		return SHMLIMIT_LEASE_ASK;
	return shmlimit_lease_deposit(g->limiter, rule, key, key_len, a.of.credit, cost, ask_lasts_ns(g, &a), r);
}

void ask_agent_at_once(struct shmlimit_global *g, struct ask *asks, size_t n)
{
	struct backend_error none = { .kind = ERROR_AGENT };
	int lives = ask_agent_lives(g);
	struct receipt receipt;

	if (!lives)
		handle_report(g, &none, NULL);
	else if (g->reported.kind == ERROR_AGENT)
		handle_recovered(g);
	for (size_t i = 0; i < n; i++) {
		if (asks[i].answer <= SHMLIMIT_DENIED)
			continue;
		/* The claim of what was posted goes on: the agent ends it. */
		if (lives && asks[i].answer == SHMLIMIT_LEASE_ASK &&
		    post(g, &asks[i], REQUEST_UNAWAITED, &receipt) == 0)
			asks[i].answer = SHMLIMIT_LEASE_WAIT;
		ask_give_up(g, &asks[i]);
	}
}

void ask_agent_settle(struct shmlimit_global *g, struct ask *a, enum request_state state,
                      const struct request_answer *answer)
{
	switch (state) {
	case REQUEST_ALLOWED:
	case REQUEST_DENIED:
		a->answer = state == REQUEST_ALLOWED ? SHMLIMIT_ALLOWED : SHMLIMIT_DENIED;
		if (a->r != NULL)
			*a->r = (struct shmlimit_result){
				.limit = answer->limit,
				.remaining = answer->remaining,
				.retry_after_ns = answer->retry_after_ns,
				.reset_after_ns = answer->reset_after_ns,
			};
		break;
	case REQUEST_FAILED:
		ask_give_up(g, a);
		break;
	case REQUEST_AGAIN:
		ask_later(g, a);
		break;
	default:
		break;
	}
}

/* ORDER posting is a full barrier; the partner is in mailbox_resign(). An agent that ended before answers nothing. */
void ask_agent(struct shmlimit_global *g, struct ask *asks, size_t n, uint64_t until_ns)
{
	struct receipt tickets[ASKS_MAX];
	struct request_answer answer;
	unsigned posted = 0;

	for (size_t i = 0; i < n; i++)
		if (asks[i].answer == SHMLIMIT_LEASE_ASK && ask_agent_post(g, &asks[i], &tickets[i]))
			posted |= 1u << i;
	for (size_t i = 0; i < n; i++)
		if (posted >> i & 1)
			ask_agent_settle(
				g, &asks[i],
				mailbox_wait(g->mailbox, &tickets[i], ask_agent_lives(g) ? until_ns : 0, &answer),
				&answer);
}
