/*
 * global: one handle on a backend in many threads at once. None waits for another one, and the limit is as exact as in one thread.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <pthread.h>

#include "../agent.h"
#include "pool.h"

#define DAY UINT64_C(86400000000000)
#define THREADS 8
#define BORROWED 20000
#define KEYS 5
#define CAPACITY 100u

static struct server server;
static struct proxy proxy;
static struct shmlimit *l;

static struct shmlimit_global *open_global(const char *url, uint32_t agent)
{
	return global_open(
		l, url,
		(struct shmlimit_global_options){
			.deadline_ns = PATIENT_NS, .lease_ns = PATIENT_NS, .open_ns = 1000000, .flags = agent });
}

/* Run `work` in all threads, and wait for them. */
static void in_threads(void *(*work)(void *), void *arg)
{
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, work, arg) != 0)
			bail("pthread_create");
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

/* ---- Handles that are lent ---- */

static void many(void)
{
	struct shmlimit_global *g = open_global(server.url, 0), *lent[70];
	int error, different = 1;

	for (size_t i = 0; i < 70; i++)
		lent[i] = pool_borrow(g, &error);
	for (size_t i = 0; i < 70; i++)
		for (size_t j = 0; j < i; j++)
			different &= lent[i] != NULL && lent[i] != lent[j];
	ok(different, "no two threads borrow the same handle, however many they are");
	is(lent[0] == g, 1, "the first thread borrows the public handle itself");
	for (size_t i = 70; i-- > 0;)
		pool_return(lent[i]);
	different = 0;
	for (size_t i = 0; i < POOL_KEPT; i++)
		different += (lent[i] = pool_borrow(g, &error)) == g;
	is(different, 1, "the public handle can be borrowed again after 70 were lent");
	for (size_t i = 0; i < POOL_KEPT; i++)
		pool_return(lent[i]);
	shmlimit_global_close(g);
}

/* Whether a handle is lent, by its address; how many are, and what was seen of that. */
static struct {
	_Atomic(struct shmlimit_global *) global;
	_Atomic int lent;
} seen[256];
static _Atomic int now_lent, together, shared;
static struct gate gate = { .n = THREADS };

static void *borrow(void *arg)
{
	gate_pass(&gate);
	for (int i = 0; i < BORROWED; i++) {
		struct shmlimit_global *none, *g;
		size_t at;
		int error;

		g = pool_borrow(arg, &error);
		for (at = 0; at < 256; at++) {
			none = NULL;
			if (atomic_compare_exchange_strong(&seen[at].global, &none, g) || none == g)
				break;
		}
		if (at < 256 && atomic_exchange(&seen[at].lent, 1))
			shared++;
		if (++now_lent > 1)
			together++;
		if (i % 16 == 0)
			sched_yield();
		now_lent--;
		if (at < 256)
			seen[at].lent = 0;
		pool_return(g);
	}
	return NULL;
}

static void borrowing(void)
{
	struct shmlimit_global *g = open_global(server.url, 0);

	in_threads(borrow, g);
	ok(together > 0, "threads have borrowed handles at the same time: %d times", together);
	is(shared, 0, "no handle is lent twice at the same time");
	shmlimit_global_close(g);
}

/* ---- Threads that ask ---- */

static int rule;
static _Atomic int next_key, allowed;
static _Atomic uint64_t admitted[KEYS];

static void *take_new(void *arg)
{
	char key[16];

	snprintf(key, sizeof(key), "%d", atomic_fetch_add(&next_key, 1));
	if (shmlimit_global_take(arg, rule, key, strlen(key), 1, NULL) == SHMLIMIT_ALLOWED)
		atomic_fetch_add(&allowed, 1);
	return NULL;
}

static void *release(void *arg)
{
	await(atomic_load(&proxy.at->connections) == THREADS);
	atomic_store(&proxy.at->hold, 0);
	return arg;
}

/* The server answers none before all threads have asked. */
static void at_once(void)
{
	struct shmlimit_global *g = open_global(proxy.url, 0);
	pthread_t releases;

	rule = lease_rule(l, "at.once", CAPACITY, 1, DAY);
	/* As long as no thread has asked, one thread tries the server for all. */
	shmlimit_global_take(g, rule, "first", 5, 1, NULL);
	atomic_store(&proxy.at->hold, 1);
	if (pthread_create(&releases, NULL, release, NULL) != 0)
		bail("pthread_create");
	in_threads(take_new, g);
	pthread_join(releases, NULL);
	is(allowed, THREADS, "no thread waits for the answer of another one");
	shmlimit_global_close(g);
}

/* Every call that asks, at random, of the same few keys. */
static void *ask(void *arg)
{
	static _Atomic uint64_t seed;
	struct rng rng = { .state = ++seed };
	struct shmlimit_global *g = arg;

	for (int i = 0; i < 300; i++) {
		char key = (char)('a' + rng_below(&rng, KEYS));
		struct shmlimit_request request = { .rule = rule, .key = &key, .key_len = 1, .cost = 1 };
		struct shmlimit_global_ticket ticket = { .struct_size = sizeof(ticket) };
		struct shmlimit_global_funnel funnel = { .struct_size = sizeof(funnel) };
		int answer = SHMLIMIT_DENIED;

		switch (rng_below(&rng, 8)) {
		case 0:
			answer = shmlimit_global_take_all(g, &request, 1, NULL, NULL);
			break;
		case 1:
			answer = shmlimit_global_begin(g, &request, &ticket, NULL);
			while (answer == SHMLIMIT_GLOBAL_PENDING)
				answer = shmlimit_global_poll(g, &ticket, NULL);
			break;
		case 2:
			shmlimit_global_begin(g, &request, &ticket, NULL);
			shmlimit_global_cancel(g, &ticket);
			break;
		case 3:
			shmlimit_global_peek(g, rule, &key, 1, &funnel);
			shmlimit_global_breaker_ns(g);
			break;
		case 4:
			shmlimit_global_take_many(g, &request, 1, &answer, NULL);
			break;
		default:
			answer = shmlimit_global_take(g, rule, &key, 1, 1, NULL);
			break;
		}
		if (answer == SHMLIMIT_ALLOWED)
			atomic_fetch_add(&admitted[key - 'a'], 1);
	}
	shmlimit_global_ping(g, NULL);
	return NULL;
}

static void exact(uint32_t agent, const char *how)
{
	struct shmlimit_global *g = open_global(server.url, agent);
	uint64_t over = 0, sum = 0;

	rule = lease_rule(l, how, CAPACITY, 1, DAY);
	if (agent != 0)
		await(agent_status(l).serving && agent_status(l).connections == 1);
	in_threads(ask, g);
	for (int i = 0; i < KEYS; i++) {
		over += atomic_load(&admitted[i]) > CAPACITY;
		sum += atomic_exchange(&admitted[i], 0);
	}
	is(over, 0, "%s: threads that share a handle are admitted no more than the capacity", how);
	ok(sum > 0, "%s: requests were admitted: %d", how, (int)sum);
	shmlimit_global_close(g);
}

int main(void)
{
	if (server_missing())
		return tap_skip_all("no redis-server");
	stage_begin("thread.global");
	server_begin(&server, NULL);
	proxy_begin(&proxy, &server);
	l = stage_create(1024, 0, 0);
	many();
	borrowing();
	at_once();
	exact(0, "without.agent");
	exact(SHMLIMIT_GLOBAL_OPTION_AGENT_THREAD, "with.agent");
	shmlimit_close(l);
	proxy_end(&proxy);
	return tap_done();
}
