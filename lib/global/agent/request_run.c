/*
 * request_run: see request_run.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <string.h>

#include "answer.h"
#include "count_run.h"
#include "prefetch.h"
#include "fallback.h"
#include "server_pool.h"
#include "request_run.h"

/*
 * Most nodes that one question is sent to: a node, the node that the key is being moved to, and one
 * more if that changes.
 */
#define HOPS 4

static enum request_state state_of_run(const struct request_run *p, enum lease_request_state state)
{
	if (state == LEASE_REQUEST_FAILED)
		return REQUEST_FAILED;
	if (p->request.answer == SHMLIMIT_ALLOWED || p->request.answer == SHMLIMIT_DENIED)
		return p->request.answer == SHMLIMIT_ALLOWED ? REQUEST_ALLOWED : REQUEST_DENIED;
	return REQUEST_AGAIN;
}

void request_run_begin(struct agent *a, struct request_run *p)
{
	const struct request_text *text = &p->text;
	struct backend_question *q = &p->on_way.question;
	enum lease_request_state state = LEASE_REQUEST_DECIDED;

	p->result = (struct shmlimit_result){ 0 };
	p->hops = 0;
	p->request = (struct lease_request){ .rule = (int)text->rule,
		                             .key = text->key,
		                             .key_len = text->key_len,
		                             .cost = text->kind == REQUEST_UNAWAITED ? 0 : text->cost,
		                             .r = &p->result,
		                             .answer = SHMLIMIT_LEASE_ASK };
	/*
	 * The process, if there is one, asks again: the tokens of an earlier question may be lost.
	 * WHY NOT as additions to counts: a funnel that remembered them for each host would take
	 * twice the memory and time, for tokens that come back by themselves.
	 */
	if (p->was == REQUEST_REPEATED && !request_is_count(text->kind)) {
		answer_end(a, p, REQUEST_AGAIN);
		return;
	}
	if ((text->kind < REQUEST_DEBIT || request_steady(text->kind) != 0) && prefetch_answers(a, p))
		return;
	p->request.answer = SHMLIMIT_LEASE_ASK;
	/*
	 * Another process wrote the text. A `need` of 0 is raised to 1: such a question would look
	 * like a fault of the backend.
	 */
	p->request.lease.need = text->need | (text->need == 0);
	p->request.lease.steady = request_steady(text->kind);
	p->request.lease.want = text->want > p->request.lease.need ? text->want : p->request.lease.need;
	/*
	 * The rule may have changed since the request was made, or its id may be another rule's
	 * now: the process asks again.
	 */
	if (text->backend == a->g->backend)
		state = request_is_count(text->kind) ? count_run_prepare(a, p)
		                                     : lease_request_prepare(a->g, &p->request, q);
	if (state != LEASE_REQUEST_DECIDED && p->request.of.set_us != text->set_us)
		state = LEASE_REQUEST_DECIDED;
	if (state != LEASE_REQUEST_READY) {
		prefetch_forget(a, p);
		answer_end(a, p, state_of_run(p, state));
		return;
	}
	p->sent_ns = shmlimit_now(a->g->limiter);
	node_add(a->nodes[a->of_slot[cluster_slot(q->key, q->key_len)]], &p->on_way);
}

/* The key is on another node. Returns whether that node is asked. */
static int follow_moved(struct agent *a, struct node *from, struct request_run *p)
{
	struct backend_question *q = &p->on_way.question;
	struct url url;
	unsigned slot;
	int place = -1;

	if (p->hops++ < HOPS && cluster_move(q->failure.said, &from->line->backend.url, &url, &slot) == 0)
		place = server_pool_at(a, &url);
	if (place < 0)
		return 0;
	q->ask_first = strncmp(q->failure.said, "ASK ", 4) == 0;
	if (!q->ask_first)
		a->of_slot[slot] = (unsigned char)place;
	node_add(a->nodes[place], &p->on_way);
	return 1;
}

/*
 * The answer to a question that no process waits for. One that says when tokens come back is not
 * stored: the next request asks, and learns it. A denial by chance is kept for that request, or a
 * key that asks ahead would have two chances.
 */
