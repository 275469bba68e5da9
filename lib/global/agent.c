/*
 * agent: see agent.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agent.h"
#include "fleet.h"

/* Most questions in flight. More than there are cells, since some belong to processes that no longer wait. */
#define ON_THE_WAY 256

/* A backend that sends nothing for this long has failed; the deadline is used instead if it is longer. */
#define SILENCE_NS UINT64_C(100000000)

/*
 * While an answer is due, the agent checks for new requests this often. WHY NOT a thread that waits for them: it
 * costs two more context switches for each request, and this delay is small beside a round trip.
 */
#define LOOK_NS UINT64_C(250000)

#define SWEEP_NS UINT64_C(500000000)

/*
 * Most nodes that one question is sent to: a node, the node that the key is being moved to, and one more if that
 * changes.
 */
#define HOPS 4

struct pending {
	struct node_ask on_way;        /* first, so that a pointer to it is one to the whole */
	struct pending *next;
	struct ask ask;
	struct request_text text;
	struct ticket ticket;
	struct shmlimit_result result;
	uint64_t sent_ns;              /* by the limiter's clock */
	unsigned hops;
};

struct agent {
	struct shmlimit_global *g;
	uint64_t mine;                 /* the claim, see requests_claim() */
	uint64_t swept_ns;
	struct requests_watch watch;
	unsigned count;
	struct node *nodes[FLEET_NODES]; /* the first is that of the URL */
	uint64_t openings[FLEET_NODES];  /* of each node's breaker, that were reported */
	unsigned char of_slot[FLEET_SLOTS]; /* of a cluster: a node's place */
	struct pending *free;
	struct pending pool[ON_THE_WAY];
};

_Static_assert(FLEET_NODES <= 256, "a place is a byte");

/* ---- Nodes ---- */

static struct node *new_node(struct agent *a, const struct url *url)
{
	struct node *node = malloc(sizeof(*node));
	uint64_t deadline_ns = a->g->options.deadline_ns;

	if (node != NULL)
		node_begin(node, url, deadline_ns > SILENCE_NS ? deadline_ns : SILENCE_NS, a->g->options.open_ns,
		           handle_rng(a->g));
	return node;
}

/* Returns a free place, or that of the least recently used node without questions. -1: there is none. */
static int free_place(struct agent *a)
{
	unsigned oldest = 0;

	if (a->count < FLEET_NODES)
		return (int)a->count;
	for (unsigned i = 1; i < a->count; i++) {
		const struct node *node = a->nodes[i];

		if (node->queued.first == NULL && node->sent.first == NULL && node->done.first == NULL &&
		    (oldest == 0 || node->used_ns < a->nodes[oldest]->used_ns))
			oldest = i;
	}
	if (oldest == 0)
		return -1;
	node_end(a->nodes[oldest]);
	free(a->nodes[oldest]);
	a->nodes[oldest] = NULL;
	for (unsigned slot = 0; slot < FLEET_SLOTS; slot++)
		if (a->of_slot[slot] == oldest)
			a->of_slot[slot] = 0;
	return (int)oldest;
}

/* Returns the place of a node, which is added if it is new; -1 without room or memory. */
static int node_at(struct agent *a, const struct url *url)
{
	struct node *node;
	int place;

	for (unsigned i = 0; i < a->count; i++)
		if (strcmp(a->nodes[i]->engine.url.host, url->host) == 0 &&
		    strcmp(a->nodes[i]->engine.url.port, url->port) == 0)
			return (int)i;
	node = new_node(a, url);
	if (node == NULL)
		return -1;
	place = free_place(a);
	if (place < 0) {
		node_end(node);
		free(node);
		return -1;
	}
	a->nodes[place] = node;
	a->openings[place] = 0;
	a->count += (unsigned)place == a->count;
	return place;
}

/* ---- Questions ---- */

static void answer(struct agent *a, struct pending *p, enum request_state state)
{
	struct request_board *board = requests_board(a->g->requests);
	struct request_answer with = { p->result.limit, p->result.remaining, p->result.retry_after_ns,
		                       p->result.reset_after_ns };

	requests_set(state == REQUEST_FAILED ? &board->failed : &board->served,
	             (state == REQUEST_FAILED ? board->failed : board->served) + 1);
	if (p->text.cost == 0)
		state = REQUEST_FREE;
	if (!requests_answer(a->g->requests, &p->ticket, state, &with)) {
		requests_set(&board->late, board->late + 1);
		/* The process stopped waiting after its tokens were taken: give them back. */
		if (state == REQUEST_ALLOWED && p->ask.cost != 0)
			shmlimit_refund(a->g->limiter, p->ask.rule, p->ask.key, p->ask.key_len, p->ask.cost, NULL);
	}
	p->next = a->free;
	a->free = p;
}

