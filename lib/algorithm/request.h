/*
 * request: what is asked of a key, and what became of it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_REQUEST_H
#define SHMLIMIT_LIB_REQUEST_H

#include "atomic.h"
#include "gcra.h"
#include "key_bytes.h"
#include "when.h"

/* What a first try is made of: so a request that is on its way stays in registers. */
#define FAST __attribute__((always_inline)) static inline

enum operation {
	OP_TAKE,
	OP_PEEK,
	OP_REFUND,
	OP_RESERVE,
	OP_CHARGE,
	OP_TAKE_SOME, /* see decide_some(): no row's apply gets it */
	OP_LEASE,
	OP_DEPOSIT,
	OP_DENY,
	OP_ABANDON,
	OP_COUNT,
	OP_COUNT_DOWN, /* by less than 1, or the time to live alone */
	OP_COUNT_LOOK,
	OP_ENTER,
	OP_RENEW,
	OP_LEAVE,
	OP_BIND,
	OP_AHEAD,
	OPERATIONS,
};

/* What every algorithm but HOLD has; the others are for leases, counts and places. */
#define OPERATIONS_COMMON (1u << OP_TAKE | 1u << OP_PEEK | 1u << OP_REFUND | 1u << OP_RESERVE | 1u << OP_CHARGE)
#define OPERATIONS_LEASE (1u << OP_LEASE | 1u << OP_DEPOSIT | 1u << OP_DENY | 1u << OP_ABANDON)
#define OPERATIONS_COUNT (1u << OP_COUNT | 1u << OP_COUNT_DOWN | 1u << OP_COUNT_LOOK)
#define OPERATIONS_HOLD \
	(1u << OP_TAKE | 1u << OP_PEEK | 1u << OP_RESERVE | 1u << OP_ENTER | 1u << OP_RENEW | 1u << OP_LEAVE | \
	 1u << OP_BIND | 1u << OP_AHEAD)

/* Only looks: a handle that is read-only may do it. */
static inline int operation_only_looks(enum operation op)
{
	return op == OP_PEEK || op == OP_COUNT_LOOK || op == OP_AHEAD;
}

/* Its answer is counted, and shown to tracers. */
static inline int operation_is_counted(enum operation op)
{
	return (1u << op & (1u << OP_TAKE | 1u << OP_TAKE_SOME | 1u << OP_RESERVE | 1u << OP_LEASE | 1u << OP_DEPOSIT |
	                    1u << OP_DENY | 1u << OP_COUNT | 1u << OP_ENTER)) != 0;
}

/* A holder's, of a place that it has already: done under a rule that is off too. */
static inline int operation_is_holders(enum operation op)
{
	return op == OP_RENEW || op == OP_LEAVE || op == OP_BIND;
}

/* It is a request that passes or does not: what a pause denies. */
static inline int operation_passes(enum operation op)
{
	return (1u << op & (1u << OP_TAKE | 1u << OP_TAKE_SOME | 1u << OP_PEEK | 1u << OP_RESERVE | 1u << OP_LEASE |
	                    1u << OP_COUNT | 1u << OP_ENTER)) != 0;
}

/* It says what has happened already: a full table does not deny it. */
static inline int operation_has_happened(enum operation op)
{
	return (1u << op & (1u << OP_CHARGE | 1u << OP_DEPOSIT | 1u << OP_DENY | 1u << OP_ABANDON | 1u << OP_RENEW |
	                    1u << OP_LEAVE | 1u << OP_BIND)) != 0;
}

/* How long leases last: those of 28 tokens or fewer `few_times` as long, if that is more than 1. */
struct lease_pace {
	uint64_t lease_ns;
	uint32_t few_times;
};

/* What only the operations of leases have. */
struct lease_request {
	uint64_t tokens; /* DEPOSIT */
	union {
		uint64_t lease_ns;      /* DEPOSIT: how long the lease lasts; DENY: the denial */
		struct lease_pace pace; /* LEASE */
	};
	uint64_t claim_ns;          /* LEASE */
	struct shmlimit_lease *out; /* LEASE */
};

/* What only the operations of counts have. */
struct count_request {
	int64_t n, bound;
	uint64_t ttl_ns; /* 0: the rule's period */
	uint32_t flags;
	struct shmlimit_count *out;
};

/* A place that is held: a cell of the key's slot, and what was entered there; value 0: none. */
struct hold_place {
	uint32_t cell;
	uint64_t value;
};

/*
 * What bounds an entry besides its limit: how many places of the key there may be, as things are
 * now. `sure`: without the places of dead holders.
 */
