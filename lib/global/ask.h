/*
 * ask: requests that this host's leases did not suffice for, up to an answer.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef GLOBAL_ASK_H
#define GLOBAL_ASK_H

#include "handle.h"

#define ASKS_MAX 16

struct ask {
	int rule;
	const void *key;
	size_t key_len;
	uint64_t cost;
	struct shmlimit_result *r;     /* NULL: nobody wants it */
	int answer;                    /* LEASE_ASK, LEASE_WAIT: not decided yet */
	struct shmlimit_lease lease;   /* what the slot said */
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
}

/* Ask the slot, as shmlimit_lease_take() does, or, of another rule, shmlimit_take(). */
int ask_slot(struct shmlimit_global *g, int rule, const void *key, size_t key_len, uint64_t cost,
             struct shmlimit_lease *lease, struct shmlimit_result *r);

/* Decide those of n asks, 1 to ASKS_MAX, that ask_slot() did not, by the deadline. */
void ask_there(struct shmlimit_global *g, struct ask *asks, size_t n);

#endif
