/*
 * pending: a request of an event loop, which waits for an agent, and the loop does not.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gate_request.h"
#include "export.h"

/* A request that waits for an agent, with a copy of its keys' bytes. */
struct shmlimit_gate_pending {
	struct gate_request q;
	char bytes[];
};

static int is_made(const struct key *key)
{
	return key->bytes == (const void *)key->made;
}

/* Copy what is being decided, with the bytes of its keys. */
static struct shmlimit_gate_pending *keep(const struct gate_request *q)
{
	struct shmlimit_gate_pending *p;
	size_t size = 0;

	for (size_t i = 0; i < q->n; i++)
		size += is_made(&q->keys[i]) ? 0 : q->keys[i].length;
	p = malloc(sizeof(*p) + size);
	if (p == NULL)
		return NULL;
	p->q = *q;
	size = 0;
	for (size_t i = 0; i < q->n; i++) {
		struct key *key = &p->q.keys[i];

		if (is_made(&q->keys[i])) {
			key->bytes = key->made;
		} else {
			key->bytes = memcpy(p->bytes + size, q->keys[i].bytes, key->length);
			size += key->length;
		}
	}
	return p;
}

EXPORT int shmlimit_gate_begin(struct shmlimit_gate *gate, const struct shmlimit_gate_key *keys, size_t n,
                               struct shmlimit_gate_answer *out, struct shmlimit_gate_held *held,
                               struct shmlimit_gate_pending **pending)
{
	struct gate_request q;
	int answer;

	if (pending == NULL || (held != NULL && held->struct_size < HELD_SIZE_1_0))
		return -EINVAL;
	if (held != NULL)
		held->count = held->bill_count = 0;
	q.held = held;
	q.take.steps = 1;
	answer = gate_request_begin(gate, keys, n, out, &q);
	if (answer != SHMLIMIT_GATE_PENDING)
		return answer;
	*pending = keep(&q);
	if (*pending != NULL)
		return answer;
	gate_request_cancel(gate, &q);
	return -ENOMEM;
}

EXPORT int shmlimit_gate_poll(struct shmlimit_gate *gate, struct shmlimit_gate_pending *pending,
                              struct shmlimit_gate_answer *out, struct shmlimit_gate_held *held)
{
	int answer;

	if (gate == NULL || pending == NULL || out == NULL || out->struct_size < ANSWER_SIZE_1_0 ||
	    (held == NULL) != (pending->q.held == NULL))
		return -EINVAL;
	pending->q.held = held;
	answer = gate_request_continue(gate, &pending->q, out);
	if (answer != SHMLIMIT_GATE_PENDING && answer != -ENOBUFS)
		free(pending);
	return answer;
}

EXPORT void shmlimit_gate_cancel(struct shmlimit_gate *gate, struct shmlimit_gate_pending *pending,
                                 struct shmlimit_gate_held *held)
{
	if (gate == NULL || pending == NULL)
		return;
	pending->q.held = held;
	gate_request_cancel(gate, &pending->q);
	free(pending);
}
