/*
 * gate: what the files of the calls on a gate share. Class Gate in index.js says what the calls mean.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_NODE_GATE_H
#define SHMLIMIT_NODE_GATE_H

#include "addon.h"

struct gate {
	struct shmlimit_gate *gate;
	napi_threadsafe_function report;
	struct request *requests; /* those that hold places or are pending */
	unsigned working;         /* requests that other threads ask */
	int closed;               /* free it when there are none */
	struct shmlimit_gate_answer answer;
	char buffer[SHMLIMIT_GATE_BUFFER];
};

/* Free it, when no other thread asks. */
void gate_release(struct gate *gate);

/* ---- keys.c ---- */

#define ARENA 2048 /* bytes for the keys of one request; longer ones are allocated */

/* The keys of one request. */
struct keys {
	struct shmlimit_gate_key keys[SHMLIMIT_REQUESTS_MAX];
	size_t n, allocated_count, used;
	void *allocated[2 * SHMLIMIT_REQUESTS_MAX]; /* a key, and its limit */
	char arena[ARENA];
};

/*
 * Keys from a string, a Uint8Array, or an object of one of these and a limit (key, limit), which is that of the only limit, or an array of them, one for each limit; costs from a
 * number, an array of one for each limit, or nothing. Returns 0, -EINVAL, -E2BIG or -ENOMEM; keys_free() must follow.
 */
int keys_read(napi_env env, napi_value value, napi_value costs, int stays, size_t limits, struct keys *keys);
void keys_free(struct keys *keys);

/* ---- request.c ---- */

/*
 * A request that JavaScript keeps: it waits for the host's agent or its tokens, holds places, or has paid an estimate. With a copy
 * of its keys' bytes and limits.
 */
struct request {
	struct gate *gate; /* NULL: the gate was closed, or there is nothing to do for this request any more */
	struct request *next, **link;
	struct shmlimit_gate_pending *pending; /* NULL: it is decided */
	bool enters;
	struct shmlimit_gate_held held;
	struct shmlimit_gate_key keys[SHMLIMIT_REQUESTS_MAX];
	size_t n;
	char bytes[];
};

/*
 * Keep a request that is `pending`, or holds places. `held` NULL: it enters none. *out is what JavaScript has of it. Returns 0; or -ENOMEM, and the
 * request has what it had.
 */
int request_keep(napi_env env, struct gate *gate, const struct keys *keys, const struct shmlimit_gate_held *held,
                 struct shmlimit_gate_pending *pending, napi_value *out);

/* Has the request places to leave, or an estimate to settle? */
int request_holds(const struct shmlimit_gate_held *held);

/* Keep what a request holds, if it holds anything. Returns 0; or -ENOMEM, and then they are left. */
int request_keep_places(napi_env env, struct gate *gate, const struct keys *keys, struct shmlimit_gate_held *held,
                        napi_value *out);

/* NULL: it is none, or has nothing to do with its gate any more. */
struct request *request_get(napi_env env, napi_value value);

/* Leave its places. */
void request_leave(struct request *request);

/* It has nothing to do with its gate any more. */
void request_unlink(struct request *request);

/* A pending request is no longer wanted: it gives back what it has taken. */
void request_cancel(struct request *request);
void request_cancel_pending(struct gate *gate);

/* ---- answer.c ---- */

/* The figures of an answer. */
static inline void answer_note(double *numbers, const struct shmlimit_gate_answer *out,
                               const struct shmlimit_gate_key *keys)
{
	int rejected = out->outcome == SHMLIMIT_GATE_REJECTED;

	numbers[OUTCOME] = out->outcome;
	numbers[STATUS] = out->status;
	numbers[FAILURE] = out->error;
	numbers[DENIED_BY] = rejected ? keys[out->denied_by].limit : -1.0;
	numbers[GATE_REMAINING] = out->remaining == UINT64_MAX ? to_ms(UINT64_MAX) : (double)out->remaining;
	numbers[GATE_RETRY_AFTER_MS] = to_ms(out->retry_after_ns);
}

/*
 * Names and values in turn, a line each: no field has a line's end in it. WHY NOT an array: one string is made three times as
 * fast as an array of six.
 */
napi_value answer_fields(napi_env env, const struct shmlimit_gate_answer *answer);

/* The answer, the figures, the fields, and the places (NULL: none), in one array. */
napi_value answer_array(napi_env env, int answer, const struct shmlimit_gate_answer *out,
                        const struct shmlimit_gate_key *keys, napi_value places);

#endif
