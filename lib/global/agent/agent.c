/*
 * agent: see agent.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "answer.h"
#include "prefetch.h"
#include "server_pool.h"
#include "request_run.h"

/*
 * While an answer is due, the agent checks for new requests this often. WHY NOT a thread that waits
 * for them: it costs two more context switches for each request, and this delay is small beside a
 * round trip.
 */
#define LOOK_NS UINT64_C(250000)

#define SWEEP_NS UINT64_C(500000000)

/*
 * An agent that was asked within AWAKE_NS, which is longer than most leases, looks for what may
 * wait each DOZE_NS.
 */
#define AWAKE_NS UINT64_C(200000000)
#define DOZE_NS UINT64_C(1000000)

static void take_requests(struct agent *a, uint64_t now_ns)
{
	struct mailbox_board *board = mailbox_board(a->g->mailbox);
	unsigned at = 0;

	while (a->free != NULL &&
	       (a->free->was = mailbox_next(a->g->mailbox, &at, &a->free->text, &a->free->receipt)) != REQUEST_FREE) {
		struct request_run *p = a->free;

		a->free = p->next;
		a->used++;
		a->asked_ns = now_ns;
		if (p->text.cost != 0)
			mailbox_set(&board->misses, board->misses + 1);
		request_run_begin(a, p);
	}
}

/* What was reported is over. */
static void report_back(const struct shmlimit_global *g)
{
	char line[URL_TEXT_MAX + 32];

	if (g->reported.kind == ERROR_NONE || g->options.report == NULL)
		return;
	snprintf(line, sizeof(line), "backend %s: answers again", g->breaker.key);
	g->options.report(g->options.arg, line);
}

/*
 * What is reported is that the URL's server fails or, while it works, that another node does. WHY
 * NOT each node by itself: the report names none of them.
 */
static void report_opening(struct agent *a, unsigned place)
{
	if (place != 0 && a->nodes[0]->failing)
		return;
	if (place == 0 && a->failed != 0)
		handle_recovered(a->g);
	handle_report(a->g, &a->nodes[place]->failure, NULL);
	a->failed = place;
}

/* Report changes of a node's state, and count its failures. */
static void report_health(struct agent *a, unsigned place)
{
	const struct node *node = a->nodes[place];

	if (node->openings != a->openings[place]) {
		report_opening(a, place);
		shmlimit_lease_count(a->g->limiter, SHMLIMIT_LEASE_BACKEND_ERRORS, 1);
		shmlimit_lease_count(a->g->limiter, SHMLIMIT_LEASE_BREAKER_OPENINGS, 1);
		a->openings[place] = node->openings;
	} else if (!node->failing && node->line->answered && place == a->failed) {
		report_back(a->g);
		handle_recovered(a->g);
	}
}

/* A server that drops keys, once for each node of this agent. */
static void warn_of_eviction(struct agent *a, unsigned place)
{
	const struct backend *b = &a->nodes[place]->line->backend;
	struct backend_error evicts = { .kind = ERROR_EVICTS };

	if (!b->ready || a->warned[place])
		return;
	a->warned[place] = b->evicts[0] != '\0';
	if (!a->warned[place])
		return;
	backend_error_copy(evicts.said, sizeof(evicts.said), b->evicts, strlen(b->evicts));
	handle_warn(a->g, &evicts);
}

static void step_nodes(struct agent *a)
{
	for (unsigned i = 0; i < a->count; i++) {
		struct node_entry *entry;

		node_step(a->nodes[i], monotonic_now_ns());
		report_health(a, i);
		warn_of_eviction(a, i);
		/*
		 * WHY read a->nodes[i] each time: request_run_end() may need its place for another
		 * node.
		 */
		while ((entry = node_done(a->nodes[i])) != NULL)
			request_run_end(a, a->nodes[i], (struct request_run *)(void *)entry);
	}
}

static void publish_status(struct agent *a)
{
	struct mailbox_board *board = mailbox_board(a->g->mailbox);
	const struct node *home = a->nodes[0];
	unsigned connections = 0;

	for (unsigned i = 0; i < a->count; i++)
		connections += (unsigned)a->nodes[i]->line->backend.ready;
	mailbox_set(&board->connections, connections);
	mailbox_set(&board->servers, a->count);
	for (unsigned i = 0; i < a->count && i < SHMLIMIT_GLOBAL_SERVERS; i++) {
		mailbox_set(&mailbox_server(a->g->mailbox, i)->failing, (uint64_t)a->nodes[i]->failing);
		mailbox_set(&mailbox_server(a->g->mailbox, i)->openings, a->nodes[i]->openings);
	}
	/* While it connects the end is not known: show at least the time to the next turn. */
	mailbox_set(&board->open_until_ns, !home->failing          ? 0
	                                   : home->attempt_ns != 0 ? monotonic_now_ns() + a->g->options.open_ns
	                                                           : home->open_until_ns);
}

