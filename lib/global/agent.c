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
#include "cluster.h"
#include "fallback.h"

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

/* An agent that was asked within AWAKE_NS, which is longer than most leases, looks for what may wait each DOZE_NS. */
#define AWAKE_NS UINT64_C(200000000)
#define DOZE_NS UINT64_C(1000000)

/* Most leases ahead at a time: asked for, or kept. The others of ON_THE_WAY are for requests that processes wait for. */
#define AHEAD 128u

/* A lease ahead is deposited when the key has less than this part of it left: what is left expires. */
#define AHEAD_PARTS 64u

/* The same when what the key has ends so soon and is less: of two leases the smaller one expires, or both end with the first. */
#define AHEAD_END_NS UINT64_C(1000000)

/* The shortest and the longest time between two looks at such a key. */
#define AHEAD_MIN_NS LOOK_NS
#define AHEAD_MAX_NS UINT64_C(10000000)

/*
 * Most nodes that one question is sent to: a node, the node that the key is being moved to, and one more if that
 * changes.
 */
#define HOPS 4

struct pending {
	struct node_ask on_way; /* first, so that a pointer to it is one to the whole */
	struct pending *next;
	struct ask ask;
	struct request_text text;
	struct ticket ticket;
	struct shmlimit_result result;
	uint64_t sent_ns; /* by the limiter's clock */
	unsigned hops;
	/* A lease ahead, from cost 0 until it is deposited or a process's request becomes one with it: */
	int kept;                    /* it has its answer, and is deposited later */
	uint64_t look_ns, looked_ns; /* by monotonic_now_ns(): the next look at the key, and the last one */
	uint64_t held;               /* that the key had then */
};

struct agent {
	struct shmlimit_global *g;
	uint64_t mine;               /* the claim, see requests_claim() */
	uint64_t swept_ns, asked_ns; /* asked_ns: when it took the last request */
	struct requests_watch watch;
	unsigned count;
	struct node *nodes[CLUSTER_NODES];    /* the first is that of the URL */
	uint64_t openings[CLUSTER_NODES];     /* of each node's breaker, that were reported */
	unsigned char of_slot[CLUSTER_SLOTS]; /* of a cluster: a node's place */
	unsigned aheads;
	struct pending *ahead; /* the leases ahead, by `next` */
	struct pending *free;
	struct pending pool[ON_THE_WAY];
};

_Static_assert(CLUSTER_NODES <= 256, "a place is a byte");

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

	if (a->count < CLUSTER_NODES)
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
	for (unsigned slot = 0; slot < CLUSTER_SLOTS; slot++)
		if (a->of_slot[slot] == oldest)
			a->of_slot[slot] = 0;
	return (int)oldest;
}

/* The server of the URL is called by the URL, whichever of its hosts is in use. */
static void name_node(struct agent *a, unsigned place)
{
	char text[URL_TEXT_MAX];

	if (place < SHMLIMIT_GLOBAL_SERVERS)
		requests_name_server(a->g->requests, place,
		                     place == 0 ? a->g->breaker.key : url_text(&a->nodes[place]->backend.url, text));
}

/* Returns the place of a node, which is added if it is new; -1 without room or memory. */
static int node_at(struct agent *a, const struct url *url)
{
	struct node *node;
	int place;

	for (unsigned i = 0; i < a->count; i++)
		if (strcmp(a->nodes[i]->backend.url.host, url->host) == 0 &&
		    strcmp(a->nodes[i]->backend.url.port, url->port) == 0)
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
	name_node(a, (unsigned)place);
	a->count += (unsigned)place == a->count;
	return place;
}

/* ---- Questions ---- */

