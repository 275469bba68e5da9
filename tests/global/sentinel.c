/*
 * sentinel: a URL of sentinels, which say where the primary is. It is followed through failovers, by each process and by
 * an agent.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <fcntl.h>

#include "agent.h"

#define DAY UINT64_C(86400000000000)
#define PASSWORD "secret"

static struct server server[2];
static int port[2], sentinel_port;
static struct shmlimit *l;
static struct reports reports;

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

/* ---- The sentinel ---- */

static pid_t sentinel_start(void)
{
	char path[128], text[512];
	int fd, len;
	pid_t pid;

	snprintf(path, sizeof(path), "%.63s/sentinel.conf", server[0].folder);
	len = snprintf(text, sizeof(text),
	               "port %d\nbind 127.0.0.1\ndir %.63s\nlogfile /dev/null\nrequirepass " PASSWORD "\n"
	               "sentinel monitor mymaster 127.0.0.1 %d 1\nsentinel auth-pass mymaster " PASSWORD "\n"
	               "sentinel down-after-milliseconds mymaster 2000\nsentinel failover-timeout mymaster 3000\n",
	               sentinel_port, server[0].folder, port[0]);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, text, (size_t)len) != len)
		bail("sentinel.conf: %s", strerror(errno));
	close(fd);
	pid = fork_bound();
	if (pid == 0) {
		signal(SIGRTMIN, SIG_DFL);
		execl(SERVER_FILE, "redis-sentinel", path, NULL);
		_exit(127);
	}
	return pid;
}