/* Wait until there is something to do, for idle_ns at most. */
static void wait_for_work(struct agent *a, uint64_t idle_ns)
{
	struct pollfd pollfds[2 * CLUSTER_NODES];
	uint64_t now_ns = monotonic_now_ns();
	int due = 0;

	for (unsigned i = 0; i < a->count; i++) {
		const struct node *node = a->nodes[i];
		uint64_t node_ns = node_idle_ns(node, now_ns, &pollfds[2 * i]);

		idle_ns = node_ns < idle_ns ? node_ns : idle_ns;
		due |= node_is_asked(node) || (node->attempt_ns != 0 && !node->failing);
	}
	if (due) {
		struct timespec time = { 0, (long)(idle_ns < LOOK_NS ? idle_ns : LOOK_NS) };

		ppoll(pollfds, 2 * a->count, &time, NULL);
	} else if (idle_ns != 0 && now_ns - a->asked_ns < AWAKE_NS) {
		mailbox_doze(a->g->mailbox, a->mine, idle_ns < DOZE_NS ? idle_ns : DOZE_NS);
	} else if (idle_ns != 0) {
		mailbox_sleep(a->g->mailbox, a->mine, idle_ns);
	}
}

/*
 * What the backend may have counted is not made again by its process, which would count it twice:
 * the next agent repeats it.
 */
static void drop_requests(struct agent *a)
{
	struct node_entry *entry;

	prefetch_drop(a);
	for (unsigned i = 0; i < a->count; i++) {
		node_drop(a->nodes[i]);
		while ((entry = node_done(a->nodes[i])) != NULL) {
			struct request_run *p = (struct request_run *)(void *)entry;

			p->request.answer = SHMLIMIT_LEASE_ASK;
			answer_end(a, p, request_is_count(p->text.kind) ? REQUEST_REPEATED : REQUEST_AGAIN);
		}
	}
}

/* Returns whether this process is the agent. */
static int is_agent(struct agent *a)
{
	struct mailbox *mailbox = a->g->mailbox;
	uint64_t now_ns = monotonic_now_ns(), was = a->mine;
	struct mailbox_board *board = mailbox_board(mailbox);

	/* A claim is renewed when less than half of its time is left. */
	if (was != 0 && was > now_ns + MAILBOX_CLAIM_NS / 2 && mailbox_claimed_until_ns(mailbox) == was)
		return 1;
	if (!mailbox_claim(mailbox, &a->mine, a->g->backend, now_ns)) {
		if (was != 0)
			drop_requests(a);
		return 0;
	}
	/* Each time: a process that was stopped may have signed since. */
	mailbox_sign(mailbox);
	if (was == 0) {
		a->since_ns = now_ns;
		mailbox_set(&board->started_ns, now_ns);
		for (unsigned i = 0; i < a->count; i++)
			server_pool_name(a, i);
		a->inherited = mailbox_waiting(mailbox);
		mailbox_inherit(mailbox);
	}
	return 1;
}

/* Returns as prefetch_step(). */
static uint64_t prefetch(struct agent *a)
{
	uint64_t idle_ns = prefetch_step(a);

	while (a->again != NULL) {
		struct request_run *p = a->again;

		a->again = p->next;
		request_run_begin(a, p);
	}
	return idle_ns;
}

int agent_turn(struct agent *a)
{
	uint64_t now_ns = monotonic_now_ns();

	if (!is_agent(a)) {
		struct timespec time = { 0, (long)AGENT_WAIT_NS };

		clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
		return 0;
	}
	take_requests(a, now_ns);
	step_nodes(a);
	if (now_ns - a->swept_ns >= SWEEP_NS) {
		mailbox_sweep(a->g->mailbox, &a->watch, now_ns);
		a->swept_ns = now_ns;
	}
	publish_status(a);
	wait_for_work(a, prefetch(a));
	return 1;
}

struct agent *agent_new(struct shmlimit_global *g)
{
	struct agent *a = calloc(1, sizeof(*a));

	if (a == NULL)
		return NULL;
	a->g = g;
	a->nodes[0] = server_pool_new(a, &g->cluster.home.url);
	if (a->nodes[0] == NULL) {
		free(a);
		return NULL;
	}
	a->count = 1;
	for (unsigned i = 0; i < ON_THE_WAY; i++) {
		a->pool[i].next = a->free;
		a->free = &a->pool[i];
	}
	return a;
}

static int has_questions(const struct agent *a)
{
	for (unsigned i = 0; i < a->count; i++)
		if (node_is_asked(a->nodes[i]))
			return 1;
	return 0;
}

/*
 * An agent that ends takes no more requests, and waits for the answers that are on their way: they
 * have tokens. BOUND: half of the time after which a backend that says nothing has failed; the next
 * agent can still be asked then.
 */
static void await_answers(struct agent *a)
{
	uint64_t until_ns = monotonic_now_ns() + a->nodes[0]->patience.silence_ns / 2;

	while (a->mine != 0 && has_questions(a) && monotonic_now_ns() < until_ns && is_agent(a)) {
		wait_for_work(a, LOOK_NS);
		step_nodes(a);
	}
}

void agent_free(struct agent *a)
{
	await_answers(a);
	drop_requests(a);
	mailbox_resign(a->g->mailbox, &a->mine);
	for (unsigned i = 0; i < a->count; i++) {
		node_end(a->nodes[i]);
		free(a->nodes[i]);
	}
	free(a);
}