static void tell(struct agent *a, struct pending *p, enum request_state state)
{
	struct request_board *board = requests_board(a->g->requests);
	struct request_answer with = { p->result.limit, p->result.remaining, p->result.retry_after_ns,
		                       p->result.reset_after_ns };

	requests_set(state == REQUEST_FAILED ? &board->failed : &board->served,
	             (state == REQUEST_FAILED ? board->failed : board->served) + 1);
	if (p->text.kind == REQUEST_DEBIT && state != REQUEST_ALLOWED)
		requests_set(&board->unpaid, board->unpaid + p->text.cost);
	if (p->text.cost == 0 || p->text.kind != REQUEST_AWAITED)
		state = REQUEST_FREE;
	if (!requests_answer(a->g->requests, &p->ticket, state, &with)) {
		requests_set(&board->late, board->late + 1);
		/* The process stopped waiting after its tokens were taken: give them back. */
		if (state == REQUEST_ALLOWED && p->ask.cost != 0)
			shmlimit_refund(a->g->limiter, p->ask.rule, p->ask.key, p->ask.key_len, p->ask.cost, NULL);
	}
}

static void release(struct agent *a, struct pending *p)
{
	p->next = a->free;
	a->free = p;
}

static void answer(struct agent *a, struct pending *p, enum request_state state)
{
	tell(a, p, state);
	release(a, p);
}

static enum request_state state_of(const struct pending *p, enum ask_state state)
{
	if (state == ASK_FAILED)
		return REQUEST_FAILED;
	if (p->ask.answer == SHMLIMIT_ALLOWED || p->ask.answer == SHMLIMIT_DENIED)
		return p->ask.answer == SHMLIMIT_ALLOWED ? REQUEST_ALLOWED : REQUEST_DENIED;
	return REQUEST_AGAIN;
}

/* ---- Leases ahead ---- */

/*
 * A process whose lease falls below a quarter makes a request of cost 0. What the backend leases for it is kept here until
 * the key has next to nothing left, since tokens of two leases in one slot end with the first. So no process has to wait
 * at a lease's end. A request for the key that comes nevertheless is answered from what is kept, or becomes that of the
 * question that is on its way. If the agent is killed, what it kept is lost, as any lease of a killed process.
 */

static struct pending **ahead_of(struct agent *a, const struct request_text *text)
{
	struct pending **at = &a->ahead;

	while (*at != NULL && ((*at)->text.rule != text->rule || (*at)->text.key_len != text->key_len ||
	                       (*at)->text.set_us != text->set_us || (*at)->text.backend != text->backend ||
	                       memcmp((*at)->text.key, text->key, text->key_len) != 0))
		at = &(*at)->next;
	return at;
}

static void ahead_add(struct agent *a, struct pending *p)
{
	p->kept = 0;
	p->next = a->ahead;
	a->ahead = p;
	a->aheads++;
}

static struct pending *ahead_remove(struct agent *a, struct pending **at)
{
	struct pending *p = *at;

	*at = p->next;
	a->aheads--;
	return p;
}

static void ahead_forget(struct agent *a, struct pending *p)
{
	struct pending **at = &a->ahead;

	while (*at != NULL && *at != p)
		at = &(*at)->next;
	if (*at == p)
		ahead_remove(a, at);
}

static void ahead_keep(struct pending *p)
{
	p->kept = 1;
	p->look_ns = p->looked_ns = monotonic_now_ns();
	p->held = 0;
}

/* Deposit what is kept, unless its time is over, and spend `cost` of it. Returns as shmlimit_lease_deposit(); LEASE_WAIT: the rule has changed. */
static int ahead_deposit(struct agent *a, struct pending *p, uint64_t cost, struct shmlimit_result *r)
{
	uint64_t lease_ns;
	int answer = SHMLIMIT_LEASE_WAIT;

	if (ask_rule(a->g, &p->ask) == 0 && p->ask.of.set_us == p->text.set_us) {
		lease_ns = ask_lasts_ns(a->g, &p->ask);
		if (monotonic_now_ns() - p->on_way.asked_ns < lease_ns)
			answer = shmlimit_lease_deposit_at(a->g->limiter, p->ask.rule, p->ask.key, p->ask.key_len,
			                                   p->on_way.question.leased, cost, lease_ns, p->sent_ns, r);
		if (answer >= 0 && answer != SHMLIMIT_LEASE_WAIT)
			fallback_charge(a->g, p->ask.rule, p->ask.key, p->ask.key_len, p->on_way.question.leased);
	}
	release(a, p);
	return answer;
}

/*
 * When to look next: before the key gets there at the rate that its lease is for, which is to last three quarters of its
 * time, or at the rate since the last look if that is higher. WHY NOT the latter alone: requests come in bursts, and
 * nothing is spent between two of them.
 */