struct hold_share {
	uint64_t (*most)(const struct hold_share *share, int sure);
};

/* What only the operations of places have. */
struct hold_request {
	struct hold_place place; /* ENTER: to be filled in; the others: which it is */
	/* ENTER, RENEW: what was swapped in before the slot's swap was lost */
	struct hold_place tried;
	int done;        /* RENEW, LEAVE, BIND, AHEAD: it was in force */
	uint32_t flags;  /* LEAVE: SHMLIMIT_PLACE_DROPPED, _UNTIMED */
	uint64_t holder; /* ENTER, BIND: the number of a process, see registry.h; ENTER: or HOLD_NOBODY */
	const struct hold_share *share; /* ENTER: or NULL */
};

/*
 * The swap that took tokens, for a caller that may want to take it back: while the slot stands as
 * `after`, swapping `before` in undoes it, or, where that is over by then, nothing. That leaves no
 * trace in any algorithm. slot NULL: nothing was written. A place that was entered is left.
 *
 * The word comes back, and a swap that another process prepared before the take may
 * go through after it. It is right: it follows from the word that is there again.
 *
 * Where another process changed the slot since, a refund undoes the take, and gives no more than
 * the key would have in addition, had the take not happened. A funnel gets what was taken, less
 * what refilled since: without the take it may have been full, and have lost that. WHY NOT less
 * what would have been lost after `before`: takes of other processes, undone in between, may have
 * filled it earlier. A count gets tokens back in the same period only, a lease in the same lease, a
 * window for entries that still count; and no key gets any under a later version of its rule.
 */
struct undo {
	struct layout_slot *slot;
	struct slot_seen before, after;
	struct hold_place place; /* value 0: none was entered */
	/* By which `before` was read: the request's time, or a later reading of the clock. */
	uint64_t at_ns;
};

struct request {
	enum operation op;
	uint32_t rule;
	uint64_t hash;        /* of the key, under the rule */
	struct key_bytes key; /* to be stored with a slot that is claimed */
	uint64_t amount;      /* tokens asked for, or given back */
	struct when when;
	uint64_t max_wait_ns; /* RESERVE only */
	/*
	 * What gave the tokens or the place that comes back, at when.ns or later; NULL: the caller
	 * says that it may.
	 */
	const struct undo *taken; /* REFUND, LEAVE */
	const struct gcra *limit; /* its own; NULL: the rule's */
	union {
		const struct lease_request *lease;
		const struct count_request *count;
		struct hold_request *hold;
	};
	struct undo *undo; /* TAKE, and ENTER without `before`: to be filled in, or NULL */
};

/* What has no hash yet and, with when_clock(), no time. */
static inline struct request request_make(enum operation op, int rule, struct key_bytes key, uint64_t amount,
                                          struct when when)
{
	return (struct request){ .op = op, .rule = (uint32_t)rule, .key = key, .amount = amount, .when = when };
}

/*
 * The same with its hash and time, in another structure. A compiler keeps a structure in registers
 * as long as its address is passed to no function that is not inlined. So a first try has one of
 * its own, and what is passed on is a copy. WHY NOT by assignment: GCC 12 then keeps both in
 * memory, and a take has 530 instructions instead of 416.
 */
FAST struct request request_complete(const struct request *q, uint64_t hash, struct when when)
{
	return (struct request){
		.op = q->op,
		.rule = q->rule,
		.hash = hash,
		.key = { q->key.bytes, q->key.len },
		.amount = q->amount,
		.when = { when.ns, when.given },
		.max_wait_ns = q->max_wait_ns,
		.taken = q->taken,
		.limit = q->limit,
		.lease = q->lease,
		.undo = q->undo,
	};
}

/*
 * Leaves a place without a change of the word, which is right only while slot and rule stand: see
 * hold.h. An entry leaves what it tried, where it is denied.
 */
static inline int request_leaves(const struct request *q)
{
	return q->op == OP_LEAVE || (q->op == OP_ENTER && q->hold->tried.value != 0);
}

static inline struct request request_copy(const struct request *q)
{
	return request_complete(q, q->hash, q->when);
}

/* The same with an operation that the compiler knows, so that it leaves out what is for others. */
FAST struct request request_as(const struct request *q, enum operation op)
{
	struct request copy = request_copy(q);

	copy.op = op;
	return copy;
}

struct verdict {
	int answer;
	int changed;             /* what the key has did */
	uint64_t word;           /* what says it as decided */
	uint64_t wait_ns;        /* RESERVE, allowed */
	uint64_t retry_after_ns; /* denied; CHARGE: FUNNEL_NEVER if not all was charged */
};

#endif
