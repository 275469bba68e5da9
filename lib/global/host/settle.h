/*
 * settle: a request for a lease on its way to the backend, and what the backend's answer does to the key's slot. Used by
 * each process that asks the backend: an agent, and one whose host has none.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef GLOBAL_SETTLE_H
#define GLOBAL_SETTLE_H

#include "handle.h"

#define ASKS_MAX 16

struct ask {
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

static inline void ask_begin(struct ask *ask, const struct shmlimit_request *q, struct shmlimit_result *r)
{
	ask->rule = q->rule;
	ask->key = q->key;
	ask->key_len = q->key_len;
	ask->cost = q->cost;
	ask->r = r;
	ask->taken_from = q->rule;
}

/* What becomes of an ask on its way to the backend and back. */
enum ask_state {
	ASK_READY,   /* the question may be sent */
	ASK_DECIDED, /* the ask has its answer */
	ASK_FAILED,  /* the backend is not asked, or gave none: reported; on_failure decides */
};

/* Read the rule. Returns 0 or as handle_rule(). */
int ask_rule(struct shmlimit_global *g, struct ask *ask);

/* How long a lease of the ask's rule lasts here: it ends earlier by the amount that the limiter's clock may lag. */
uint64_t ask_lasts_ns(const struct shmlimit_global *g, const struct ask *ask);

/* Make the question for the backend. */
enum ask_state ask_prepare(struct shmlimit_global *g, struct ask *ask, struct backend_question *question);

/*
 * Apply the backend's answer to the slot. The question was sent at `sent_ns` by the limiter's clock, which is
 * `asked_ns` by monotonic_now_ns().
 */
enum ask_state ask_settle(struct shmlimit_global *g, struct ask *ask, const struct backend_question *question,
                          uint64_t sent_ns, uint64_t asked_ns);

/* Answer as on_failure says, and end this ask's claim, if it has one. */
void ask_give_up(struct shmlimit_global *g, struct ask *ask);
void ask_give_up_all(struct shmlimit_global *g, struct ask *asks, size_t n);

#endif
