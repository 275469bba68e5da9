/*
 * node: one backend server of the agent, over one connection for all questions. Questions are sent
 * as they come, and the answers come in the same order. Each question is handed back with its
 * answer, or with the error.
 *
 * A connection that is late is not a server that fails: one packet that was lost holds back all
 * that comes after it. So after `late_ns` without a reply, or twice the usual round trip if that is
 * longer, new questions go over a second connection. The first one is read on until all its answers
 * are there, and then shut.
 *
 * A node is its own circuit breaker. A failure is `silence_ns`, or twice the usual round trip, in
 * which questions wait and neither connection says anything; after `open_after` in a row the
 * breaker opens. It opens at once if the connection cannot be made or breaks before the first
 * answer, or if the server reports that it cannot answer now. While it is open new questions are
 * handed back at once. An answer that comes late closes it: the server is there again. Otherwise
 * the agent connects again after about `open_ns`, and its greeting is the one request that closes
 * the breaker or not. A connection that breaks later is made again at once, and its questions are
 * asked once more: tokens that the server has debited for them may be lost.
 *
 * No function here waits.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef GLOBAL_NODE_H
#define GLOBAL_NODE_H

#include <poll.h>

#include "backend.h"
#include "resolver.h"

struct node_entry {
	struct node_entry *next;
	struct backend_question question;
	uint64_t asked_ns;      /* when it was sent */
	uint64_t round_trip_ns; /* the time that its answer took */
	int with_text;          /* the server did not know the script */
	int again;              /* an earlier connection broke after it was sent */
};

struct node_list {
	struct node_entry *first, *last;
};

/* A connection, and the questions on it. */
struct node_line {
	struct backend backend;
	struct outbox out;
	size_t out_sent;
	struct node_list sent;
	int asking_answered; /* the reply to ASKING of the first of `sent` has arrived */
	int answered;        /* the connection has carried an answer */
	uint64_t since_ns;   /* time of the last reply, or of sending the oldest unanswered question */
};

/* How long a server may be silent, and what follows. */
struct node_patience {
	uint64_t silence_ns, open_ns;
	unsigned open_after;
};

struct node {
	struct node_line lines[2], *line, *late; /* line: for new questions; late: the other one */
	struct resolver *lookup;
	struct node_list queued, done;
	int failing;
	struct backend_error failure; /* why it fails */
	struct node_patience patience;
	uint64_t rng;
	uint64_t trip_ns, tripped_ns; /* smoothed round trip, 0: not known; when it was measured */
	unsigned failures;            /* in a row */
	uint64_t attempt_ns;          /* when it began to connect; 0: it is not connecting */
	uint64_t since_ns;            /* as of the lines, of both */
	uint64_t open_until_ns;
	uint64_t openings;
	uint64_t used_ns;
};

void node_begin(struct node *node, const struct url *url, const struct node_patience *patience, uint64_t rng);
/* All its questions must be done. */
void node_end(struct node *node);

void node_add(struct node *node, struct node_entry *entry);

/* Do all that can be done without waiting. */
void node_step(struct node *node, uint64_t now_ns);

/* Take a question that is done; NULL if there is none. */
struct node_entry *node_done(struct node *node);

/* End all questions without an answer, and shut the connection. */
void node_drop(struct node *node);

/* Are answers due? */
int node_is_asked(const struct node *node);

/*
 * Returns the time until the node has to be called again, unless one of the pollfds has an event.
 * An fd is -1 if there is none.
 */
uint64_t node_idle_ns(const struct node *node, uint64_t now_ns, struct pollfd pollfds[2]);

#endif