static uint64_t ahead_look_ns(const struct pending *p, const struct shmlimit_result *r, uint64_t low, uint64_t now_ns)
{
	uint64_t spent = p->held > r->remaining ? p->held - r->remaining : 0;
	uint64_t end_ns = r->reset_after_ns > AHEAD_END_NS ? r->reset_after_ns - AHEAD_END_NS : r->reset_after_ns;
	uint64_t token_ns = p->ask.of.lease_ns / p->on_way.question.leased / 2, ns;

	if (spent != 0 && (now_ns - p->looked_ns) / spent / 4 * 3 < token_ns)
		token_ns = (now_ns - p->looked_ns) / spent / 4 * 3;
	ns = token_ns < AHEAD_MAX_NS ? token_ns * (r->remaining - low) : AHEAD_MAX_NS;
	ns = ns < end_ns ? ns : end_ns;
	return ns < AHEAD_MIN_NS ? AHEAD_MIN_NS : ns > AHEAD_MAX_NS ? AHEAD_MAX_NS : ns;
}

/* Deposit what keys are about to need. Returns the time until the next look. */
static uint64_t ahead_step(struct agent *a)
{
	uint64_t now_ns = monotonic_now_ns(), idle_ns = AGENT_TURN_NS;
	struct pending **at = &a->ahead;

	while (*at != NULL) {
		struct pending *p = *at;
		uint64_t low = p->on_way.question.leased / AHEAD_PARTS;
		struct shmlimit_result r = { 0 };

		if (p->kept && now_ns >= p->look_ns) {
			shmlimit_peek(a->g->limiter, p->ask.rule, p->ask.key, p->ask.key_len, 0, &r);
			if (r.remaining <= low ||
			    (r.reset_after_ns <= AHEAD_END_NS && r.remaining < p->on_way.question.leased) ||
			    now_ns - p->on_way.asked_ns >= p->ask.of.lease_ns) {
				ahead_deposit(a, ahead_remove(a, at), 0, NULL);
				continue;
			}
			p->look_ns = now_ns + ahead_look_ns(p, &r, low, now_ns);
			p->looked_ns = now_ns;
			p->held = r.remaining;
		}
		if (p->kept && p->look_ns - now_ns < idle_ns)
			idle_ns = p->look_ns - now_ns;
		at = &p->next;
	}
	return idle_ns;
}

/* Is this request decided, now or when an earlier question is answered, since its key has a lease ahead? */
static int ahead_answers(struct agent *a, struct pending *p)
{
	struct pending **at = ahead_of(a, &p->text), *there = *at;

	if (p->text.cost == 0) {
		if (there == NULL && a->aheads < AHEAD) {
			ahead_add(a, p);
			return 0;
		}
		answer(a, p, REQUEST_FREE);
		return 1;
	}
	if (there == NULL)
		return 0;
	ahead_remove(a, at);
	if (there->kept) {
		p->ask.answer = ahead_deposit(a, there, p->ask.cost, &p->result);
		if (p->ask.answer != SHMLIMIT_ALLOWED)
			return 0;
		p->result.remaining += there->on_way.question.left;
		answer(a, p, REQUEST_ALLOWED);
		return 1;
	}
	/* The cell of the question changes hands: the process that asked for more ahead does not wait. */
	requests_answer(a->g->requests, &there->ticket, REQUEST_FREE, NULL);
	there->ticket = p->ticket;
	there->text.cost = p->text.cost;
	there->text.kind = p->text.kind;
	there->ask.cost = p->ask.cost;
	release(a, p);
	return 1;
}

