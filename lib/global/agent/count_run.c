/*
 * count_run: see count_run.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "count_run.h"

#define MS_NS UINT64_C(1000000)

/* Counts are below this number, where the backend counts exactly. */
#define COUNT_EXACT ((uint64_t)1 << 53)

/* Longer than any process waits for an answer, so for one of what an earlier agent had taken. */
#define NEW_NS UINT64_C(60000000000)

/*
 * How many numbers the backend is to keep of this host for a count. Answers come in the order of
 * the questions, so of earlier ones only those are needed that are still on their way: none,
 * mostly.
 */
static unsigned keep(const struct agent *a)
{
	return a->used + (monotonic_now_ns() - a->since_ns < NEW_NS ? a->inherited : 0);
}

enum lease_request_state count_run_prepare(struct agent *a, struct request_run *p)
{
	struct shmlimit_global *g = a->g;
	const struct request_text *text = &p->text;
	struct lease_request *lr = &p->request;

	/* Another process wrote the text. */
	if (text->cost == 0 || text->cost >= COUNT_EXACT || text->need >= COUNT_EXACT || text->want == 0 ||
	    handle_counter(g, lr->rule, &lr->of) != 0)
		return LEASE_REQUEST_DECIDED;
	p->on_way.question = (struct backend_question){
		.key = lr->text,
		.key_len = handle_key(g, lr->of.name, lr->key, lr->key_len, lr->text),
		.need = text->need,
		.want = text->cost,
		.ttl_ms = text->want / MS_NS + (text->want % MS_NS != 0),
		.saturate = text->kind == REQUEST_COUNT_FITS,
		.host = mailbox_host(g->mailbox),
		.number = mailbox_number(&p->receipt),
		.keep = keep(a),
	};
	lr->cost = 0; /* a late answer has nothing to refund */
	return failed_keys_have(&g->failed_keys, lr->text, p->on_way.question.key_len, monotonic_now_ns())
	               ? LEASE_REQUEST_FAILED
	               : LEASE_REQUEST_READY;
}

/*
 * Make the slot's count the backend's. WHY a restart: what is there may be of an earlier time. WHY
 * two milliseconds less: the backend rounds to one, and the slot to one at most. A slot that
 * outlives the backend's count denies what that allows.
 */
static void keep_here(struct shmlimit_global *g, const struct request_run *p, uint64_t ttl_ns)
{
	const struct lease_request *lr = &p->request;
	struct shmlimit_count there = { .struct_size = sizeof(there) };
	struct shmlimit_count_request asked = { .struct_size = sizeof(asked), .bound = INT64_MAX };

	if (ttl_ns <= 2 * MS_NS || shmlimit_count(g->limiter, lr->rule, lr->key, lr->key_len, &asked, &there) < 0)
		return;
	asked.n = (int64_t)p->on_way.question.left - there.count;
	asked.flags = SHMLIMIT_COUNT_RESTART | SHMLIMIT_COUNT_SATURATE;
	asked.ttl_ns = ttl_ns - 2 * MS_NS;
	shmlimit_count(g->limiter, lr->rule, lr->key, lr->key_len, &asked, NULL);
}

enum lease_request_state count_run_conclude(struct shmlimit_global *g, struct request_run *p)
{
	const struct backend_question *q = &p->on_way.question;
	uint64_t ttl_ns = q->full_us * 1000, spent_ns = monotonic_now_ns() - p->on_way.asked_ns;

	if (q->failure.kind != ERROR_NONE) {
		lease_request_failed(g, &p->request, &q->failure);
		return LEASE_REQUEST_FAILED;
	}
	ttl_ns = ttl_ns > spent_ns ? ttl_ns - spent_ns : 0;
	keep_here(g, p, ttl_ns);
	p->result = (struct shmlimit_result){ .limit = q->left, .remaining = q->leased, .reset_after_ns = ttl_ns };
	p->request.answer = q->leased != 0 ? SHMLIMIT_ALLOWED : SHMLIMIT_DENIED;
	return LEASE_REQUEST_DECIDED;
}
