/*
 * ticket: requests that are begun, polled and cancelled, as event loops make them. The limit is as exact as for
 * requests that wait, whatever is killed or forgotten.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "agent.h"
#include "handle.h"

#define DAY UINT64_C(86400000000000)
#define PENDING SHMLIMIT_GLOBAL_PENDING
#define TICKETS 40
#define WORKERS 4
#define KEYS 5
#define CAPACITY 300u

static struct server server;
static struct shmlimit *l;
static struct proxy proxy;

static struct shmlimit_global *open_global(uint64_t deadline_ns, uint32_t on_failure)
{
	return global_open(l, proxy.url,
	                   (struct shmlimit_global_options){ .deadline_ns = deadline_ns,
	                                                     .lease_ns = PATIENT_NS,
	                                                     .on_failure = on_failure,
	                                                     .open_ns = 1000000 });
}

static struct shmlimit_global_ticket ticket_of(uint32_t flags)
{
	return (struct shmlimit_global_ticket){ .struct_size = sizeof(struct shmlimit_global_ticket), .flags = flags };
}

static int begin(struct shmlimit_global *g, int rule, const char *key, uint64_t cost, struct shmlimit_global_ticket *t)
{
	struct shmlimit_request request = { .rule = rule, .key = key, .key_len = strlen(key), .cost = cost };

	return shmlimit_global_begin(g, &request, t, NULL);
}

static void flags(struct shmlimit_global *g)
{
	int rule = lease_rule(l, "flags", 15, 1, DAY), refused = 0;

	for (uint32_t flag = 1; flag != 0; flag <<= 1) {
		struct shmlimit_global_ticket t = ticket_of(flag);

		if (flag != SHMLIMIT_GLOBAL_TICKET_NO_WAIT && flag != SHMLIMIT_GLOBAL_TICKET_AGENT_ONLY)
			refused += begin(g, rule, "user:42", 1, &t) == -EINVAL;
	}
	is(refused, 30, "a ticket with a flag of another call, or with none of the library's, is refused");
}

static int finish(struct shmlimit_global *g, struct shmlimit_global_ticket *t, int answer, struct shmlimit_result *r)
{
	for (; answer == PENDING; answer = shmlimit_global_poll(g, t, r)) {
		struct timespec time = { 0, (long)t->poll_ns };

		clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
	}
	return answer;
}

static void answers(struct shmlimit_global *g)
{
	struct shmlimit_global_ticket t = ticket_of(SHMLIMIT_GLOBAL_TICKET_NO_WAIT), many[TICKETS];
	int rule = lease_rule(l, "login", 15, 1, DAY), allowed = 0, answer[TICKETS];
	struct shmlimit_result r;

	atomic_store(&proxy.at->hold, 1);
	is(begin(g, rule, "user:42", 1, &t), PENDING, "a key without a lease is pending");
	is(shmlimit_global_poll(g, &t, &r), PENDING, "it stays pending while the server does not answer");
	ok(t.poll_ns >= 100000 && t.poll_ns <= 16000000, "the ticket says when to poll again");
	atomic_store(&proxy.at->hold, 0);
	is(finish(g, &t, PENDING, &r), SHMLIMIT_ALLOWED, "the agent's answer ends it");
	is(r.remaining, 14, "what the server has left is in the answer");
	is(shmlimit_global_poll(g, &t, &r), -EINVAL, "a decided ticket cannot be polled again");
	shmlimit_global_cancel(g, &t);
	for (int i = 0; i < TICKETS; i++) {
		many[i] = ticket_of(i % 2 ? SHMLIMIT_GLOBAL_TICKET_NO_WAIT : 0);
		answer[i] = begin(g, rule, "user:42", 1, &many[i]);
	}
	for (int i = TICKETS; i-- > 0;)
		allowed += finish(g, &many[i], answer[i], NULL) == SHMLIMIT_ALLOWED;
	is(allowed, 14, "40 pending requests of one key get what the limit has left, to the token");
	is(begin(g, rule, "user:42", 1, &t), SHMLIMIT_DENIED, "a denial that is known here is answered at once");
	is(begin(g, rule, "user:42", 16, &t), SHMLIMIT_DENIED, "a cost above the capacity is denied at once");
	is(begin(g, 4000, "user:42", 1, &t), -ESRCH, "a rule that does not exist is an error at once");
	t = ticket_of(3);
	is(begin(g, rule, "user:42", 1, &t), -EINVAL, "an unknown flag is refused");
	is(shmlimit_global_poll(g, &t, NULL), -EINVAL, "a ticket that was never begun cannot be polled");
	t = (struct shmlimit_global_ticket){ .struct_size = 8 };
	is(begin(g, rule, "user:42", 1, &t), -EINVAL, "a ticket of a wrong size is refused");
	shmlimit_global_cancel(NULL, &t);
	shmlimit_global_cancel(g, NULL);
}

/* The deadline of a pending request is that of one that waits. */
static void deadline(struct shmlimit_global *g)
{
	struct shmlimit_global *hasty = open_global(1000000, SHMLIMIT_GLOBAL_ALLOW);
	struct shmlimit_global_ticket t = ticket_of(0), other = ticket_of(0);
	int rule = lease_rule(l, "deadline", 100, 1, DAY), answer;
	uint64_t late = agent_status(l).late;

	atomic_store(&proxy.at->hold, 1);
	answer = begin(hasty, rule, "late", 10, &t);
	is(finish(hasty, &t, answer, NULL), SHMLIMIT_ALLOWED, "on_failure decides a pending request at its deadline");
	await(atomic_load(&proxy.at->held));
	atomic_store(&proxy.at->hold, 0);
	await(agent_status(l).late > late);
	answer = begin(g, rule, "late", 10, &other);
	is(finish(g, &other, answer, NULL), SHMLIMIT_ALLOWED,
	   "the tokens of a late reply serve the next pending request");
	shmlimit_global_close(hasty);
}