static void begin(struct agent *a, struct pending *p)
{
	const struct request_text *text = &p->text;
	struct backend_question *q = &p->on_way.question;
	enum ask_state state = ASK_DECIDED;

	p->result = (struct shmlimit_result){ 0 };
	p->hops = 0;
	p->ask = (struct ask){ .rule = (int)text->rule,
		               .key = text->key,
		               .key_len = text->key_len,
		               .cost = text->kind == REQUEST_UNAWAITED ? 0 : text->cost,
		               .r = &p->result,
		               .answer = SHMLIMIT_LEASE_ASK };
	if (text->kind != REQUEST_DEBIT && ahead_answers(a, p))
		return;
	p->ask.answer = SHMLIMIT_LEASE_ASK;
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
		ahead_forget(a, p);
		answer(a, p, state_of(p, state));
		return;
	}
	p->sent_ns = shmlimit_now(a->g->limiter);
	node_add(a->nodes[a->of_slot[cluster_slot(q->key, q->key_len)]], &p->on_way);
}

/* The key is on another node. Returns whether that node is asked. */
static int follow(struct agent *a, struct node *from, struct pending *p)
{
	struct backend_question *q = &p->on_way.question;
	struct url url;
	unsigned slot;
	int place = -1;

	if (p->hops++ < HOPS && cluster_move(q->trouble.said, &from->backend.url, &url, &slot) == 0)
		place = node_at(a, &url);
	if (place < 0)
		return 0;
	q->ask_first = strncmp(q->trouble.said, "ASK ", 4) == 0;
	if (!q->ask_first)
		a->of_slot[slot] = (unsigned char)place;
	node_add(a->nodes[place], &p->on_way);
	return 1;
}

/* The answer to a question that no process waits for. A denial is not stored: the next request asks, and learns it. */
static void end_ahead(struct agent *a, struct pending *p)
{
	if (p->on_way.question.trouble.kind == TROUBLE_NONE && p->on_way.question.leased != 0) {
		tell(a, p, REQUEST_FREE);
		ahead_keep(p);
		return;
	}
	ahead_forget(a, p);
	if (p->on_way.question.trouble.kind != TROUBLE_NONE)
		ask_settle(a->g, &p->ask, &p->on_way.question, p->sent_ns, p->on_way.asked_ns);
	answer(a, p, p->on_way.question.trouble.kind == TROUBLE_NONE ? REQUEST_FREE : REQUEST_FAILED);
}

/*
 * The answer to the debit of tokens that the key had before the backend was asked. If they were leased, nothing changes
 * here: the key has them. If not, what is left of them is taken away, and the backend's denial stored.
 */
static void end_debit(struct agent *a, struct pending *p)
{
	const struct backend_question *q = &p->on_way.question;
	enum ask_state state;

	if (q->trouble.kind == TROUBLE_NONE && q->leased != 0) {
		fallback_charge(a->g, p->ask.rule, p->ask.key, p->ask.key_len, q->leased);
		answer(a, p, REQUEST_ALLOWED);
		return;
	}
	if (q->trouble.kind == TROUBLE_NONE)
		shmlimit_charge(a->g->limiter, p->ask.rule, p->ask.key, p->ask.key_len, p->ask.cost, NULL);
	state = ask_settle(a->g, &p->ask, q, p->sent_ns, p->on_way.asked_ns);
	answer(a, p, state_of(p, state));
}

/* The first bucket has answers of up to 100 us, and each next one twice that. The last one has all others. */
static void note_round_trip(struct agent *a, uint64_t ns)
{
	struct request_board *board = requests_board(a->g->requests);
	unsigned bucket = 0;

	while (bucket < SHMLIMIT_GLOBAL_ROUND_TRIPS - 1 && ns > UINT64_C(100000) << bucket)
		bucket++;
	requests_set(&board->round_trip_ns, ns);
	requests_set(&board->round_trips_ns, board->round_trips_ns + ns);
	requests_set(&board->round_trips[bucket], board->round_trips[bucket] + 1);
}

static void end(struct agent *a, struct node *node, struct pending *p)
{
	const struct backend_question *q = &p->on_way.question;
	enum ask_state state = ASK_DECIDED;
	int given = q->trouble.kind == TROUBLE_NONE;

	if (q->trouble.kind == TROUBLE_MOVED && follow(a, node, p))
		return;
	/* A node that fails may have lost its slots to another one. The node of the URL knows which. */
	if (!given && !trouble_is_of_key(&q->trouble))
		a->of_slot[cluster_slot(q->key, q->key_len)] = 0;
	if (given)
		note_round_trip(a, p->on_way.round_trip_ns);
	if (p->text.cost == 0) {
		end_ahead(a, p);
		return;
	}
	if (p->text.kind == REQUEST_DEBIT) {
		end_debit(a, p);
		return;
	}
	/* If the process no longer waits, none of the leased tokens is taken for it. */
	if (given && q->leased != 0 && !requests_waits(a->g->requests, &p->ticket))
		p->ask.cost = 0;
	state = ask_settle(a->g, &p->ask, q, p->sent_ns, p->on_way.asked_ns);
	answer(a, p, state_of(p, state));
}

