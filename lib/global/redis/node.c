/*
 * node: see node.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backoff.h"
#include "node.h"

/* A time in the past: functions with a deadline do not wait. */
#define NOW 0

/* Time between two checks of a running lookup, which does not signal its end. */
#define LOOK_AGAIN_NS UINT64_C(10000000)

/* A server may shut a connection for being idle once it is at least this old. */
#define SETTLED_NS UINT64_C(1000000000)

/* A connection is late after this part of the time after which a silent server has failed. */
#define LATE_PARTS 4

#define TRIP_MOST 4

/* ---- Lists ---- */

static void list_append(struct node_list *list, struct node_entry *entry)
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

static void finish_entries(struct node *n, struct node_list *list, const struct backend_error *failure)
{
	struct node_entry *entry;

	while ((entry = remove_first(list)) != NULL) {
		entry->question.failure = *failure;
		list_append(&n->done, entry);
	}
}

/* ---- The connections ---- */

static void shut(struct node_line *line)
{
	backend_shut(&line->backend);
	free(line->out.bytes);
	line->out = (struct outbox){ 0 };
	line->out_sent = 0;
	line->asking_answered = line->answered = 0;
}

/* New questions are handed back from now on. */
static void open_breaker(struct node *n, const struct backend_error *failure, uint64_t now_ns)
{
	finish_entries(n, &n->queued, failure);
	n->failing = 1;
	n->failure = *failure;
	n->failures = 0;
	n->openings++;
	n->open_until_ns = now_ns + backoff_ns(n->patience.open_ns, n->rng += UINT64_C(0x9e3779b97f4a7c15));
}

static void shut_both(struct node *n, const struct backend_error *failure)
{
	shut(n->line);
	shut(n->late);
	finish_entries(n, &n->late->sent, failure);
	finish_entries(n, &n->line->sent, failure);
	n->attempt_ns = 0;
}

static void fail_all(struct node *n, const struct backend_error *failure, uint64_t now_ns)
{
	shut_both(n, failure);
	open_breaker(n, failure, now_ns);
}

static void close_breaker(struct node *n)
{
	n->failing = 0;
	n->failures = 0;
}

/*
 * Queue the unanswered questions again, before those that were not sent yet. No question is sent
 * three times. WHY NOT always reconnect at once: a server that answers the greeting and then hangs
 * up would cause an endless loop.
 */
static void lost(struct node *n, struct node_line *line, const struct backend_error *failure, uint64_t now_ns)
{
	struct node_list queued = n->queued, sent = line->sent;
	struct node_entry *entry;

	if (line == n->line && !line->answered && (sent.first != NULL || now_ns - line->since_ns < SETTLED_NS)) {
		fail_all(n, failure, now_ns);
		return;
	}
	shut(line);
	n->queued = line->sent = (struct node_list){ 0 };
	while ((entry = remove_first(&sent)) != NULL) {
		entry->question.failure = *failure;
		list_append(entry->again || n->failing ? &n->done : &n->queued, entry);
		entry->again = 1;
	}
	while ((entry = remove_first(&queued)) != NULL)
		list_append(&n->queued, entry);
}

/*
 * The usual round trip follows the last ones: a quarter of each, and of none more than TRIP_MOST
 * silences. Of answers that come together, which were all held back by the same thing, one counts.
 */
static void note_trip(struct node *n, uint64_t asked_ns, uint64_t now_ns)
{
	uint64_t trip_ns = now_ns - asked_ns, most_ns = TRIP_MOST * n->patience.silence_ns;

	if (n->trip_ns != 0 && asked_ns < n->tripped_ns)
		return;
	trip_ns = trip_ns < most_ns ? trip_ns : most_ns;
	n->trip_ns = n->trip_ns == 0 ? trip_ns : n->trip_ns - n->trip_ns / 4 + trip_ns / 4;
	n->tripped_ns = now_ns;
}

static uint64_t two_trips_or(const struct node *n, uint64_t ns)
{
	return 2 * n->trip_ns > ns ? 2 * n->trip_ns : ns;
}

static uint64_t silence_ns(const struct node *n)
{
	return two_trips_or(n, n->patience.silence_ns);
}

static uint64_t late_ns(const struct node *n)
{
	return two_trips_or(n, n->patience.silence_ns / LATE_PARTS);
}

/*
 * Find the addresses, and connect. Returns as backend_step(). WHY NOT that alone: it looks names
 * up, which may block.
 */
static enum backend_step connect_step(struct node *n, struct backend_error *failure)
{
	struct backend *b = &n->line->backend;
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

