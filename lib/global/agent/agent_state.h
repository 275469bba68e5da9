/*
 * agent_state: what the files of the agent share.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef GLOBAL_AGENT_STATE_H
#define GLOBAL_AGENT_STATE_H

#include "agent.h"
#include "cluster.h"

/*
 * Most questions in flight. More than there are cells, since some belong to processes that no
 * longer wait.
 */
#define ON_THE_WAY 256

/* A request on its way to the backend and back, or a prefetched lease. */
struct request_run {
	struct node_entry on_way; /* first, so that a pointer to it is one to the whole */
	struct request_run *next;
	struct lease_request request;
	struct request_text text;
	struct receipt receipt;
	enum request_state was; /* of mailbox_next() */
	struct shmlimit_result result;
	uint64_t sent_ns; /* by the limiter's clock */
	unsigned hops;
	/*
	 * A prefetched lease, from cost 0 until it is deposited or a process's request becomes one
	 * with it:
	 */
	int kept;                    /* it has its answer, and is deposited later */
	int watched;                 /* it was deposited: ask again before it ends or is spent */
	uint64_t look_ns, looked_ns; /* of monotonic_now_ns(): next look at the key, last one */
	uint64_t held;               /* that the key had then */
	uint64_t since_ns, spent;    /* watched: since when, and what was spent since */
	uint64_t used_ns;            /* when the key was last seen to be used */
};

struct agent {
	struct shmlimit_global *g;
	uint64_t mine;               /* the claim, see mailbox_claim() */
	uint64_t swept_ns, asked_ns; /* asked_ns: when it took the last request */
	uint64_t since_ns;           /* since when it is the agent */
	unsigned inherited;          /* requests that waited then: an earlier agent may have taken them */
	struct mailbox_watch watch;
	unsigned count;
	struct node *nodes[CLUSTER_NODES];    /* the first is that of the URL */
	uint64_t openings[CLUSTER_NODES];     /* of each node's breaker, that were counted */
	unsigned failed;                      /* the place of the node that was reported last */
	unsigned char warned[CLUSTER_NODES];  /* that the node drops keys */
	unsigned char of_slot[CLUSTER_SLOTS]; /* of a cluster: a node's place */
	unsigned prefetches;
	struct request_run *prefetched; /* the prefetched leases, by `next` */
	struct request_run *again;      /* what prefetch_step() wants to have asked for, by `next` */
	struct request_run *free;
	unsigned used; /* of the pool: not in `free` */
	struct request_run pool[ON_THE_WAY];
};

_Static_assert(CLUSTER_NODES <= 256, "a place is a byte");

#endif