/* Each key has tokens for one request. A cancelled one leaves them for the next. */
static void cancelled(struct shmlimit_global *g)
{
	struct shmlimit_global_ticket t = ticket_of(0);
	int rule = lease_rule(l, "cancelled", 5, 1, DAY);
	uint64_t count;

	atomic_store(&proxy.at->hold, 1);
	is(begin(g, rule, "asked", 5, &t), PENDING, "a request is asked for");
	await(atomic_load(&proxy.at->held));
	shmlimit_global_cancel(g, &t);
	is(shmlimit_global_poll(g, &t, NULL), -EINVAL, "a cancelled ticket cannot be polled");
	atomic_store(&proxy.at->hold, 0);
	is(shmlimit_global_take(g, rule, "asked", 5, 5, NULL), SHMLIMIT_ALLOWED,
	   "a request that is cancelled while the server is asked loses no tokens");
	count = agent_status(l).answered;
	is(begin(g, rule, "answered", 5, &t), PENDING, "another one is asked for");
	await(agent_status(l).answered > count && agent_status(l).waiting == 0);
	shmlimit_global_cancel(g, &t);
	is(shmlimit_global_take(g, rule, "answered", 8, 5, NULL), SHMLIMIT_ALLOWED,
	   "a request that is cancelled after its answer came gives its tokens back");
	is(shmlimit_global_take(g, rule, "answered", 8, 5, NULL), SHMLIMIT_DENIED, "they are given back once");
}