	if (n->failing && n->attempt_ns == 0 && now_ns < n->open_until_ns)
		return;
	if (n->attempt_ns == 0)
		n->attempt_ns = now_ns;
	/* BOUND: as in backend_ready(). */
	do {
		step = connect_step(n, &failure);
	} while (step == BACKEND_GO_ON);
	if (step == BACKEND_READY) {
		close_breaker(n);
		/* WHY NOT now_ns: the greeting may have been sent after it. */
		if (n->trip_ns == 0)
			note_trip(n, n->line->backend.greeted_ns, monotonic_now_ns());
		n->attempt_ns = 0;
		n->line->since_ns = n->since_ns = now_ns;
		return;
	}
	if (failure.kind != ERROR_LATE)
		fail_all(n, &failure, now_ns);
	/* The attempt goes on, but questions no longer wait for it. */
	if (n->attempt_ns != 0 && now_ns - n->attempt_ns >= n->patience.open_after * n->patience.silence_ns &&
	    !n->failing)
		open_breaker(n, &failure, now_ns);
}

/* ---- Questions ---- */

static void write_queued(struct node *n, uint64_t now_ns)
{
	struct node_line *line = n->line;
	struct node_entry *entry;

	while ((entry = remove_first(&n->queued)) != NULL) {
		if (!node_is_asked(n))
			n->since_ns = now_ns;
		if (line->sent.first == NULL)
			line->since_ns = now_ns;
		entry->asked_ns = now_ns;
		backend_put(&line->backend, &line->out, &entry->question, entry->with_text);
		list_append(&line->sent, entry);
	}
}

static int flush(struct node_line *line)
{
	ssize_t sent;

	if (line->out.failed)
		return -ENOMEM;
	if (line->out.bytes == NULL)
		return 0;
	sent = connection_write(&line->backend.connection, line->out.bytes + line->out_sent,
	                        line->out.len - line->out_sent);
	if (sent < 0)
		return (int)sent;
	line->out_sent += (size_t)sent;
	if (line->out_sent < line->out.len)
		return 0;
	free(line->out.bytes);
	line->out = (struct outbox){ 0 };
	line->out_sent = 0;
	return 0;
}

/* Read the answer of the first question. Returns 0, or 1 if the connection was shut. */
static int read_answer(struct node *n, struct node_line *line, const redisReply *reply, uint64_t now_ns)
{
	struct node_entry *entry = line->sent.first;
	const struct backend_error *failure;

	n->since_ns = line->since_ns = now_ns;
	if (entry == NULL) {
		struct backend_error unasked = { .kind = ERROR_REPLY };

		fail_all(n, &unasked, now_ns);
		return 1;
	}
	if (entry->question.ask_first && !line->asking_answered) {
		line->asking_answered = 1;
		return 0;
	}
	line->asking_answered = 0;
	backend_answer(reply, &entry->question);
	failure = &entry->question.failure;
	if (failure->kind == ERROR_REPLICA) {
		struct backend_error replica = *failure;

		backend_leave(&line->backend);
		lost(n, line, &replica, now_ns);
		return 1;
	}
	line->answered = line->backend.used = 1;
	entry->round_trip_ns = monotonic_now_ns() - entry->asked_ns;
	note_trip(n, entry->asked_ns, entry->asked_ns + entry->round_trip_ns);
	remove_first(&line->sent);
	if (failure->kind == ERROR_SCRIPT && !entry->with_text) {
		entry->with_text = 1;
		list_append(&n->queued, entry);
		return 0;
	}
	list_append(&n->done, entry);
	if (failure->kind == ERROR_NONE || failure->kind == ERROR_MOVED || backend_error_is_of_key(failure)) {
		close_breaker(n);
		return 0;
	}
	fail_all(n, failure, now_ns);
	return 1;
}

/*
 * BOUND: what the server has sent. It sends only what it was asked for; otherwise the connection is
 * shut.
 */
static int read_answers(struct node *n, struct node_line *line, uint64_t now_ns)
{
	redisReply *reply;
	int error, is_shut = 0;

	while (!is_shut && (error = connection_receive(&line->backend.connection, &reply, NOW)) == 0) {
		is_shut = read_answer(n, line, reply, now_ns);
		freeReplyObject(reply);
	}
	return is_shut ? 0 : error == -ETIMEDOUT ? 0 : error;
}

