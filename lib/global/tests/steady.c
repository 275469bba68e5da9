/*
 * steady: a key whose requests come slowly, far from its limit, costs the backend less than a call for each.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <time.h>

#include "server.h"

static struct server server;
static struct shmlimit *l;

static uint64_t held(int rule, const char *key)
{
	struct shmlimit_result r;

	return shmlimit_peek(l, rule, key, strlen(key), 0, &r) == SHMLIMIT_ALLOWED ? r.remaining : 0;
}

/* By a call that waits, or in steps. */
static int take(struct shmlimit_global *g, int rule, const char *key, int in_steps)
{
	struct shmlimit_request q = { .rule = rule, .key = key, .key_len = strlen(key), .cost = 1 };
	struct shmlimit_global_ticket ticket = { .struct_size = sizeof(ticket) };
	int answer;

	if (!in_steps)
		return shmlimit_global_take(g, rule, key, strlen(key), 1, NULL);
	answer = shmlimit_global_begin(g, &q, &ticket, NULL);
	while (answer == SHMLIMIT_GLOBAL_PENDING) {
		nanosleep(&(struct timespec){ .tv_nsec = (long)(ticket.poll_ns % 1000000000) }, NULL);
		answer = shmlimit_global_poll(g, &ticket, NULL);
	}
	return answer;
}

/*
 * A key is asked for twice, a little later than its lease lasts. On a busy machine that may be too late
 * for a longer lease: then another key is tried.
 */
static void longer(struct shmlimit_global *g, int rule, int in_steps, const char *title)
{
	time_t end = time(NULL) + 60;
	char key[32];
	int found = 0;

	for (int i = 0; !found && time(NULL) < end; i++) {
		snprintf(key, sizeof(key), "user:%d.%d", in_steps, i);
		if (take(g, rule, key, in_steps) != SHMLIMIT_ALLOWED)
			continue;
		nanosleep(&(struct timespec){ .tv_nsec = 400000000 }, NULL);
		found = take(g, rule, key, in_steps) == SHMLIMIT_ALLOWED && held(rule, key) > 0;
	}
	ok(found, "%s", title);
}

int main(void)
{
	struct shmlimit_global_options options = { .deadline_ns = 100000000,
		                                   .lease_ns = 200000000,
		                                   .flags = SHMLIMIT_GLOBAL_OPTION_AGENT_THREAD };
	struct shmlimit_global *g;
	int rule;

	if (server_missing())
		return tap_skip_all("no redis-server");
	stage_begin("global.steady");
	server_begin(&server, NULL);
	l = stage_create(1024, 0, 0);
	rule = lease_rule(l, "page", 1000, 100, 1000000000);
	g = global_open(l, server.url, options);
	longer(g, rule, 0, "a key that comes slowly gets tokens for the requests that will come");
	longer(g, rule, 1, "a key that comes slowly gets tokens for the requests that will come, in steps");
	shmlimit_global_close(g);
	shmlimit_close(l);
	return tap_done();
}