static void end_ahead(struct agent *a, struct request_run *p)
{
	const struct backend_question *q = &p->on_way.question;

	if (q->failure.kind == ERROR_NONE && (q->leased != 0 || q->retry_us == SCRIPT_BY_CHANCE)) {
		answer_send(a, p, REQUEST_FREE);
		prefetch_keep(p);
		return;
	}
	prefetch_forget(a, p);
	if (q->failure.kind != ERROR_NONE)
		lease_request_conclude(a->g, &p->request, q, p->sent_ns, p->on_way.asked_ns);
	answer_end(a, p, q->failure.kind == ERROR_NONE ? REQUEST_FREE : REQUEST_FAILED);
}

/*
 * The answer to the debit of tokens that the key had before the backend was asked. If they were
 * leased, nothing changes here: the key has them. If not, what is left of them is taken away, and
 * the backend's denial stored.
 */
static void end_debit(struct agent *a, struct request_run *p)
{
	const struct backend_question *q = &p->on_way.question;
	enum lease_request_state state;

	if (q->failure.kind == ERROR_NONE && q->leased != 0) {
		fallback_charge(a->g, p->request.rule, p->request.key, p->request.key_len, q->leased);
		answer_end(a, p, REQUEST_ALLOWED);
		return;
	}
	if (q->failure.kind == ERROR_NONE)
		shmlimit_charge(a->g->limiter, p->request.rule, p->request.key, p->request.key_len, p->request.cost,
		                NULL);
	state = lease_request_conclude(a->g, &p->request, q, p->sent_ns, p->on_way.asked_ns);
	answer_end(a, p, state_of_run(p, state));
}

/*
 * The first bucket has answers of up to 100 us, and each next one twice that. The last one has all
 * others.
 */
static void note_round_trip(struct agent *a, uint64_t ns, uint64_t usual_ns)
{
	struct mailbox_board *board = mailbox_board(a->g->mailbox);
	unsigned bucket = 0;

	while (bucket < SHMLIMIT_GLOBAL_ROUND_TRIPS - 1 && ns > UINT64_C(100000) << bucket)
		bucket++;
	a->g->round_trip_ns = usual_ns;
	mailbox_set(&board->round_trip_ns, usual_ns);
	mailbox_set_far(a->g->mailbox, usual_ns > a->g->options.deadline_ns / 2 ? usual_ns : 0);
	mailbox_set(&board->round_trips_ns, board->round_trips_ns + ns);
	mailbox_set(&board->round_trips[bucket], board->round_trips[bucket] + 1);
}

void request_run_end(struct agent *a, struct node *node, struct request_run *p)
{
	const struct backend_question *q = &p->on_way.question;
	enum lease_request_state state = LEASE_REQUEST_DECIDED;
	int given = q->failure.kind == ERROR_NONE;

	if (q->failure.kind == ERROR_MOVED && follow_moved(a, node, p))
		return;
	/*
	 * A node that fails may have lost its slots to another one. The node of the URL knows
	 * which.
	 */
	if (!given && !backend_error_is_of_key(&q->failure))
		a->of_slot[cluster_slot(q->key, q->key_len)] = 0;
	if (given)
		note_round_trip(a, p->on_way.round_trip_ns, node->trip_ns);
	if (request_is_count(p->text.kind)) {
		answer_end(a, p, state_of_run(p, count_run_conclude(a->g, p)));
		return;
	}
	if (p->text.cost == 0) {
		end_ahead(a, p);
		return;
	}
	if (p->text.kind == REQUEST_DEBIT) {
		end_debit(a, p);
		return;
	}
	/* If the process no longer waits, none of the leased tokens is taken for it. */
	if (given && q->leased != 0 && !mailbox_is_awaited(a->g->mailbox, &p->receipt))
		p->request.cost = 0;
	state = lease_request_conclude(a->g, &p->request, q, p->sent_ns, p->on_way.asked_ns);
	answer_send(a, p, state_of_run(p, state));
	prefetch_watch(a, p);
}