/* A command to the sentinel. NULL: it does not answer. */
static redisReply *sentinel_ask(const char *command)
{
	redisContext *c = redisConnect("127.0.0.1", sentinel_port);
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
static int primary(void)
{
	redisReply *reply = sentinel_ask("SENTINEL GET-MASTER-ADDR-BY-NAME mymaster");
	int at = -1;

	for (int i = 0; i < 2 && reply != NULL && reply->type == REDIS_REPLY_ARRAY; i++)
		if (atoi(reply->element[1]->str) == port[i])
			at = i;
	if (reply != NULL)
		freeReplyObject(reply);
	return at;
}

/* Ask for a failover. Returns whether it has begun: it does not before the sentinel knows the replica to be well. */
static int fails_over(void)
{
	redisReply *reply = sentinel_ask("SENTINEL FAILOVER mymaster");
	int ok = reply != NULL && reply->type == REDIS_REPLY_STATUS;

	if (reply != NULL)
		freeReplyObject(reply);
	return ok;
}

/* ---- What is asked ---- */

static struct shmlimit_global *handle(const char *url, const char *prefix)
{
	struct shmlimit_global_options options = { .struct_size = sizeof(options),
		                                   .deadline_ns = PATIENT_NS,
		                                   .open_ns = 1000000,
		                                   .prefix = prefix,
		                                   .report = reports_take,
		                                   .arg = &reports };
	struct shmlimit_global *g;

	if (shmlimit_global_open(l, url, &options, &g) != 0)
		bail("open %s", url);
	reports = (struct reports){ 0 };
	return g;
}

/* Without an agent for its prefix a process asks by itself. */
static const char *const prefixes[] = { "own:", "agent:" };

/* Take a token of a new key. Returns whether server i has it now. Some calls fail during a failover. */
static int takes_from(struct shmlimit_global *g, const char *prefix, int rule, int i)
{
	static int keys;
	char key[32];
	int len = snprintf(key, sizeof(key), "%d", keys++), there;
	redisReply *reply;

	shmlimit_reset(l, rule, NULL, 0);
	if (shmlimit_global_take(g, rule, key, (size_t)len, 1, NULL) != SHMLIMIT_ALLOWED)
		return 0;
	reply = server_ask(&server[i], "EXISTS %s{login/%s}", prefix, key);
	there = reply->type == REDIS_REPLY_INTEGER && reply->integer == 1;
	freeReplyObject(reply);
	return there;
}

static void asked(struct shmlimit_global *const g[2], int rule, int i, const char *when)
{
	await_slowly(takes_from(g[0], prefixes[0], rule, i));
	ok(1, "a process asks %s", when);
	await_slowly(takes_from(g[1], prefixes[1], rule, i));
	ok(1, "an agent asks %s", when);
}

static void refused(void)
{
	struct shmlimit_global *g;
	char url[96];

	snprintf(url, sizeof(url), "redis+sentinel://:" PASSWORD "@127.0.0.1:%d/other", sentinel_port);
	g = handle(url, NULL);
	is(shmlimit_global_ping(g, NULL), -EDESTADDRREQ, "a primary that the sentinels do not know is an error");
	ok(strstr(reports.last, "/other/0: the sentinels do not know the primary: must be") != NULL,
	   "a primary that the sentinels do not know is reported: %s", reports.last);
	shmlimit_global_close(g);
	snprintf(url, sizeof(url), "redis+sentinel://127.0.0.1:%d/mymaster", sentinel_port);
	g = handle(url, NULL);
	is(shmlimit_global_ping(g, NULL), -EACCES, "a sentinel that wants a password is given none");
	shmlimit_global_close(g);
	snprintf(url, sizeof(url), "redis://:" PASSWORD "@127.0.0.1:%d", sentinel_port);
	g = handle(url, NULL);
	is(shmlimit_global_ping(g, NULL), -EPROTOTYPE, "a sentinel is not taken for a server");
	ok(strstr(reports.last, "is a sentinel: must be a URL of sentinels: redis+sentinel://") != NULL,
	   "a sentinel in the place of a server is reported: %s", reports.last);
	shmlimit_global_close(g);
	g = handle("redis+sentinel://127.0.0.1:1/mymaster", NULL);
	is(shmlimit_global_ping(g, NULL), -ECONNREFUSED, "a sentinel that is not there is an error");
	shmlimit_global_close(g);
}

int main(void)
{
	struct shmlimit_global_info info = { .struct_size = sizeof(info) };
	struct agent_process agent;
	struct shmlimit_global *g[2];
	struct rng rng;
	char url[96], command[64];
	pid_t sentinel;
	int rule;

	if (server_missing())
		return tap_skip_all("no redis-server");
	stage_begin("global.sentinel");
	rng.state = rng_seed();
	for (int i = 0; i < 2; i++) {
		char text[16];
		/* clang-format off */
		const char *words[] = { "--port", text, "--bind", "127.0.0.1", "--requirepass", PASSWORD, "--masterauth",
			                PASSWORD, "--repl-diskless-sync-delay", "0", NULL };
		/* clang-format on */

		port[i] = server_port(&rng);
		snprintf(text, sizeof(text), "%d", port[i]);
		server_begin(&server[i], words);
		server[i].password = PASSWORD;
	}
	snprintf(command, sizeof(command), "REPLICAOF 127.0.0.1 %d", port[0]);
	server_tell(&server[1], command);
	sentinel_port = server_port(&rng);
	sentinel = sentinel_start();
	await_slowly(primary() == 0);
	l = stage_create(256, 0, 0);
	rule = lease_rule(l, "login", 3, 1, DAY);
	/* Port 1 of loopback: no process listens there. */
	snprintf(url, sizeof(url), "redis+sentinel://:" PASSWORD "@127.0.0.1:1,127.0.0.1:%d/mymaster", sentinel_port);
	agent = agent_start_with(l, url, PATIENT_NS, prefixes[1]);
	await(agent_status(l).serving);
	for (int i = 0; i < 2; i++)
		g[i] = handle(url, prefixes[i]);
	is(shmlimit_global_ping(g[0], &info), 0, "the primary is found: %s", reports.last);
	is_str(info.role, "master", "what a sentinel names is the primary");
	refused();
	asked(g, rule, 0, "the primary that a sentinel names");
	/* The old primary goes on as one for a while. */
	await_slowly(fails_over());
	await_slowly(primary() == 1);
	asked(g, rule, 1, "the new primary after a failover");
	server_kill(&server[1]);
	await_slowly(primary() == 0);
	asked(g, rule, 0, "the server that takes a killed primary's place");
	is(agent_status(l).connections, 1, "the agent has one connection");
	ok(agent_stop(&agent), "the agent ends well");
	for (int i = 0; i < 2; i++)
		shmlimit_global_close(g[i]);
	kill(sentinel, SIGKILL);
	waitpid(sentinel, NULL, 0);
	return tap_done();
}
