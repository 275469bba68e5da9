/*
 * sentinel: a primary, its replica, and the sentinel that monitors them, all with one password, and with TLS or without;
 * and what processes ask of the primary, by themselves and through an agent.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_GLOBAL_SENTINEL_H
#define TESTS_GLOBAL_SENTINEL_H

#include <fcntl.h>

#include "agent.h"
#include "certificates.h"

#define DAY UINT64_C(86400000000000)
#define PASSWORD "secret"

static struct sentinel {
	pid_t pid;
	int port;
	char socket[96];
	struct server server[2]; /* the folder of the first has the certificates */
	int server_port[2];
} sentinel;

/* Like await(), for what a sentinel does by a clock of seconds: with a nap between two tries. */
#define await_slowly(condition) \
	do { \
		time_t await_end = time(NULL) + WATCHDOG_SECONDS / 2; \
		while (!(condition)) { \
			if (time(NULL) > await_end) \
				bail("in vain: " #condition); \
			usleep(20000); \
		} \
	} while (0)

/* What TLS needs of a server's configuration, or of a sentinel's, with `after` between two lines. */
static inline const char *sentinel_tls(char text[512], char after, int port)
{
	const char *folder = sentinel.server[0].folder;

	snprintf(text, 512,
	         "tls-ca-cert-file %s/authority.pem%ctls-cert-file %s/here.pem%ctls-key-file %s/here.key%c"
	         "tls-auth-clients no%ctls-replication yes%ctls-port %d",
	         folder, after, folder, after, folder, after, after, after, port);
	return text;
}

static inline void sentinel_start(int tls)
{
	char path[128], text[1536], port[512];
	int fd, len;

	snprintf(path, sizeof(path), "%.63s/sentinel.conf", sentinel.server[0].folder);
	snprintf(sentinel.socket, sizeof(sentinel.socket), "%.63s/sentinel.sock", sentinel.server[0].folder);
	snprintf(port, sizeof(port), "port %d", sentinel.port);
	/* The certificate is not for the second address. */
	len = snprintf(
		text, sizeof(text),
		"%s%s\nbind 127.0.0.1 127.0.0.2\nunixsocket %s\ndir %.63s\nlogfile /dev/null\nrequirepass " PASSWORD
		"\nsentinel monitor mymaster 127.0.0.1 %d 1\nsentinel auth-pass mymaster " PASSWORD
		"\nsentinel down-after-milliseconds mymaster 2000\nsentinel failover-timeout mymaster 3000\n",
		tls ? "port 0\n" : "", tls ? sentinel_tls(port, '\n', sentinel.port) : port, sentinel.socket,
		sentinel.server[0].folder, sentinel.server_port[0]);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, text, (size_t)len) != len)
		bail("sentinel.conf: %s", strerror(errno));
	close(fd);
	sentinel.pid = fork_bound();
	if (sentinel.pid == 0) {
		signal(SIGRTMIN, SIG_DFL);
		execl(SERVER_FILE, "redis-sentinel", path, NULL);
		_exit(127);
	}
}

/* A command to the sentinel. NULL: it does not answer. */
static inline redisReply *sentinel_ask(const char *command)
{
	redisContext *c = redisConnectUnix(sentinel.socket);
	redisReply *reply = NULL;

	if (c != NULL && c->err == 0) {
		freeReplyObject(redisCommand(c, "AUTH " PASSWORD));
		reply = redisCommand(c, command);
	}
	if (c != NULL)
		redisFree(c);
	return reply;
}

/* The place of the server that the sentinel says is the primary; -1: none. */
static inline int sentinel_primary(void)
{
	redisReply *reply = sentinel_ask("SENTINEL GET-MASTER-ADDR-BY-NAME mymaster");
	int at = -1;

	for (int i = 0; i < 2 && reply != NULL && reply->type == REDIS_REPLY_ARRAY; i++)
		if (atoi(reply->element[1]->str) == sentinel.server_port[i])
			at = i;
	if (reply != NULL)
		freeReplyObject(reply);
	return at;
}