/* While one key is asked for, nothing else waits. */
static void beside(struct shmlimit_global *g)
{
	struct shmlimit_global_ticket t = ticket_of(0), here = t, more[100];
	int rule = lease_rule(l, "beside", 1000, 1, DAY), local, allowed = 0, pending = 0, answer[100];
	struct shmlimit_rule params = { .struct_size = sizeof(params), .capacity = 1000, .refill = 1, .period_ns = DAY };
	char keys[100][4];

	local = shmlimit_rule_set(l, "local", &params);
	is(shmlimit_global_take(g, rule, "known", 5, 1, NULL), SHMLIMIT_ALLOWED, "a key has a lease");
	shmlimit_lease_deposit(l, rule, "known", 5, 500, 1, 0, PATIENT_NS, NULL);
	atomic_store(&proxy.at->hold, 1);
	is(begin(g, rule, "unknown", 1, &t), PENDING, "another key is asked for");
	for (int i = 0; i < 100; i++)
		allowed += shmlimit_global_take(g, rule, "known", 5, 1, NULL) == SHMLIMIT_ALLOWED;
	for (int i = 0; i < 100; i++)
		allowed += begin(g, local, "user:42", 1, &here) == SHMLIMIT_ALLOWED;
	is(allowed, 200, "keys with a lease and other algorithms are answered meanwhile");
	shmlimit_global_cancel(g, &t);
	for (int i = 0; i < 100; i++) {
		more[i] = ticket_of(SHMLIMIT_GLOBAL_TICKET_NO_WAIT);
		snprintf(keys[i], sizeof(keys[i]), "%d", i);
		answer[i] = begin(g, rule, keys[i], 1, &more[i]);
		pending += answer[i] == PENDING;
	}
	is(pending, 100, "more requests may be pending than there are cells");
	atomic_store(&proxy.at->hold, 0);
	allowed = 0;
	for (int i = 0; i < 100; i++)
		allowed += finish(g, &more[i], answer[i], NULL) == SHMLIMIT_ALLOWED;
	is(allowed, 100, "each of them gets its answer");
}

static void without_agent(struct shmlimit_global *g, struct agent_process *agent)
{
	struct shmlimit_global *open = open_global(PATIENT_NS, SHMLIMIT_GLOBAL_ALLOW);
	struct shmlimit_global_ticket waits = ticket_of(0), never = ticket_of(SHMLIMIT_GLOBAL_TICKET_NO_WAIT);
	struct shmlimit_global_ticket only = ticket_of(SHMLIMIT_GLOBAL_TICKET_AGENT_ONLY);
	int rule = lease_rule(l, "alone", 5, 1, DAY), made;

	atomic_store(&proxy.at->hold, 1);
	is(begin(open, rule, "one", 1, &never), PENDING, "a request that never waits is pending");
	is(begin(g, rule, "two", 1, &waits), PENDING, "a request that may wait is pending");
	is(begin(g, rule, "five", 1, &only), PENDING, "a request for the agent only is pending");
	await(atomic_load(&proxy.at->held));
	ok(agent_stop(agent), "the agent ends while they are");
	made = atomic_load(&proxy.at->connections);
	is(shmlimit_global_poll(open, &never, NULL), SHMLIMIT_ALLOWED, "on_failure decides the one that never waits");
	is(begin(open, rule, "three", 1, &never), SHMLIMIT_ALLOWED, "on_failure decides at once without an agent");
	is(begin(g, rule, "three", 1, &never), SHMLIMIT_DENIED, "on_failure is that of the handle");
	is(shmlimit_global_poll(g, &only, NULL), -EAGAIN, "a request for the agent only says that there is none");
	is(begin(g, rule, "five", 1, &only), -EAGAIN, "a new one says so at once");
	is(atomic_load(&proxy.at->connections), made, "no connection is made for them");
	atomic_store(&proxy.at->hold, 0);
	is(shmlimit_global_poll(g, &waits, NULL), SHMLIMIT_ALLOWED, "the one that may wait asks the server by itself");
	is(shmlimit_global_take(g, rule, "five", 5, 1, NULL), SHMLIMIT_ALLOWED, "another request may ask for its key");
	is(begin(g, rule, "four", 1, &waits), SHMLIMIT_ALLOWED, "a new one that may wait is decided at once");
	shmlimit_global_close(open);
}

/* ---- Processes that are killed with pending requests ---- */

struct play {
	int rule;
	_Atomic uint64_t admitted[KEYS], begun, pending, cancelled;
	_Atomic int ended;
};

static struct play *play;

