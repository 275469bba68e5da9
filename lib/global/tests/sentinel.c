/*
 * sentinel: a URL of sentinels, which say where the primary is. It is followed through failovers, by each process and by
 * an agent.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "sentinel.h"

static void refused(void)
{
	struct shmlimit_global *g;
	char url[96];

	snprintf(url, sizeof(url), "redis+sentinel://:" PASSWORD "@127.0.0.1:%d/other", sentinel.port);
	g = handle(url, NULL);
	is(shmlimit_global_ping(g, NULL), -EDESTADDRREQ, "a primary that the sentinels do not know is an error");
	ok(strstr(reports.last, "/other/0: the sentinels do not know the primary: must be") != NULL,
	   "a primary that the sentinels do not know is reported: %s", reports.last);
	shmlimit_global_close(g);
	snprintf(url, sizeof(url), "redis+sentinel://127.0.0.1:%d/mymaster", sentinel.port);
	g = handle(url, NULL);
	is(shmlimit_global_ping(g, NULL), -EACCES, "a sentinel that wants a password is given none");
	shmlimit_global_close(g);
	snprintf(url, sizeof(url), "redis://:" PASSWORD "@127.0.0.1:%d", sentinel.port);
	g = handle(url, NULL);
	is(shmlimit_global_ping(g, NULL), -EPROTOTYPE, "a sentinel is not taken for a server");
	ok(strstr(reports.last, "is a sentinel: must be a URL of sentinels: redis+sentinel://") != NULL,
	   "a sentinel in the place of a server is reported: %s", reports.last);
	shmlimit_global_close(g);
	snprintf(url, sizeof(url), "redis+sentinel://127.0.0.1:%d/mymaster", sentinel.server_port[0]);
	g = handle(url, NULL);
	is(shmlimit_global_ping(g, NULL), -ENOTUNIQ, "a server is not taken for a sentinel");
	ok(strstr(reports.last, "is a server and no sentinel: must be a URL of a server: redis://") != NULL,
	   "a server in the place of a sentinel is reported: %s", reports.last);
	shmlimit_global_close(g);
	g = handle("redis+sentinel://127.0.0.1:1/mymaster", NULL);
	is(shmlimit_global_ping(g, NULL), -ECONNREFUSED, "a sentinel that is not there is an error");
	shmlimit_global_close(g);
}

int main(void)
{
	struct shmlimit_global_info info = { .struct_size = sizeof(info) };
	struct shmlimit_global *g;
	struct rng rng;
	char url[96];

	if (server_missing())
		return tap_skip_all("no redis-server");
	stage_begin("global.sentinel");
	rng.state = rng_seed();
	sentinel_begin(&rng, 0);
	l = stage_create(256, 0, 0);
	/* Port 1 of loopback: no process listens there. */
	snprintf(url, sizeof(url), "redis+sentinel://:" PASSWORD "@127.0.0.1:1,127.0.0.1:%d/mymaster", sentinel.port);
	g = handle(url, NULL);
	is(shmlimit_global_ping(g, &info), 0, "the primary is found: %s", reports.last);
	is_str(info.role, "master", "what a sentinel names is the primary");
	shmlimit_global_close(g);
	refused();
	follow_the_primary(url);
	sentinel_end();
	return tap_done();
}
