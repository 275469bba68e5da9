/*
 * node: see node.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <stdlib.h>

#include "backoff.h"
#include "node.h"

/* A time in the past: functions with a deadline do not wait. */
#define NOW 0

/* Time between two checks of a running lookup, which does not signal its end. */
#define LOOK_AGAIN_NS UINT64_C(10000000)

/* A server may shut a connection for being idle once it is at least this old. */
#define SETTLED_NS UINT64_C(1000000000)

/* ---- Lists ---- */

static void append(struct node_list *list, struct node_entry *entry)
{
	entry->next = NULL;
	if (list->first == NULL)
		list->first = entry;
	else
		list->last->next = entry;
	list->last = entry;
}

static struct node_entry *remove_first(struct node_list *list)
{
	struct node_entry *entry = list->first;

	if (entry != NULL)
		list->first = entry->next;
	return entry;
}

static void finish(struct node *n, struct node_list *list, const struct backend_error *failure)
{
	struct node_entry *entry;

	while ((entry = remove_first(list)) != NULL) {
		entry->question.failure = *failure;
		append(&n->done, entry);
	}
}

/* ---- The connection ---- */

static void shut(struct node *n)
{
	backend_shut(&n->backend);
	free(n->out.bytes);
	n->out = (struct outbox){ 0 };
	n->out_sent = 0;
	n->asking_answered = n->answered = 0;
	n->attempt_ns = 0;
}

static void fail(struct node *n, const struct backend_error *failure, uint64_t now_ns)
{
	shut(n);
	finish(n, &n->sent, failure);
	finish(n, &n->queued, failure);
	n->failing = 1;
	n->failure = *failure;
	n->openings++;
	n->open_until_ns = now_ns + backoff_ns(n->open_ns, n->rng += UINT64_C(0x9e3779b97f4a7c15));
}

/*
 * Queue the unanswered questions again, before those that were not sent yet. No question is sent
 * three times. WHY NOT always reconnect at once: a server that answers the greeting and then hangs
 * up would cause an endless loop.
 */
static void lost(struct node *n, const struct backend_error *failure, uint64_t now_ns)
{
	struct node_list queued = n->queued, sent = n->sent;
	struct node_entry *entry;

	if (!n->answered && (sent.first != NULL || now_ns - n->since_ns < SETTLED_NS)) {
		fail(n, failure, now_ns);
		return;
	}
	shut(n);
	n->queued = n->sent = (struct node_list){ 0 };
	while ((entry = remove_first(&sent)) != NULL) {
		entry->question.failure = *failure;
		append(entry->again ? &n->done : &n->queued, entry);
		entry->again = 1;
	}
	while ((entry = remove_first(&queued)) != NULL)
		append(&n->queued, entry);
}

/*
 * Find the addresses, and connect. Returns as backend_step(). WHY NOT that alone: it looks names
 * up, which may block.
 */
static enum backend_step connect_step(struct node *n, struct backend_error *failure)
{
	struct backend *b = &n->backend;
	int error = 0;

	*failure = (struct backend_error){ .kind = ERROR_LATE };
	if (b->connection.fd < 0 && b->found == NULL && resolver_is_needed(backend_url(b)))
		error = resolver_poll(&n->lookup, backend_url(b), &b->found);
	if (error == 0)
		return backend_step(b, NOW, failure);
	if (error == -EINPROGRESS)
		return BACKEND_FAILED;
	*failure = backend_error_of(b, error);
	return backend_refuse(b);
}

static void connect_on(struct node *n, uint64_t now_ns)
{
	struct backend_error failure;
	enum backend_step step;

	if (now_ns < n->open_until_ns)
		return;
	if (n->attempt_ns == 0)
		n->attempt_ns = now_ns;
	/* BOUND: as in backend_ready(). */
	do {
		step = connect_step(n, &failure);
	} while (step == BACKEND_GO_ON);
	if (step == BACKEND_READY) {
		n->failing = 0;
		n->attempt_ns = 0;
		n->since_ns = now_ns;
		return;
	}
	if (failure.kind != ERROR_LATE)
		fail(n, &failure, now_ns);
	/* The attempt goes on, but questions no longer wait for it. */
	if (n->attempt_ns != 0 && now_ns - n->attempt_ns >= n->silence_ns && !n->failing) {
		n->failing = 1;
		n->failure = failure;
		n->openings++;
		finish(n, &n->queued, &failure);
	}
}

/* ---- Questions ---- */

static void write_queued(struct node *n, uint64_t now_ns)
{
	struct node_entry *entry;

	while ((entry = remove_first(&n->queued)) != NULL) {
		if (n->sent.first == NULL)
			n->since_ns = now_ns;
		entry->asked_ns = now_ns;
		backend_put(&n->backend, &n->out, &entry->question, entry->with_text);
		append(&n->sent, entry);
	}
}

