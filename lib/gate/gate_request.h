/*
 * gate_request: one request that is being decided: keys, decisions, failure policy, fields, in this
 * order.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_GATE_GATE_REQUEST_H
#define SHMLIMIT_GATE_GATE_REQUEST_H

#include "segment_ref.h"
#include "key.h"
#include "held.h"
#include "line.h"
#include "rate.h"

/*
 * Bytes of the structures in release 1.0: a caller's must be at least this large. WHY NOT sizeof:
 * programs that were built before a structure grows would be refused.
 */
#define ANSWER_SIZE_1_0 920u
#define HELD_SIZE_1_0 664u

struct shmlimit_gate {
	struct spec spec;
	struct segment_ref segment_ref;
	struct rates rates;
	const struct spec_limit *denier; /* of several limits of one request: which denied last */
};

/* The steps of a decision, in their order. */
enum step { STEP_PEEK, STEP_ENFORCE, STEP_REHEARSE, STEP_DELAY };

/* A limit with delay= of a request, which may wait for it. */
struct delayed {
	size_t which;     /* limit */
	struct line line; /* in which it waits */
	int waits;        /* it could not pass at once */
	uint64_t by_ns;   /* when its turn is to be expected at the latest, by the monotonic clock */
	uint64_t soon_ns; /* how long before its turn the request takes it */
	int taken;        /* it has its turn: */
	uint64_t due_ns;  /* not before this time, by the monotonic clock; 0: at once */
	struct shmlimit_result result;
};

/* One request that is being decided. */
struct gate_request {
	const struct spec *spec;
	size_t n, key_count; /* keys, and those of the caller, which include empty ones */
	const struct spec_limit *limits[SHMLIMIT_REQUESTS_MAX];
	uint64_t costs[SHMLIMIT_REQUESTS_MAX];
	int has_limit[SHMLIMIT_REQUESTS_MAX]; /* the request brings one, or rate_error= decides: */
	struct shmlimit_limit own_limits[SHMLIMIT_REQUESTS_MAX];
	/*
	 * of the places free in the limit before, in thousandths; 0: none. And whether any has one
	 */
	uint32_t shares[SHMLIMIT_REQUESTS_MAX];
	int has_shares;
	size_t key_index[SHMLIMIT_REQUESTS_MAX]; /* in the caller's keys */
	struct key keys[SHMLIMIT_REQUESTS_MAX];
	struct shmlimit_gate_held *held; /* NULL: no places are held */
	/*
	 * what a dry run would have done; its error; and the key by which it is so, or by which the
	 * request is delayed
	 */
	int dry_denied, dry_delayed, dry_error;
	size_t by;
	int no_room; /* why a limit is left out of this request; 0: none is */
	/* a bit for each that is */
	uint32_t left_out;
	enum step step;
	size_t at;        /* in STEP_REHEARSE: the limit that is next */
	int pending;      /* the step waits for an agent */
	uint64_t segment; /* the number of the view in which it does */
	struct multi_take take;
	size_t enforced[SHMLIMIT_REQUESTS_MAX], enforced_count, dry_count;
	/* where the first of them was, while they are asked */
	size_t moved;
	struct shmlimit_result results[SHMLIMIT_REQUESTS_MAX]; /* of those that are enforced */
	size_t others; /* limits with peek or delay=, outside of a dry run; if there are none, the next five mean nothing */
	struct delayed delayed[SHMLIMIT_REQUESTS_MAX]; /* those with delay= */
	size_t delayed_count;
	uint64_t begun_ns;   /* when the request began to wait, by the monotonic clock */
	uint64_t longest_ns; /* the longest wait that was expected then */
	int waited;          /* it was too early for the request */
	/* tokens left in the limit that has the fewest */
	uint64_t least;
	char *to; /* the rest of the caller's buffer */
	/* of the limit that X-RateLimit describes */
	uint64_t limit, remaining, reset_ns;
};

/*
 * Decide, with the arguments of the public functions. The caller sets q->held and q->take.steps
 * before; the rest of *q is filled in. Where steps are wanted it returns SHMLIMIT_GATE_PENDING
 * instead of waiting for an agent.
 */
int gate_request_begin(struct shmlimit_gate *gate, const struct shmlimit_gate_key *keys, size_t n,
                       struct shmlimit_gate_answer *out, struct gate_request *q);

/* Go on with what is pending. -ENOBUFS: the answer's buffer is too small, and nothing was done. */
int gate_request_continue(struct shmlimit_gate *gate, struct gate_request *q, struct shmlimit_gate_answer *out);

/* May keys[key] be one of a request that was asked? */
int gate_has_key(const struct shmlimit_gate *gate, const struct shmlimit_gate_key *keys, size_t n, uint32_t key);

/* Give back what was taken in the step that is pending. */
void gate_request_cancel(struct shmlimit_gate *gate, struct gate_request *q);

#endif
