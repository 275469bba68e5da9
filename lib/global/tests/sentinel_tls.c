/*
 * sentinel_tls: sentinels and servers behind TLS. The certificates of both are checked, and the primary is followed
 * through failovers, by each process and by an agent.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "sentinel.h"

/* `query`: ?cacert=FILE. */
static void pinged(const char *host, const char *query, int error, const char *said, const char *title)
{
	struct shmlimit_global_info info = { .struct_size = sizeof(info) };
	struct shmlimit_global *g;
	char url[256];

	snprintf(url, sizeof(url), "rediss+sentinel://:" PASSWORD "@%s:%d/mymaster%s", host, sentinel.port, query);
	g = handle(url, NULL);
	is(shmlimit_global_ping(g, &info), error, "%s", title);
	ok(strstr(reports.last, said) != NULL, "%s: the report has \"%s\": %s", title, said, reports.last);
	if (error == 0)
		is_str(info.role, "master", "what a sentinel names through TLS is the primary");
	shmlimit_global_close(g);
}

/* Of the primary; the sentinel's connection to it goes on. */
static void show_certificate(const char *name)
{
	const char *folder = sentinel.server[0].folder;
	char command[256];

	snprintf(command, sizeof(command), "CONFIG SET tls-cert-file %s/%s.pem tls-key-file %s/%s.key", folder, name,
	         folder, name);
	server_tell(&sentinel.server[0], command);
}

int main(void)
{
	struct rng rng;
	char url[256], query[128];

	if (server_missing())
		return tap_skip_all("no redis-server");
	if (openssl_missing())
		return tap_skip_all("no openssl");
	stage_begin("global.sentinel_tls");
	rng.state = rng_seed();
	sentinel_begin(&rng, 1);
	l = stage_create(256, 0, 0);
	snprintf(query, sizeof(query), "?cacert=%s/authority.pem", sentinel.server[0].folder);
	pinged("127.0.0.1", query, 0, "", "the primary is found through TLS");
	pinged("127.0.0.1", "", -EKEYREJECTED, "TLS failed (self-signed certificate in certificate chain)",
	       "a sentinel with a certificate of an unknown authority is refused");
	pinged("127.0.0.2", query, -EKEYREJECTED, "TLS failed (IP address mismatch)",
	       "a sentinel with a certificate for another address is refused");
	show_certificate("elsewhere");
	pinged("127.0.0.1", query, -EKEYREJECTED, "TLS failed (IP address mismatch)",
	       "a primary with a certificate for another host is refused, although a sentinel names it");
	show_certificate("here");
	/* Port 1 of loopback: no process listens there. */
	snprintf(url, sizeof(url), "rediss+sentinel://:" PASSWORD "@127.0.0.1:1,127.0.0.1:%d/mymaster%s", sentinel.port,
	         query);
	follow_the_primary(url);
	sentinel_end();
	return tap_done();
}