static int flush(struct node *n)
{
	ssize_t sent;

	if (n->out.failed)
		return -ENOMEM;
	if (n->out.bytes == NULL)
		return 0;
	sent = connection_write(&n->backend.connection, n->out.bytes + n->out_sent, n->out.len - n->out_sent);
	if (sent < 0)
		return (int)sent;
	n->out_sent += (size_t)sent;
	if (n->out_sent < n->out.len)
		return 0;
	free(n->out.bytes);
	n->out = (struct outbox){ 0 };
	n->out_sent = 0;
	return 0;
}

/* Read the answer of the first question. Returns 0, or 1 if the connection was shut. */
static int read_answer(struct node *n, const redisReply *reply, uint64_t now_ns)
{
	struct node_entry *entry = n->sent.first;
	const struct backend_error *failure;

	n->since_ns = now_ns;
	if (entry == NULL) {
		struct backend_error unasked = { .kind = ERROR_REPLY };

		fail(n, &unasked, now_ns);
		return 1;
	}
	if (entry->question.ask_first && !n->asking_answered) {
		n->asking_answered = 1;
		return 0;
	}
	n->asking_answered = 0;
	backend_answer(reply, &entry->question);
	failure = &entry->question.failure;
	if (failure->kind == ERROR_REPLICA) {
		struct backend_error replica = *failure;

		backend_leave(&n->backend);
		lost(n, &replica, now_ns);
		return 1;
	}
	n->answered = n->backend.used = 1;
	entry->round_trip_ns = monotonic_now_ns() - entry->asked_ns;
	remove_first(&n->sent);
	if (failure->kind == ERROR_SCRIPT && !entry->with_text) {
		entry->with_text = 1;
		append(&n->queued, entry);
		return 0;
	}
	append(&n->done, entry);
	if (failure->kind == ERROR_NONE || failure->kind == ERROR_MOVED || backend_error_is_of_key(failure))
		return 0;
	fail(n, failure, now_ns);
	return 1;
}

/*
 * BOUND: what the server has sent. It sends only what it was asked for; otherwise the connection is
 * shut.
 */
static int read_answers(struct node *n, uint64_t now_ns)
{
	redisReply *reply;
	int error, is_shut = 0;

	while (!is_shut && (error = connection_receive(&n->backend.connection, &reply, NOW)) == 0) {
		is_shut = read_answer(n, reply, now_ns);
		freeReplyObject(reply);
	}
	return is_shut ? 0 : error == -ETIMEDOUT ? 0 : error;
}

static void exchange(struct node *n, uint64_t now_ns)
{
	struct backend_error late = { .kind = ERROR_LATE }, failure;
	int error;

	write_queued(n, now_ns);
	error = flush(n);
	if (error == 0)
		error = read_answers(n, now_ns);
	if (error != 0) {
		failure = backend_error_of(&n->backend, error);
		lost(n, &failure, now_ns);
	} else if (n->sent.first != NULL && now_ns - n->since_ns >= n->silence_ns) {
		fail(n, &late, now_ns);
	}
}

/* ---- What the agent calls ---- */

void node_begin(struct node *n, const struct url *url, uint64_t silence_ns, uint64_t open_ns, uint64_t rng)
{
	*n = (struct node){ .silence_ns = silence_ns, .open_ns = open_ns, .rng = rng };
	backend_begin(&n->backend, url);
}

void node_end(struct node *n)
{
	shut(n);
	resolver_end(&n->lookup);
	backend_end(&n->backend);
}

void node_add(struct node *n, struct node_entry *entry)
{
	entry->with_text = entry->again = 0;
	entry->question.failure = n->failure;
	append(n->failing ? &n->done : &n->queued, entry);
}

void node_step(struct node *n, uint64_t now_ns)
{
	if (n->queued.first != NULL)
		n->used_ns = now_ns;
	if (!n->backend.ready)
		connect_on(n, now_ns);
	if (n->backend.ready)
		exchange(n, now_ns);
}

struct node_entry *node_done(struct node *n)
{
	return remove_first(&n->done);
}

void node_drop(struct node *n)
{
	struct backend_error dropped = { .kind = ERROR_WAITED };

	shut(n);
	finish(n, &n->sent, &dropped);
	finish(n, &n->queued, &dropped);
}

uint64_t node_idle_ns(const struct node *n, uint64_t now_ns, struct pollfd *pollfd)
{
	int wants = n->out.bytes != NULL || !n->backend.connection.connected;

	*pollfd = (struct pollfd){ .fd = n->backend.connection.fd, .events = (short)(POLLIN | (wants ? POLLOUT : 0)) };
	if (n->done.first != NULL || (n->backend.ready && n->queued.first != NULL))
		return 0;
	if (n->sent.first != NULL)
		return n->since_ns + n->silence_ns > now_ns ? n->since_ns + n->silence_ns - now_ns : 0;
	if (n->attempt_ns != 0)
		return LOOK_AGAIN_NS;
	if (!n->backend.ready)
		return n->open_until_ns > now_ns ? n->open_until_ns - now_ns : 0;
	return UINT64_MAX;
}