static void work(uint64_t seed)
{
	struct shmlimit_global *g = open_global(PATIENT_NS, SHMLIMIT_GLOBAL_DENY);
	struct shmlimit_global_ticket tickets[8];
	int answers[8] = { 0 };
	struct rng rng = { .state = seed };

	while (!atomic_load(&play->ended)) {
		unsigned i = (unsigned)rng_below(&rng, 8);
		const char *keys = "abcde";

		if (answers[i] != PENDING) {
			struct shmlimit_request request = {
				.rule = play->rule, .key = keys + rng_below(&rng, KEYS), .key_len = 1, .cost = 1
			};

			tickets[i] = ticket_of(0);
			answers[i] = shmlimit_global_begin(g, &request, &tickets[i], NULL);
			atomic_fetch_add(&play->begun, 1);
			atomic_fetch_add(&play->pending, answers[i] == PENDING);
		} else if (rng_below(&rng, 9) == 0) {
			shmlimit_global_cancel(g, &tickets[i]);
			atomic_fetch_add(&play->cancelled, 1);
			answers[i] = SHMLIMIT_DENIED;
		} else {
			answers[i] = shmlimit_global_poll(g, &tickets[i], NULL);
			sched_yield();
		}
		if (answers[i] < 0)
			_exit(1);
		if (answers[i] == SHMLIMIT_ALLOWED) {
			atomic_fetch_add(&play->admitted[*(const char *)tickets[i].request.key - 'a'], 1);
			answers[i] = SHMLIMIT_DENIED;
		}
	}
	_exit(0);
}

static pid_t work_in_child(uint64_t seed)
{
	pid_t pid = fork_bound();

	if (pid == 0)
		work(seed);
	return pid;
}

static void killed(struct shmlimit_global *g)
{
	struct shmlimit_global_ticket tickets[MAILBOX_CELLS];
	struct timespec pause = { 0, 10000000 };
	char keys[MAILBOX_CELLS][4];
	pid_t pids[WORKERS];
	struct rng rng = { .state = rng_seed() };
	uint64_t full, over = 0, free_cells = 0;

	play = shared_memory(sizeof(*play));
	play->rule = lease_rule(l, "killed", CAPACITY, 1, DAY);
	for (uint64_t i = 0; i < WORKERS; i++)
		pids[i] = work_in_child(i + 1);
	for (uint64_t kills = 0; kills < 30 || atomic_load(&play->cancelled) == 0; kills++) {
		uint64_t begun = atomic_load(&play->begun), i = rng_below(&rng, WORKERS);

		await(atomic_load(&play->begun) > begun + rng_below(&rng, 20));
		agent_kill(&(struct agent_process){ .pid = pids[i] });
		pids[i] = work_in_child(100 + kills);
	}
	atomic_store(&play->ended, 1);
	for (int i = 0; i < WORKERS; i++)
		wait_for(pids[i]);
	for (int i = 0; i < KEYS; i++)
		over += atomic_load(&play->admitted[i]) > CAPACITY;
	is(over, 0, "with processes killed that have pending requests, no key is admitted more than its capacity");
	ok(atomic_load(&play->pending) > 0, "requests were pending");
	/* Killed and forgotten ones alike. */
	atomic_store(&proxy.at->hold, 1);
	for (int turn = 0; turn < 3000 && free_cells < MAILBOX_CELLS; turn++) {
		clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
		full = agent_status(l).full;
		free_cells = 0;
		for (unsigned i = 0; i < MAILBOX_CELLS; i++) {
			tickets[i] = ticket_of(0);
			snprintf(keys[i], sizeof(keys[i]), "%u", i);
			begin(g, play->rule, keys[i], 1, &tickets[i]);
			free_cells += agent_status(l).full == full;
		}
		for (unsigned i = 0; i < MAILBOX_CELLS; i++)
			shmlimit_global_cancel(g, &tickets[i]);
	}
	atomic_store(&proxy.at->hold, 0);
	is(free_cells, MAILBOX_CELLS,
	   "the places of processes that were killed or forgot their tickets are free again");
}

int main(void)
{
	struct agent_process agent;
	struct shmlimit_global *g;

	if (server_missing())
		return tap_skip_all("no redis-server");
	stage_begin("global.ticket");
	server_begin(&server, NULL);
	l = stage_create(1024, 0, 0);
	proxy_begin(&proxy, &server);
	agent = agent_start(l, proxy.url, PATIENT_NS);
	g = open_global(PATIENT_NS, SHMLIMIT_GLOBAL_DENY);
	agent_await(l);
	flags(g);
	answers(g);
	deadline(g);
	cancelled(g);
	beside(g);
	killed(g);
	without_agent(g, &agent);
	shmlimit_global_close(g);
	proxy_end(&proxy);
	return tap_done();
}