static enum request_state state_of(const struct pending *p, enum ask_state state)
{
	if (state == ASK_FAILED)
		return REQUEST_FAILED;
	if (p->ask.answer == SHMLIMIT_ALLOWED || p->ask.answer == SHMLIMIT_DENIED)
		return p->ask.answer == SHMLIMIT_ALLOWED ? REQUEST_ALLOWED : REQUEST_DENIED;
	return REQUEST_AGAIN;
}

static void begin(struct agent *a, struct pending *p)
{
	const struct request_text *text = &p->text;
	struct engine_question *q = &p->on_way.question;
	enum ask_state state = ASK_DECIDED;

	p->result = (struct shmlimit_result){ 0 };
	p->hops = 0;
	p->ask = (struct ask){ .rule = (int)text->rule, .key = text->key, .key_len = text->key_len, .cost = text->cost,
		               .r = &p->result, .answer = SHMLIMIT_LEASE_ASK };
	/*
	 * Another process wrote the text. A `need` of 0 is raised to 1: such a question would look like a fault of
	 * the backend.
	 */
	p->ask.lease.need = text->need | (text->need == 0);
	p->ask.lease.want = text->want > p->ask.lease.need ? text->want : p->ask.lease.need;
	/*
	 * The rule may have changed since the request was made, or its id may be another rule's now: the process asks
	 * again.
	 */
	if (text->backend == a->g->backend)
		state = ask_prepare(a->g, &p->ask, q);
	if (state != ASK_DECIDED && p->ask.of.set_us != text->set_us)
		state = ASK_DECIDED;
	if (state != ASK_READY) {
		answer(a, p, state_of(p, state));
		return;
	}
	p->sent_ns = shmlimit_now(a->g->limiter);
	node_add(a->nodes[a->of_slot[fleet_slot(q->key, q->key_len)]], &p->on_way);
}

/* The key is on another node. Returns whether that node is asked. */
static int follow(struct agent *a, struct node *from, struct pending *p)
{
	struct engine_question *q = &p->on_way.question;
	struct url url;
	unsigned slot;
	int place = -1;

	if (p->hops++ < HOPS && fleet_move(q->trouble.said, &from->engine.url, &url, &slot) == 0)
		place = node_at(a, &url);
	if (place < 0)
		return 0;
	q->ask_first = strncmp(q->trouble.said, "ASK ", 4) == 0;
	if (!q->ask_first)
		a->of_slot[slot] = (unsigned char)place;
	node_add(a->nodes[place], &p->on_way);
	return 1;
}

static void end(struct agent *a, struct node *node, struct pending *p)
{
	const struct engine_question *q = &p->on_way.question;
	enum ask_state state = ASK_DECIDED;
	int given = q->trouble.kind == TROUBLE_NONE;

	if (q->trouble.kind == TROUBLE_MOVED && follow(a, node, p))
		return;
	/* A node that fails may have lost its slots to another one. The node of the URL knows which. */
	if (!given && !trouble_is_of_key(&q->trouble))
		a->of_slot[fleet_slot(q->key, q->key_len)] = 0;
	if (given)
		requests_set(&requests_board(a->g->requests)->round_trip_ns, node->round_trip_ns);
	/* If the process no longer waits, none of the leased tokens is taken for it. */
	if (given && q->leased != 0 && !requests_waits(a->g->requests, &p->ticket))
		p->ask.cost = 0;
	/*
	 * A denial is stored only for a request of a process, not for one with cost 0. A lease is stored in both
	 * cases.
	 */
	if (!given || q->leased != 0 || p->text.cost != 0)
		state = ask_settle(a->g, &p->ask, q, p->sent_ns, p->on_way.asked_ns);
	answer(a, p, state_of(p, state));
}

/* ---- Turns ---- */

static void collect(struct agent *a)
{
	unsigned at = 0;

	while (a->free != NULL && requests_next(a->g->requests, &at, &a->free->text, &a->free->ticket)) {
		struct pending *p = a->free;

		a->free = p->next;
		begin(a, p);
	}
}