static void exchange_line(struct node *n, struct node_line *line, uint64_t now_ns)
{
	struct backend_error failure;
	int error = flush(line);

	if (error == 0)
		error = read_answers(n, line, now_ns);
	if (error == 0)
		return;
	failure = backend_error_of(&line->backend, error);
	lost(n, line, &failure, now_ns);
}

/* New questions take the other connection, which is made now, while this one is late. */
static void change_lines(struct node *n)
{
	struct node_line *line = n->late;

	n->late = n->line;
	n->line = line;
	backend_end(&line->backend);
	backend_begin(&line->backend, &n->late->backend.url);
	strcpy(line->backend.sha, n->late->backend.sha);
}

/* Neither connection says anything. */
static void count_silence(struct node *n, uint64_t now_ns)
{
	struct backend_error late = { .kind = ERROR_LATE };

	n->since_ns = now_ns;
	if (++n->failures >= n->patience.open_after)
		open_breaker(n, &late, now_ns);
}

/* ---- What the agent calls ---- */

void node_begin(struct node *n, const struct url *url, const struct node_patience *patience, uint64_t rng)
{
	*n = (struct node){ .patience = *patience, .rng = rng };
	n->line = &n->lines[0];
	n->late = &n->lines[1];
	backend_begin(&n->line->backend, url);
	backend_begin(&n->late->backend, url);
}

void node_end(struct node *n)
{
	shut(n->line);
	shut(n->late);
	resolver_end(&n->lookup);
	backend_end(&n->line->backend);
	backend_end(&n->late->backend);
}

void node_add(struct node *n, struct node_entry *entry)
{
	entry->with_text = entry->again = 0;
	entry->question.failure = n->failure;
	list_append(n->failing ? &n->done : &n->queued, entry);
}

int node_is_asked(const struct node *n)
{
	return n->line->sent.first != NULL || n->late->sent.first != NULL;
}

void node_step(struct node *n, uint64_t now_ns)
{
	if (n->queued.first != NULL)
		n->used_ns = now_ns;
	if (n->late->backend.ready)
		exchange_line(n, n->late, now_ns);
	if (n->late->backend.ready && n->late->sent.first == NULL)
		shut(n->late);
	/* A server that stayed silent is connected to again. */
	if (n->failing && now_ns >= n->open_until_ns && n->attempt_ns == 0)
		shut_both(n, &n->failure);
	if (!n->line->backend.ready)
		connect_on(n, now_ns);
	if (n->line->backend.ready)
		write_queued(n, now_ns);
	if (n->line->backend.ready)
		exchange_line(n, n->line, now_ns);
	if (node_is_asked(n) && !n->failing && now_ns - n->since_ns >= silence_ns(n))
		count_silence(n, now_ns);
	if (n->line->sent.first != NULL && n->late->sent.first == NULL && !n->failing &&
	    now_ns - n->line->since_ns >= late_ns(n))
		change_lines(n);
}

struct node_entry *node_done(struct node *n)
{
	return remove_first(&n->done);
}

void node_drop(struct node *n)
{
	struct backend_error dropped = { .kind = ERROR_WAITED };

	shut_both(n, &dropped);
	finish_entries(n, &n->queued, &dropped);
}

static struct pollfd pollfd_of(const struct node_line *line)
{
	int wants = line->out.bytes != NULL || !line->backend.connection.connected;

	return (struct pollfd){ .fd = line->backend.connection.fd, .events = (short)(POLLIN | (wants ? POLLOUT : 0)) };
}

static uint64_t until(uint64_t then_ns, uint64_t now_ns)
{
	return then_ns > now_ns ? then_ns - now_ns : 0;
}

uint64_t node_idle_ns(const struct node *n, uint64_t now_ns, struct pollfd pollfds[2])
{
	uint64_t idle_ns = UINT64_MAX, change_ns = until(n->line->since_ns + late_ns(n), now_ns);

	pollfds[0] = pollfd_of(n->line);
	pollfds[1] = pollfd_of(n->late);
	if (n->done.first != NULL || (n->line->backend.ready && n->queued.first != NULL))
		return 0;
	if (n->failing && n->attempt_ns == 0)
		return until(n->open_until_ns, now_ns);
	if (node_is_asked(n))
		idle_ns = until(n->since_ns + silence_ns(n), now_ns);
	if (n->line->sent.first != NULL && n->late->sent.first == NULL && change_ns < idle_ns)
		return change_ns;
	if (n->attempt_ns != 0)
		return LOOK_AGAIN_NS < idle_ns ? LOOK_AGAIN_NS : idle_ns;
	return n->line->backend.ready ? idle_ns : 0;
}