/* Ask for a failover. Returns whether it has begun: it does not before the sentinel knows the replica to be well. */
static inline int sentinel_fails_over(void)
{
	redisReply *reply = sentinel_ask("SENTINEL FAILOVER mymaster");
	int ok = reply != NULL && reply->type == REDIS_REPLY_STATUS;

	if (reply != NULL)
		freeReplyObject(reply);
	return ok;
}

static inline void sentinel_begin(struct rng *rng, int tls)
{
	char command[64];

	for (int i = 0; i < 2; i++) {
		char text[16], lines[512], set[600];
		/* clang-format off */
		const char *words[] = { "--port", tls ? "0" : text, "--bind", "127.0.0.1", "--requirepass", PASSWORD,
			                "--masterauth", PASSWORD, "--repl-diskless-sync-delay", "0", NULL };
		/* clang-format on */

		sentinel.server_port[i] = server_port(rng);
		snprintf(text, sizeof(text), "%d", sentinel.server_port[i]);
		server_begin(&sentinel.server[i], words);
		sentinel.server[i].password = PASSWORD;
		if (tls && i == 0)
			certificates_make(sentinel.server[0].folder);
		snprintf(set, sizeof(set), "CONFIG SET %s", sentinel_tls(lines, ' ', sentinel.server_port[i]));
		if (tls)
			server_tell(&sentinel.server[i], set);
	}
	snprintf(command, sizeof(command), "REPLICAOF 127.0.0.1 %d", sentinel.server_port[0]);
	server_tell(&sentinel.server[1], command);
	sentinel.port = server_port(rng);
	sentinel_start(tls);
	await_slowly(sentinel_primary() == 0);
}

static inline void sentinel_end(void)
{
	kill(sentinel.pid, SIGKILL);
	waitpid(sentinel.pid, NULL, 0);
}

/* ---- What is asked ---- */

static struct shmlimit *l;
static struct reports reports;

static inline struct shmlimit_global *handle(const char *url, const char *prefix)
{
	return patient_open(l, url, prefix, &reports);
}

/* Without an agent for its prefix a process asks by itself. */
static const char *const prefixes[] = { "own:", "agent:" };

/* Take a token of a new key. Returns whether server i has it now. Some calls fail during a failover. */
static inline int takes_from(struct shmlimit_global *g, const char *prefix, int rule, int i)
{
	static int keys;
	char key[32];
	int len = snprintf(key, sizeof(key), "%d", keys++), there;
	redisReply *reply;

	shmlimit_reset(l, rule, NULL, 0);
	if (shmlimit_global_take(g, rule, key, (size_t)len, 1, NULL) != SHMLIMIT_ALLOWED)
		return 0;
	reply = server_ask(&sentinel.server[i], "EXISTS %s{login/%s}", prefix, key);
	there = reply->type == REDIS_REPLY_INTEGER && reply->integer == 1;
	freeReplyObject(reply);
	return there;
}

static inline void asked(struct shmlimit_global *const g[2], int rule, int i, const char *when)
{
	await_slowly(takes_from(g[0], prefixes[0], rule, i));
	ok(1, "a process asks %s", when);
	await_slowly(takes_from(g[1], prefixes[1], rule, i));
	ok(1, "an agent asks %s", when);
}

/* Ask the primary through failovers, at a URL of the sentinel: by one process itself, and through an agent. */
static inline void follow_the_primary(const char *url)
{
	struct agent_process agent = agent_start_with(l, url, PATIENT_NS, prefixes[1]);
	struct shmlimit_global *g[2];
	int rule = lease_rule(l, "login", 3, 1, DAY);

	await(agent_status(l).serving);
	for (int i = 0; i < 2; i++)
		g[i] = handle(url, prefixes[i]);
	asked(g, rule, 0, "the primary that a sentinel names");
	/* The old primary goes on as one for a while. */
	await_slowly(sentinel_fails_over());
	await_slowly(sentinel_primary() == 1);
	asked(g, rule, 1, "the new primary after a failover");
	server_kill(&sentinel.server[1]);
	await_slowly(sentinel_primary() == 0);
	asked(g, rule, 0, "the server that takes a killed primary's place");
	is(agent_status(l).connections, 1, "the agent has one connection");
	ok(agent_stop(&agent), "the agent ends well");
	for (int i = 0; i < 2; i++)
		shmlimit_global_close(g[i]);
}

#endif
