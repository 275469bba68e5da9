/*
 * conclude: a request for a lease on its way to the backend, and what the backend's answer does to
 * the key's slot. Used by each process that asks the backend: an agent, and one whose host has
 * none.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef GLOBAL_CONCLUDE_H
#define GLOBAL_CONCLUDE_H

#include "handle.h"

#define LEASE_REQUESTS_MAX 16

struct lease_request {
	int rule;
	const void *key;
	size_t key_len;
	uint64_t cost;
	struct shmlimit_result *r;   /* NULL: the result is not wanted */
	int answer;                  /* LEASE_ASK, LEASE_WAIT: not decided yet */
	int taken_from;              /* ALLOWED: the rule whose slot gave the tokens; -1: none */
	struct shmlimit_lease lease; /* what shmlimit_lease_take() returned about the slot */
	struct handle_rule of;
	char text[KEY_TEXT_MAX];
};

static inline void lease_request_begin(struct lease_request *request, const struct shmlimit_request *q,
                                       struct shmlimit_result *r)
{
	request->rule = q->rule;
	request->key = q->key;
	request->key_len = q->key_len;
	request->cost = q->cost;
	request->r = r;
	request->taken_from = q->rule;
}

/* State of a lease request on its way to the backend and back. */
enum lease_request_state {
	LEASE_REQUEST_READY,   /* the question may be sent */
	LEASE_REQUEST_DECIDED, /* it has its answer */
	LEASE_REQUEST_FAILED,  /* the backend is not asked, or gave none: reported; on_failure decides */
};

/* Read the rule. Returns 0 or as handle_rule(). */
int lease_request_rule(struct shmlimit_global *g, struct lease_request *request);

/*
 * The duration of a lease: of one that the backend has answered, or of any of the rule if
 * `answered` is NULL.
 */
uint64_t lease_request_lease_ns(const struct lease_request *request, const struct backend_question *answered);

/* How long it lasts here: it ends earlier by the amount that the limiter's clock may lag. */
uint64_t lease_request_lasts_ns(const struct shmlimit_global *g, const struct lease_request *request,
                                const struct backend_question *answered);

/*
 * Report why the backend was not asked, or gave no answer. A key that it refuses is left alone for
 * a while.
 */
void lease_request_failed(struct shmlimit_global *g, struct lease_request *request,
                          const struct backend_error *failure);

/* Make the question for the backend. */
enum lease_request_state lease_request_prepare(struct shmlimit_global *g, struct lease_request *request,
                                               struct backend_question *question);

/*
 * Apply the backend's answer to the slot. The question was sent at `sent_ns` by the limiter's
 * clock, which is `asked_ns` by monotonic_now_ns().
 */
enum lease_request_state lease_request_conclude(struct shmlimit_global *g, struct lease_request *request,
                                                const struct backend_question *question, uint64_t sent_ns,
                                                uint64_t asked_ns);

/* Answer as on_failure says, and end this request's claim, if it has one. */
void lease_request_give_up(struct shmlimit_global *g, struct lease_request *request);
void lease_request_give_up_all(struct shmlimit_global *g, struct lease_request *requests, size_t n);

#endif