/* ---- Turns ---- */

static void collect(struct agent *a, uint64_t now_ns)
{
	struct request_board *board = requests_board(a->g->requests);
	unsigned at = 0;

	while (a->free != NULL && requests_next(a->g->requests, &at, &a->free->text, &a->free->ticket)) {
		struct pending *p = a->free;

		a->free = p->next;
		a->asked_ns = now_ns;
		if (p->text.cost != 0)
			requests_set(&board->misses, board->misses + 1);
		begin(a, p);
	}
}

/* Report changes of a node's state, and count its failures. */
static void judge(struct agent *a, unsigned place)
{
	const struct node *node = a->nodes[place];

	if (node->openings != a->openings[place]) {
		handle_say(a->g, &node->trouble, NULL);
		shmlimit_lease_count(a->g->limiter, SHMLIMIT_LEASE_BACKEND_ERRORS, 1);
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

		node_step(a->nodes[i], monotonic_now_ns());
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
		connections += (unsigned)a->nodes[i]->backend.ready;
	requests_set(&board->connections, connections);
	requests_set(&board->servers, a->count);
	for (unsigned i = 0; i < a->count && i < SHMLIMIT_GLOBAL_SERVERS; i++) {
		requests_set(&requests_server(a->g->requests, i)->failing, (uint64_t)a->nodes[i]->failing);
		requests_set(&requests_server(a->g->requests, i)->openings, a->nodes[i]->openings);
	}
	/* While it connects the end is not known: show at least the time to the next turn. */
	requests_set(&board->open_until_ns, !home->failing          ? 0
	                                    : home->attempt_ns != 0 ? monotonic_now_ns() + a->g->options.open_ns
	                                                            : home->open_until_ns);
}

/* Wait until there is something to do, for idle_ns at most. */
static void rest(struct agent *a, uint64_t idle_ns)
{
	struct pollfd pollfds[CLUSTER_NODES];
	uint64_t now_ns = monotonic_now_ns();
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
	} else if (idle_ns != 0 && now_ns - a->asked_ns < AWAKE_NS) {
		requests_doze(a->g->requests, a->mine, idle_ns < DOZE_NS ? idle_ns : DOZE_NS);
	} else if (idle_ns != 0) {
		requests_sleep(a->g->requests, a->mine, idle_ns);
	}
}

static void drop(struct agent *a)
{
	struct node_ask *ask;

	/* What is on its way has left the list before it is released. */
	for (struct pending **at = &a->ahead; *at != NULL;) {
		struct pending *p = ahead_remove(a, at);

		if (p->kept)
			ahead_deposit(a, p, 0, NULL);
	}
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
	uint64_t now_ns = monotonic_now_ns(), was = a->mine;
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
		for (unsigned i = 0; i < a->count; i++)
			name_node(a, i);
		requests_inherit(requests);
	}
	return 1;
}

int agent_turn(struct agent *a)
{
	uint64_t now_ns = monotonic_now_ns();

	if (!claim(a)) {
		struct timespec time = { 0, (long)AGENT_TURN_NS };

		clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
		return 0;
	}
	collect(a, now_ns);
	step(a);
	if (now_ns - a->swept_ns >= SWEEP_NS) {
		requests_sweep(a->g->requests, &a->watch, now_ns);
		a->swept_ns = now_ns;
	}
	show(a);
	rest(a, ahead_step(a));
	return 1;
}

struct agent *agent_new(struct shmlimit_global *g)
{
	struct agent *a = calloc(1, sizeof(*a));

	if (a == NULL)
		return NULL;
	a->g = g;
	a->nodes[0] = new_node(a, &g->cluster.home.url);
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
