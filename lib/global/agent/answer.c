/*
 * answer: see answer.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "answer.h"

void answer_send(struct agent *a, struct request_run *p, enum request_state state)
{
	struct mailbox_board *board = mailbox_board(a->g->mailbox);
	struct request_answer with = { p->result.limit, p->result.remaining, p->result.retry_after_ns,
		                       p->result.reset_after_ns };

	if (p->receipt.word == 0)
		return; /* the agent asked by itself: no request was made */
	mailbox_set(state == REQUEST_FAILED ? &board->failed : &board->served,
	            (state == REQUEST_FAILED ? board->failed : board->served) + 1);
	if (p->text.kind == REQUEST_DEBIT && state != REQUEST_ALLOWED)
		mailbox_set(&board->unpaid, board->unpaid + p->text.cost);
	if (p->text.cost == 0 || (!request_is_awaited(p->text.kind) && !request_is_count(p->text.kind)))
		state = REQUEST_FREE;
	if (!mailbox_answer(a->g->mailbox, &p->receipt, state, &with)) {
		mailbox_set(&board->late, board->late + 1);
		/* The process stopped waiting after its tokens were taken: give them back. */
		if (state == REQUEST_ALLOWED && p->request.cost != 0)
			shmlimit_refund(a->g->limiter, p->request.rule, p->request.key, p->request.key_len,
			                p->request.cost, NULL);
	}
}

void answer_release(struct agent *a, struct request_run *p)
{
	p->next = a->free;
	a->free = p;
	a->used--;
}

void answer_end(struct agent *a, struct request_run *p, enum request_state state)
{
	answer_send(a, p, state);
	answer_release(a, p);
}
