/*
 * server: a redis-server of the test's own, on a Unix socket in a private folder, and on request on a loopback port.
 * It is ended by its pid, or with the test, and its folder is removed.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_GLOBAL_SERVER_H
#define TESTS_GLOBAL_SERVER_H

#include <arpa/inet.h>
#include <ftw.h>
#include <hiredis/hiredis.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "process/process.h"
#include "script.h"
#include "shmlimit_global.h"

/* The server's binary: in the package redis-tools it is that of the checker, and argv[0] decides what it does. */
#define SERVER_FILE "/usr/bin/redis-check-rdb"
#define SERVER_WORDS 40

struct server {
	char folder[64];
	char socket[96], url[128];
	const char *password; /* the default user's, once it has one */
	pid_t pid;
	int n;
	char *words[SERVER_WORDS];
};

static struct server *server_last[8];
static int server_count;

/*
 * The library's script, for tests with a clock of their own: the key stays after the call, where it would expire by the
 * server's clock. The time stands still while a script runs, so the key is there when PERSIST looks for it.
 */
static inline const char *lasting_script(void)
{
	static char text[8192];

	if (text[0] == '\0')
		snprintf(
			text, sizeof(text),
			"local function lease()\n%s\nend local reply = lease() redis.call('PERSIST', KEYS[1]) return reply",
			script_text);
	return text;
}

static inline int server_missing(void)
{
	return access(SERVER_FILE, X_OK) != 0;
}

static inline int server_remove_file(const char *path, const struct stat *s, int type, struct FTW *at)
{
	(void)s;
	(void)type;
	(void)at;
	return remove(path);
}

