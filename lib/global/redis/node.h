/*
 * node: one backend server of the agent, over one connection for all questions. Questions are sent
 * as they come, and the answers come in the same order. Each question is handed back with its
 * answer, or with the error.
 *
 * A node is its own circuit breaker. It fails if the connection cannot be made or breaks before the
 * first answer, if a question has no answer after `silence_ns`, or if the server reports that it
 * cannot answer now. Then all its questions are handed back, new ones are handed back at once, and
 * the agent connects again after about `open_ns`. Once the server has answered the greeting,
 * questions are sent again. A connection that breaks later is made again at once, and its questions
 * are asked once more: tokens that the server has debited for them may be lost.
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

struct node {
	struct backend backend;
	struct resolver *lookup;
	struct outbox out;
	size_t out_sent;
	struct node_list queued, sent, done;
	int asking_answered; /* the reply to ASKING of the first of `sent` has arrived */
	int answered;        /* the connection has carried an answer */
	int failing;
	struct backend_error failure; /* why it fails */
	uint64_t silence_ns, open_ns, rng;
	uint64_t attempt_ns; /* when it began to connect; 0: it is not connecting */
	uint64_t since_ns;   /* time of the last reply, or of sending the oldest unanswered question */
	uint64_t open_until_ns;
	uint64_t openings;
	uint64_t used_ns;
};

void node_begin(struct node *node, const struct url *url, uint64_t silence_ns, uint64_t open_ns, uint64_t rng);
/* All its questions must be done. */
void node_end(struct node *node);

void node_add(struct node *node, struct node_entry *entry);

/* Do all that can be done without waiting. */
void node_step(struct node *node, uint64_t now_ns);

/* Take a question that is done; NULL if there is none. */
struct node_entry *node_done(struct node *node);

/* End all questions without an answer, and shut the connection. */
void node_drop(struct node *node);

/*
 * Returns the time until the node has to be called again, unless *pollfd has an event. Its fd is -1
 * if there is none.
 */
uint64_t node_idle_ns(const struct node *node, uint64_t now_ns, struct pollfd *pollfd);

#endif
