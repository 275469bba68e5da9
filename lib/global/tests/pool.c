/*
 * pool: threads share a handle. Each has a connection while it asks, and as many as the pool keeps stay open after that,
 * however many threads asked at once.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <pthread.h>

#include "agent.h"
#include "handle.h"
#include "pool.h"

#define THREADS (POOL_KEPT + 8)
#define DAY UINT64_C(86400000000000)

static struct server server;
static struct shmlimit *l;
static struct shmlimit_global *g;
static int rule;
static _Atomic int asking, allowed, keys;

/* A number in the server's INFO. */
static long told(const char *section, const char *name)
{
	char command[64];
	redisReply *reply;
	const char *at;
	long n = -1;

	snprintf(command, sizeof(command), "INFO %s", section);
	reply = server_ask(&server, command);
	at = strstr(reply->str, name);
	if (at != NULL)
		n = atol(at + strlen(name));
	freeReplyObject(reply);
	return n;
}

static void *ask(void *arg)
{
	int key = atomic_fetch_add(&keys, 1);

	(void)arg;
	atomic_fetch_add(&asking, 1);
	if (shmlimit_global_take(g, rule, &key, sizeof(key), 1, NULL) == SHMLIMIT_ALLOWED)
		atomic_fetch_add(&allowed, 1);
	return NULL;
}

/* All at once: the server answers none before all of them ask. */
static void ask_at_once(void)
{
	pthread_t threads[THREADS];

	atomic_store(&asking, 0);
	kill(server.pid, SIGSTOP);
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, ask, NULL) != 0)
			bail("pthread_create");
	await(atomic_load(&asking) == THREADS);
	kill(server.pid, SIGCONT);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

int main(void)
{
	struct shmlimit_global_options options = { .deadline_ns = PATIENT_NS };
	time_t end = time(NULL) + 60;
	long before;

	if (server_missing())
		return tap_skip_all("no redis-server");
	stage_begin("global.pool");
	server_begin(&server, NULL);
	l = stage_create(4096, 0, 0);
	rule = lease_rule(l, "login", 1, 1, DAY);
	g = global_open(l, server.url, options);
	before = told("stats", "total_connections_received:");
	/* Each look at the server is a connection of its own. */
	for (int looks = 1; told("stats", "total_connections_received:") - before - looks <= POOL_KEPT; looks++) {
		if (time(NULL) > end)
			bail("there never were more than %d connections", (int)POOL_KEPT);
		ask_at_once();
	}
	is(atomic_load(&allowed), atomic_load(&keys), "a request of each thread is answered");
	await(told("clients", "connected_clients:") - 1 <= (long)POOL_KEPT);
	ok(1, "when no thread asks no more connections are open than the pool keeps");
	shmlimit_global_close(g);
	await(told("clients", "connected_clients:") == 1);
	ok(1, "a handle that is closed leaves no connection open");
	return tap_done();
}