/* Report changes of a node's state, and count its failures. */
static void judge(struct agent *a, unsigned place)
{
	const struct node *node = a->nodes[place];

	if (node->openings != a->openings[place]) {
		handle_say(a->g, &node->trouble, NULL);
		shmlimit_lease_count(a->g->limiter, SHMLIMIT_LEASE_ENGINE_ERRORS, 1);
		shmlimit_lease_count(a->g->limiter, SHMLIMIT_LEASE_BREAKER_OPENINGS, 1);
		a->openings[place] = node->openings;
	} else if (!node->failing && node->answered && place == 0) {
		handle_well(a->g);
	}
}

static void step(struct agent *a)
{
	for (unsigned i = 0; i < a->count; i++) {
		struct node_ask *ask;

		node_step(a->nodes[i], wire_now_ns());
		judge(a, i);
		/* WHY read a->nodes[i] each time: end() may need its place for another node. */
		while ((ask = node_done(a->nodes[i])) != NULL)
			end(a, a->nodes[i], (struct pending *)(void *)ask);
	}
}

static void show(struct agent *a)
{
	struct request_board *board = requests_board(a->g->requests);
	const struct node *home = a->nodes[0];
	unsigned connections = 0;

	for (unsigned i = 0; i < a->count; i++)
		connections += (unsigned)a->nodes[i]->engine.ready;
	requests_set(&board->connections, connections);
	/* While it connects the end is not known: show at least the time to the next turn. */
	requests_set(&board->open_until_ns,
	             !home->failing ? 0 : home->attempt_ns != 0 ? wire_now_ns() + a->g->options.open_ns : home->open_until_ns);
}

/* Wait until there is something to do. */
static void rest(struct agent *a)
{
	struct pollfd pollfds[FLEET_NODES];
	uint64_t now_ns = wire_now_ns(), idle_ns = AGENT_TURN_NS;
	int due = 0;

	for (unsigned i = 0; i < a->count; i++) {
		const struct node *node = a->nodes[i];
		uint64_t node_ns = node_idle_ns(node, now_ns, &pollfds[i]);

		idle_ns = node_ns < idle_ns ? node_ns : idle_ns;
		due |= node->sent.first != NULL || (node->attempt_ns != 0 && !node->failing);
	}
	if (due) {
		struct timespec time = { 0, (long)(idle_ns < LOOK_NS ? idle_ns : LOOK_NS) };

		ppoll(pollfds, a->count, &time, NULL);
	} else if (idle_ns != 0) {
		requests_sleep(a->g->requests, idle_ns);
	}
}

static void drop(struct agent *a)
{
	struct node_ask *ask;

	for (unsigned i = 0; i < a->count; i++) {
		node_drop(a->nodes[i]);
		while ((ask = node_done(a->nodes[i])) != NULL) {
			struct pending *p = (struct pending *)(void *)ask;

			p->ask.answer = SHMLIMIT_LEASE_ASK;
			answer(a, p, REQUEST_AGAIN);
		}
	}
}

/* Returns whether this process is the agent. */
static int claim(struct agent *a)
{
	struct requests *requests = a->g->requests;
	uint64_t now_ns = wire_now_ns(), was = a->mine;
	struct request_board *board = requests_board(requests);

	/* A claim is renewed when less than half of its time is left. */
	if (was != 0 && was > now_ns + REQUESTS_CLAIM_NS / 2 && requests_claimed_until_ns(requests) == was)
		return 1;
	if (!requests_claim(requests, &a->mine, a->g->backend, now_ns)) {
		if (was != 0)
			drop(a);
		return 0;
	}
	if (was == 0) {
		requests_set(&board->pid, (uint64_t)getpid());
		requests_set(&board->started_ns, now_ns);
		requests_inherit(requests);
	}
	return 1;
}

int agent_turn(struct agent *a)
{
	uint64_t now_ns = wire_now_ns();

	if (!claim(a)) {
		struct timespec time = { 0, (long)AGENT_TURN_NS };

		clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
		return 0;
	}
	collect(a);
	step(a);
	if (now_ns - a->swept_ns >= SWEEP_NS) {
		requests_sweep(a->g->requests, &a->watch, now_ns);
		a->swept_ns = now_ns;
	}
	show(a);
	rest(a);
	return 1;
}

struct agent *agent_new(struct shmlimit_global *g)
{
	struct agent *a = calloc(1, sizeof(*a));

	if (a == NULL)
		return NULL;
	a->g = g;
	a->nodes[0] = new_node(a, &g->fleet.home.url);
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

void agent_free(struct agent *a)
{
	drop(a);
	requests_resign(a->g->requests, &a->mine);
	for (unsigned i = 0; i < a->count; i++) {
		node_end(a->nodes[i]);
		free(a->nodes[i]);
	}
	free(a);
}