static inline void server_kill(struct server *s)
{
	if (s->pid > 0) {
		kill(s->pid, SIGKILL);
		while (waitpid(s->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	s->pid = 0;
}

/* End it, and remove its folder. */
static inline void server_end(struct server *s)
{
	server_kill(s);
	while (s->n > 0)
		free(s->words[--s->n]);
	if (s->folder[0] != '\0')
		nftw(s->folder, server_remove_file, 8, FTW_DEPTH | FTW_PHYS);
	s->folder[0] = '\0';
}

/* Who forked a worker leaves the parent's servers alone. */
static inline void server_clean(void)
{
	if (getpid() != tap_owner)
		return;
	for (int i = 0; i < server_count; i++)
		server_end(server_last[i]);
}

/* Whether it answers PING at all. */
static inline int server_answers(const struct server *s)
{
	redisContext *c = redisConnectUnix(s->socket);
	redisReply *reply = c != NULL && c->err == 0 ? redisCommand(c, "PING") : NULL;
	int answers = reply != NULL && (reply->type != REDIS_REPLY_ERROR || strncmp(reply->str, "LOADING", 7) != 0);

	if (reply != NULL)
		freeReplyObject(reply);
	if (c != NULL)
		redisFree(c);
	return answers;
}

/* Start it, or start it again, and wait until it answers. */
static inline void server_start(struct server *s)
{
	time_t end = time(NULL) + WATCHDOG_SECONDS / 3;

	s->pid = fork_bound();
	if (s->pid == 0) {
		signal(SIGRTMIN, SIG_DFL);
		execv(SERVER_FILE, s->words);
		_exit(127);
	}
	while (!server_answers(s)) {
		if (time(NULL) > end || waitpid(s->pid, NULL, WNOHANG) != 0)
			bail("redis-server does not answer");
		sched_yield();
	}
}

static inline void server_word(struct server *s, const char *word)
{
	if (s->n + 1 >= SERVER_WORDS)
		bail("too many words for redis-server");
	s->words[s->n++] = strdup(word);
	s->words[s->n] = NULL;
}

/* `more`: further words of its command line, the last NULL; or NULL. */
static inline void server_begin(struct server *s, const char *const *more)
{
	static const char *const words[] = { "--save",      "",   "--logfile", "/dev/null", "--unixsocketperm", "700",
		                             "--daemonize", "no", NULL };
	const char *tmp = getenv("TMPDIR");

	*s = (struct server){ .pid = 0 };
	snprintf(s->folder, sizeof(s->folder), "%s/shmlimit.XXXXXX", tmp != NULL && strlen(tmp) < 40 ? tmp : "/tmp");
	if (mkdtemp(s->folder) == NULL)
		bail("mkdtemp: %s", strerror(errno));
	snprintf(s->socket, sizeof(s->socket), "%.63s/redis.sock", s->folder);
	snprintf(s->url, sizeof(s->url), "unix://%s", s->socket);
	server_word(s, "redis-server");
	server_word(s, "--unixsocket");
	server_word(s, s->socket);
	server_word(s, "--dir");
	server_word(s, s->folder);
	for (int i = 0; words[i] != NULL; i++)
		server_word(s, words[i]);
	if (more == NULL || strcmp(more[0], "--port") != 0) {
		server_word(s, "--port");
		server_word(s, "0");
	}
	for (int i = 0; more != NULL && more[i] != NULL; i++)
		server_word(s, more[i]);
	tap_claim();
	server_last[server_count++] = s;
	if (server_count == 1)
		atexit(server_clean);
	server_start(s);
}

/* A free port of loopback. The one of the cluster's bus, 10,000 above, is free, too. */
static inline int server_port(struct rng *rng)
{
	for (int i = 0; i < 1000; i++) {
		int at = 20000 + (int)rng_below(rng, 10000), good = 1;

		for (int bus = 0; bus <= 10000; bus += 10000) {
			struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons((uint16_t)(at + bus)) };
			int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

			address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
			good &= bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0;
			close(fd);
		}
		if (good)
			return at;
	}
	bail("no free port");
}

/* A command by the side, by hiredis's own client: returns its reply, to be freed. */
static inline redisReply *server_ask(const struct server *s, const char *format, ...)
{
	redisContext *c = redisConnectUnix(s->socket);
	redisReply *reply;
	va_list ap;

	if (c == NULL || c->err != 0)
		bail("redis-server: cannot connect");
	if (s->password != NULL)
		freeReplyObject(redisCommand(c, "AUTH %s", s->password));
	va_start(ap, format);
	reply = redisvCommand(c, format, ap);
	va_end(ap);
	if (reply == NULL)
		bail("redis-server: %s", c->errstr);
	redisFree(c);
	return reply;
}

static inline void server_tell(const struct server *s, const char *command)
{
	redisReply *reply = server_ask(s, command);

	if (reply->type == REDIS_REPLY_ERROR)
		bail("%s: %s", command, reply->str);
	freeReplyObject(reply);
}

/* How many scripts it has carried out. */
static inline uint64_t server_scripts(const struct server *s)
{
	static const char head[] = "cmdstat_evalsha:calls=";
	redisReply *reply = server_ask(s, "INFO commandstats");
	const char *at = strstr(reply->str, head);
	uint64_t n = at != NULL ? strtoull(at + strlen(head), NULL, 10) : 0;

	freeReplyObject(reply);
	return n;
}

/* ---- What a handle reports ---- */

struct reports {
	int n;
	char last[1024];
};

static inline void reports_take(void *arg, const char *text)
{
	struct reports *reports = arg;

	reports->n++;
	snprintf(reports->last, sizeof(reports->last), "%s", text);
}

/* A handle with these options, whose size is set here. */
static inline struct shmlimit_global *global_open(struct shmlimit *l, const char *url,
                                                  struct shmlimit_global_options options)
{
	struct shmlimit_global *g;
	int error;

	options.struct_size = sizeof(options);
	error = shmlimit_global_open(l, url, &options, &g);
	if (error != 0)
		bail("open %s: %s", url, shmlimit_global_strerror(error));
	return g;
}

/* The segment of host number i, a name of its own. */
static inline struct shmlimit *host_create(int i, uint32_t rules)
{
	struct shmlimit_options options = { .struct_size = sizeof(options), .slots = 64, .rules = rules };
	struct shmlimit *l;
	char name[96];
	int error;

	snprintf(name, sizeof(name), "%s.%d", stage_name, i);
	error = shmlimit_create(name, &options, &l);
	if (error != 0)
		bail("create %s: %s", name, shmlimit_strerror(error));
	return l;
}

/* A LEASE rule. */
static inline int lease_rule(struct shmlimit *l, const char *name, uint64_t capacity, uint64_t count,
                             uint64_t period_ns)
{
	return stage_rule_of(
		l, name,
		(struct shmlimit_rule){
			.algorithm = SHMLIMIT_LEASE, .capacity = capacity, .refill = count, .period_ns = period_ns });
}

#endif
