/*
 * failures: what is wrong with a backend, a key there or a rule is said once, is
 * counted, and is decided as configured; and when it is well again, all is.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "backend.h"
#include "server.h"

#define RULE "login"
#define CAPACITY 8
#define OPEN_NS 1000000 /* the least that there is */

static struct server server;
static struct shmlimit *l;
static struct reports reports;
static int rule;

/* A handle on the backend at `url`. No test depends on speed: only where none answers the deadline is a short one. */
static struct shmlimit_global *handle(const char *url, uint32_t on_failure, uint64_t deadline_ns)
{
	struct shmlimit_global *g = global_open(l, url,
	                                        (struct shmlimit_global_options){ .on_failure = on_failure,
	                                                                          .deadline_ns = deadline_ns,
	                                                                          .open_ns = OPEN_NS,
	                                                                          .local_milli = 500,
	                                                                          .report = reports_take,
	                                                                          .arg = &reports });

	reports = (struct reports){ 0 };
	return g;
}

#define PATIENT_NS UINT64_C(5000000000)
#define SHORT_NS UINT64_C(20000000)
#define LATE_NS UINT64_C(1000000000)

static struct shmlimit_lease_counters counted(void)
{
	struct shmlimit_lease_counters c = { .struct_size = sizeof(c) };

	shmlimit_lease_counters(l, &c);
	return c;
}

/* Ask until the breaker lets a call through again: it is open for a moment. */
static int take_until(struct shmlimit_global *g, int answer)
{
	int got;

	for (int i = 0; i < 1000000; i++) {
		got = shmlimit_global_take(g, rule, "key", 3, 1, NULL);
		if (got == answer)
			break;
		sched_yield();
	}
	return got;
}

/* Many requests, in which several calls are made: what is said of them is `said`, once. */
static void failing(const char *what, const char *url, uint64_t deadline_ns, int ping, const char *said)
{
	struct shmlimit_lease_counters before = counted(), after;
	struct shmlimit_global *g = handle(url, SHMLIMIT_GLOBAL_DENY, deadline_ns);
	struct shmlimit_result r = { 0 };
	int asked = 0, denied = 0;
	uint64_t decided = shmlimit_global_failures(l, rule), begun_ns = monotonic_ns(), errors, openings;

	/* The breaker may be open from before, for a moment; then some more, over several of its openings. */
	for (int more = 1000; more > 0 && asked<1000000; more -= reports.n> 0) {
		asked++;
		denied += shmlimit_global_take(g, rule, "key", 3, 1, &r) == SHMLIMIT_DENIED;
		sched_yield();
	}
	after = counted();
	errors = after.backend_errors - before.backend_errors;
	openings = (monotonic_ns() - begun_ns) / OPEN_NS + 1;
	is(denied, asked, "%s: all is denied, as configured", what);
	is(r.limit, CAPACITY, "%s: the limit is said", what);
	is(shmlimit_global_failures(l, rule) - decided, (uint64_t)asked,
	   "%s: each request that on_failure decides is counted", what);
	is(reports.n, 1, "%s: it is said once", what);
	ok(strstr(reports.last, said) != NULL, "%s: clearly: %s", what, reports.last);
	ok(strstr(reports.last, "secret") == NULL && strstr(reports.last, "wrong-word") == NULL,
	   "%s: without the password", what);
	ok(after.backend_errors > before.backend_errors, "%s: it is counted", what);
	ok(after.breaker_openings > before.breaker_openings, "%s: the breaker opened", what);
	/* An opening lasts about that long, and the first one comes after a few failures. */
	ok(errors <= 3 + 2 * openings,
	   "%s: the backend was let alone: %d calls in the time of %d openings, for %d requests", what, (int)errors,
	   (int)openings, asked);
	is(shmlimit_global_ping(g, NULL), ping, "%s: what ping says", what);
	shmlimit_global_close(g);

	g = handle(url, SHMLIMIT_GLOBAL_ALLOW, deadline_ns);
	is(shmlimit_global_take(g, rule, "key", 3, 1, &r), SHMLIMIT_ALLOWED, "%s: all is allowed if so configured",
	   what);
	is(shmlimit_global_take(g, rule, "key", 3, 1, &r), SHMLIMIT_ALLOWED, "%s: while the breaker is open too", what);
	shmlimit_global_close(g);

	g = handle(url, SHMLIMIT_GLOBAL_LOCAL, deadline_ns);
	shmlimit_reset(l, shmlimit_rule_find(l, "~local:" RULE), "key", 3);
	denied = 0;
	for (int i = 0; i < 20; i++)
		denied += shmlimit_global_take(g, rule, "key", 3, 1, &r) == SHMLIMIT_DENIED;
	is(20 - denied, CAPACITY / 2, "%s: this host has its share if so configured", what);
	shmlimit_global_close(g);
}

/* ---- A server that was reached before ---- */

/* A server of its own port, and then a process there that shuts each connection. */
static void scheme(void)
{
	static struct server tcp;
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
	struct rng rng = { .state = rng_seed() };
	const char *words[] = { "--port", NULL, "--bind", "127.0.0.1", NULL };
	char text[64], why[URL_WHY_MAX];
	struct backend_error failure;
	struct backend known, unknown;
	struct url url;
	pid_t pid;

	address.sin_port = htons((uint16_t)server_port(&rng));
	snprintf(text, sizeof(text), "%d", ntohs(address.sin_port));
	words[1] = text;
	server_begin(&tcp, words);
	snprintf(text, sizeof(text), "redis://127.0.0.1:%d", ntohs(address.sin_port));
	if (url_parse(text, &url, why) != 0)
		bail("%s", why);
	backend_begin(&known, &url);
	backend_begin(&unknown, &url);
	is(backend_ready(&known, monotonic_ns() + PATIENT_NS, &failure), 0, "a server of a port is reached");
	backend_shut(&known);
	server_kill(&tcp);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(listener, (struct sockaddr *)&address, sizeof(address)) != 0 || listen(listener, 8) != 0)
		bail("listen: %s", strerror(errno));
	pid = fork_bound();
	while (pid == 0)
		close(accept(listener, NULL, NULL));
	is(backend_ready(&unknown, monotonic_ns() + PATIENT_NS, &failure), 1, "a server that hangs up is an error");
	is_str(failure.said, "closed before an answer; a port for TLS needs rediss://",
	       "of a server that never answered, the scheme may be wrong");
	is(backend_ready(&known, monotonic_ns() + PATIENT_NS, &failure), 1,
	   "a server that hangs up is an error after it was reached, too");
	is_str(failure.said, "", "of a server that was reached before, the scheme is right");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(listener);
	backend_end(&known);
	backend_end(&unknown);
}

/* ---- Backends that are not what they should be ---- */

/* Answers every command with an old server's error, or with nothing, or with noise. */
enum mood { OLD, SILENT, NOISE };

static pid_t impostor(const char *path, enum mood mood)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int listener = socket(AF_UNIX, SOCK_STREAM, 0);
	pid_t pid;

	strcpy(address.sun_path, path);
	unlink(path);
	if (bind(listener, (struct sockaddr *)&address, sizeof(address)) != 0 || listen(listener, 64) != 0)
		bail("listen: %s", strerror(errno));
	pid = fork_bound();
	if (pid != 0) {
		close(listener);
		return pid;
	}
	for (;;) {
		static const char *const words[] = { "-ERR unknown command 'HELLO'\r\n", "", "HTTP/1.1 400 Bad\r\n" };
		char buffer[65536];
		int fd = accept(listener, NULL, NULL);

		if (fd < 0)
			_exit(1);
		if (read(fd, buffer, sizeof(buffer)) > 0 && mood != SILENT)
			while (write(fd, words[mood], strlen(words[mood])) < 0 && errno == EINTR)
				;
		/* A silent one keeps them all, until it is ended. */
		if (mood != SILENT)
			close(fd);
	}
}

/* The backend may be well, and what is left of the deadline too short for a call. */
static void late(const char *url)
{
	struct shmlimit_global *g = handle(url, SHMLIMIT_GLOBAL_DENY, LATE_NS);
	struct shmlimit_lease lease = { .struct_size = sizeof(lease) };
	struct shmlimit_lease_counters before = counted();

	shmlimit_reset(l, shmlimit_rule_find(l, "~backend"), NULL, 0);
	is(shmlimit_lease_take(l, rule, "late", 4,
	                       &(struct shmlimit_lease_request){ .struct_size = sizeof(struct shmlimit_lease_request),
	                                                         .cost = 1,
	                                                         .lease_ns = LATE_NS,
	                                                         .claim_ns = LATE_NS / 2 },
	                       &lease, NULL),
	   SHMLIMIT_LEASE_ASK, "somebody asks");
	is(shmlimit_global_take(g, rule, "late", 4, 1, NULL), SHMLIMIT_DENIED,
	   "a caller that waited for another asks next, in vain");
	is(counted().breaker_openings, before.breaker_openings,
	   "a call with less than the whole deadline opens no breaker");
	is(shmlimit_global_take(g, rule, "late", 4, 1, NULL), SHMLIMIT_DENIED, "the next one has all of it");
	is(counted().breaker_openings, before.breaker_openings + 1, "the failed call opens the breaker");
	shmlimit_global_close(g);
}

static void impostors(void)
{
	char path[108], url[128];
	pid_t pid;

	snprintf(path, sizeof(path), "%s/impostor.sock", server.folder);
	snprintf(url, sizeof(url), "unix://%s", path);
	pid = impostor(path, OLD);
	failing("a server too old", url, PATIENT_NS, -EPROTO, "too old (ERR unknown command 'HELLO'): must be Redis 6");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	pid = impostor(path, NOISE);
	failing("no Redis at all", url, PATIENT_NS, -EBADMSG, "an invalid answer: must be Redis 6");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	pid = impostor(path, SILENT);
	late(url);
	failing("one that says nothing", url, SHORT_NS, -ETIMEDOUT, "no answer by the deadline");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void unreachable(void)
{
	char url[160];

	failing("no socket", "unix:///nowhere/redis.sock", PATIENT_NS, -ENOENT,
	        "no connection (No such file or directory)");
	/* Port 1 of loopback: no process listens there. */
	failing("no server", "redis://:secret@127.0.0.1:1", PATIENT_NS, -ECONNREFUSED,
	        "no connection (Connection refused)");
	snprintf(url, sizeof(url), "unix://:wrong-word@%s", server.socket);
	server_tell(&server, "CONFIG SET requirepass secret");
	server.password = "secret";
	failing("a wrong password", url, PATIENT_NS, -EACCES, "user or password refused (WRONGPASS");
	snprintf(url, sizeof(url), "unix://nobody:wrong-word@%s", server.socket);
	failing("no such user", url, PATIENT_NS, -EACCES, "user or password refused (WRONGPASS");
	failing("no password", server.url, PATIENT_NS, -EACCES, "user or password refused (NOAUTH");
}

static void permissions(void)
{
	struct shmlimit_global *g;
	char url[160];

	server_tell(&server, "ACL SETUSER default nopass");
	server.password = NULL;
	snprintf(url, sizeof(url), "unix://limiter:p%%40ss@%s", server.socket);
	server_tell(&server,
	            "ACL SETUSER limiter on >p@ss ~shmlimit:* resetchannels -@all +@connection +@scripting +time "
	            "+get +set +pexpire +ping");
	g = handle(url, SHMLIMIT_GLOBAL_DENY, PATIENT_NS);
	is(take_until(g, SHMLIMIT_ALLOWED), SHMLIMIT_ALLOWED, "a user who may little else may take");
	is(reports.n, 0, "nothing is wrong then %s", reports.last);
	shmlimit_global_close(g);
	server_tell(&server, "ACL SETUSER limiter ~other:* resetkeys");
	shmlimit_reset(l, rule, NULL, 0);
	failing("a user who may not write the keys", url, PATIENT_NS, 0, "user or password refused (NOPERM");
	snprintf(url, sizeof(url), "%s?db=99", server.url);
	failing("no such database", url, PATIENT_NS, -EDOM, "no such database (ERR DB index is out of range)");
}

/* ---- Keys ---- */

/* A key with an error is not asked for again before open_ns is over. */
static void remembered(void)
{
	struct shmlimit_global_options options = { .deadline_ns = PATIENT_NS, .open_ns = UINT64_C(3600000000000) };
	struct shmlimit_lease_counters before = counted();
	struct shmlimit_global *g = global_open(l, server.url, options);

	for (int i = 0; i < 20; i++)
		shmlimit_global_take(g, rule, "sore", 4, 1, NULL);
	is(counted().backend_errors - before.backend_errors, 1, "a key with an error is asked for once in open_ns");
	shmlimit_global_close(g);
}

/* Only that key is decided otherwise, and the breaker stays closed. */
static void failed_key(const char *what, const char *said)
{
	struct shmlimit_global *g = handle(server.url, SHMLIMIT_GLOBAL_ALLOW, PATIENT_NS);
	struct shmlimit_lease_counters before = counted(), after;
	int allowed = 0, other = 0;

	for (int i = 0; i < 100; i++)
		allowed += shmlimit_global_take(g, rule, "sore", 4, 1, NULL) == SHMLIMIT_ALLOWED;
	for (int i = 0; i < 100; i++)
		other += shmlimit_global_take(g, rule, what, strlen(what), 1, NULL) == SHMLIMIT_ALLOWED;
	after = counted();
	is(allowed, 100, "%s: the key is decided as configured", what);
	is(other, CAPACITY, "%s: others are decided by the backend", what);
	is(reports.n, 1, "%s: it is said once", what);
	ok(strstr(reports.last, said) != NULL && strstr(reports.last, "rule " RULE) != NULL, "%s: clearly: %s", what,
	   reports.last);
	ok(after.backend_errors > before.backend_errors, "%s: it is counted", what);
	is(after.breaker_openings, before.breaker_openings, "%s: the breaker stays closed", what);
	shmlimit_global_close(g);
}

static void keys(void)
{
	struct shmlimit_global_funnel funnel = { .struct_size = sizeof(funnel) };
	struct shmlimit_global *g = handle(server.url, SHMLIMIT_GLOBAL_DENY, PATIENT_NS);

	is(take_until(g, SHMLIMIT_ALLOWED), SHMLIMIT_ALLOWED, "the backend is well again");
	server_tell(&server, "SET shmlimit:{" RULE "/sore} text");
	failed_key("another type", "the key has another type there (SHMLIMIT not a funnel");
	remembered();
	is(shmlimit_global_peek(g, rule, "sore", 4, &funnel), -EMEDIUMTYPE, "peek says so, too");
	server_tell(&server, "DEL shmlimit:{" RULE "/sore}");
	server_tell(&server, "HSET shmlimit:{" RULE "/sore} field value");
	failed_key("another hash", "the key has another type there (WRONGTYPE");
	server_tell(&server, "DEL shmlimit:{" RULE "/sore}");
	shmlimit_global_close(g);
}

/* A key's whole capacity, as far as this host gets it. */
static int take_all_of(struct shmlimit_global *g, int of, const char *key)
{
	int allowed = 0;

	for (int i = 0; i < 100; i++)
		allowed += shmlimit_global_take(g, of, key, strlen(key), 1, NULL) == SHMLIMIT_ALLOWED;
	return allowed;
}

/* A rule that is changed on one host first: each host has its own, and they share the key's time. */
static void mixed(void)
{
	struct shmlimit_options options = { .struct_size = sizeof(options), .slots = 64 };
	struct shmlimit_global_options plain = { .deadline_ns = PATIENT_NS };
	struct shmlimit_global_funnel funnel = { .struct_size = sizeof(funnel) };
	struct shmlimit_global *here = handle(server.url, SHMLIMIT_GLOBAL_DENY, PATIENT_NS), *there;
	struct shmlimit *other;
	char name[96];
	int other_rule;

	snprintf(name, sizeof(name), "%s.other", stage_name);
	if (shmlimit_create(name, &options, &other) != 0)
		bail("create %s", name);
	other_rule = lease_rule(other, RULE, CAPACITY + 1, 1, 86400000000000);
	there = global_open(other, server.url, plain);
	is(shmlimit_global_take(here, rule, "mixed", 5, 1, NULL), SHMLIMIT_ALLOWED, "a key has a funnel");
	is(shmlimit_global_take(there, other_rule, "mixed", 5, 1, NULL), SHMLIMIT_ALLOWED,
	   "another host with a newer rule is served");
	is(take_all_of(here, rule, "mixed"), CAPACITY - 2, "a host with the older rule finds what both have taken");
	is(take_all_of(there, other_rule, "fresh"), CAPACITY + 1, "a key that is new has the newer rule's capacity");
	is(reports.n, 0, "hosts with different rules are no problem: %s", reports.last);
	is(shmlimit_global_peek(here, rule, "mixed", 5, &funnel), 0, "peek shows it");
	is(funnel.remaining, 0, "with what is left");
	/* Back to the older numbers, on the host that has them already: the other one's are newer still. */
	lease_rule(l, RULE, CAPACITY, 1, 86400000000000);
	is(take_all_of(here, rule, "third"), CAPACITY, "a rule that is set to what it is stays the same");
	is(shmlimit_global_peek(there, other_rule, "third", 5, &funnel), 0, "a host with a newer rule looks");
	lease_rule(l, RULE, CAPACITY + 2, 1, 86400000000000);
	is(take_all_of(here, rule, "fourth"), CAPACITY + 2, "a rule that is changed is in force");
	is(take_all_of(there, other_rule, "fourth"), 0,
	   "a host with a smaller rule has nothing of a key that owes more");
	lease_rule(l, RULE, CAPACITY, 1, 86400000000000);
	shmlimit_global_close(there);
	shmlimit_global_close(here);
	shmlimit_close(other);
	shmlimit_destroy(name);
}

static void inexact(void)
{
	static const struct {
		uint64_t capacity, count, period_ns;
	} params[] = {
		/* clang-format off */
		{ 2000000, 7, 86400000000000 },
		{ 104250, 7, 86400000000000 },
		{ 1, UINT64_MAX, 1 },
		{ 1, 1, UINT64_MAX },
		{ 1, 9007199254741, 1000000007 },
		/* clang-format on */
	};
	struct shmlimit_rule fine = { .struct_size = sizeof(fine),
		                      .algorithm = SHMLIMIT_LEASE,
		                      .capacity = 104249,
		                      .refill = 7,
		                      .period_ns = 86400000000000 };
	struct shmlimit_global *g = handle(server.url, SHMLIMIT_GLOBAL_DENY, PATIENT_NS);

	is(shmlimit_global_take(g, shmlimit_rule_set(l, "fine", &fine), "key", 3, 1, NULL), SHMLIMIT_ALLOWED,
	   "the largest capacity that the backend can count at a rate is decided by it: %s", reports.last);
	for (size_t i = 0; i < sizeof(params) / sizeof(params[0]); i++) {
		fine.capacity = params[i].capacity;
		fine.refill = params[i].count;
		fine.period_ns = params[i].period_ns;
		is(shmlimit_rule_set(l, "fine", &fine), -ERANGE,
		   "a rule that the backend cannot count is refused when it is set, %zu", i);
	}
	shmlimit_global_close(g);
}

/* ---- Recovery ---- */

static void recovery(void)
{
	struct shmlimit_global *g = handle(server.url, SHMLIMIT_GLOBAL_DENY, PATIENT_NS);

	lease_rule(l, RULE, CAPACITY, 1000, 1000000000);
	server_tell(&server, "FLUSHALL");
	is(take_until(g, SHMLIMIT_ALLOWED), SHMLIMIT_ALLOWED, "it is well");
	server_tell(&server, "SCRIPT FLUSH");
	is(shmlimit_global_take(g, rule, "another", 7, 1, NULL), SHMLIMIT_ALLOWED,
	   "a script that was flushed is brought again");
	server_kill(&server);
	server_start(&server);
	is(shmlimit_global_take(g, rule, "a third", 7, 1, NULL), SHMLIMIT_ALLOWED,
	   "a server that was restarted is connected to within the call");
	is(reports.n, 0, "of which nothing is said %s", reports.last);
	server_kill(&server);
	is(shmlimit_global_take(g, rule, "a fourth", 8, 1, NULL), SHMLIMIT_DENIED,
	   "while there is none, all is denied");
	is(reports.n, 1, "a missing server is reported: %s", reports.last);
	server_start(&server);
	/* What is leased still would be spent without asking. */
	shmlimit_reset(l, rule, NULL, 0);
	is(take_until(g, SHMLIMIT_ALLOWED), SHMLIMIT_ALLOWED, "when it is back, all is well");
	server_kill(&server);
	is(take_until(g, SHMLIMIT_DENIED), SHMLIMIT_DENIED, "when it is gone again");
	is(reports.n, 2, "it is said again");
	server_start(&server);
	shmlimit_global_close(g);
}

/* The address of a primary leads to another server after a failover, and the old one becomes a replica. */
static void failover(void)
{
	static struct server other; /* ended when the program is */
	struct shmlimit_global *g;
	char path[108], url[128];

	server_begin(&other, NULL);
	snprintf(path, sizeof(path), "%s/primary.sock", server.folder);
	snprintf(url, sizeof(url), "unix://%s", path);
	if (symlink(server.socket, path) != 0)
		bail("symlink: %s", strerror(errno));
	g = handle(url, SHMLIMIT_GLOBAL_DENY, PATIENT_NS);
	lease_rule(l, RULE, CAPACITY, 1000, 1000000000);
	is(take_until(g, SHMLIMIT_ALLOWED), SHMLIMIT_ALLOWED, "a primary is asked");
	/* Port 1 of loopback: it finds no primary. */
	server_tell(&server, "REPLICAOF 127.0.0.1 1");
	shmlimit_reset(l, rule, NULL, 0);
	is(take_until(g, SHMLIMIT_DENIED), SHMLIMIT_DENIED, "a primary that became a replica allows nothing");
	ok(strstr(reports.last, "is a replica (READONLY") != NULL, "the handle says that it is a replica: %s",
	   reports.last);
	is(shmlimit_global_ping(g, NULL), 0, "a replica answers a ping");
	if (unlink(path) != 0 || symlink(other.socket, path) != 0)
		bail("symlink: %s", strerror(errno));
	is(take_until(g, SHMLIMIT_ALLOWED), SHMLIMIT_ALLOWED, "the server that took its address over is asked");
	server_tell(&server, "REPLICAOF NO ONE");
	shmlimit_global_close(g);
	server_end(&other);
	unlink(path);
}

/* A child goes on with its parent's handle, and neither reads the other's answers. */
static void forked(void)
{
	struct shmlimit_global *g = handle(server.url, SHMLIMIT_GLOBAL_DENY, PATIENT_NS);
	pid_t child[8];
	int bad = 0;

	lease_rule(l, RULE, CAPACITY, 1, 86400000000000);
	server_tell(&server, "FLUSHALL");
	is(take_until(g, SHMLIMIT_ALLOWED), SHMLIMIT_ALLOWED, "a handle has a connection");
	for (int i = 0; i < 8; i++) {
		child[i] = fork_bound();
		if (child[i] == 0) {
			for (int j = 0; j < 50; j++) {
				char key[32];
				int allowed = 0, len = snprintf(key, sizeof(key), "child %d %d", i, j);

				for (int k = 0; k < CAPACITY + 4; k++)
					allowed += shmlimit_global_take(g, rule, key, (size_t)len, 1, NULL) ==
					           SHMLIMIT_ALLOWED;
				worker_check(allowed == CAPACITY, "%s: %d admitted", key, allowed);
			}
			shmlimit_global_close(g);
			_exit(0);
		}
	}
	for (int i = 0; i < 8; i++)
		bad += !wait_for(child[i]);
	is(bad, 0, "children of a fork share the handle, and each key has its capacity");
	is(take_until(g, SHMLIMIT_ALLOWED), SHMLIMIT_ALLOWED, "the parent goes on with it");
	shmlimit_global_close(g);
}

static void arguments(void)
{
	struct shmlimit_global_options o = { .struct_size = sizeof(o), .report = reports_take, .arg = &reports };
	struct shmlimit_global *g = NULL;

	is(shmlimit_global_open(NULL, server.url, NULL, &g), -EINVAL, "no limiter");
	is(shmlimit_global_open(l, NULL, NULL, &g), -EINVAL, "no URL");
	is(shmlimit_global_open(l, server.url, NULL, NULL), -EINVAL, "no place for the handle");
	reports = (struct reports){ 0 };
	is(shmlimit_global_open(l, "redis://me:secret@host:99999", &o, &g), -EINVAL, "a bad URL");
	is_str(reports.last, "backend's URL: port: must be a number from 1 to 65535", "is said to be one");
	o.deadline_ns = 1;
	is(shmlimit_global_open(l, server.url, &o, &g), -EINVAL, "a deadline too short");
	o.deadline_ns = 0;
	o.on_failure = SHMLIMIT_GLOBAL_ERROR + 1;
	is(shmlimit_global_open(l, server.url, &o, &g), -EINVAL, "no such way to fail");
	o.on_failure = 0;
	o.prefix = "a{b";
	is(shmlimit_global_open(l, server.url, &o, &g), -EINVAL, "a prefix with a brace");
	o.prefix = NULL;
	o.reserved[2] = 1;
	is(shmlimit_global_open(l, server.url, &o, &g), -E2BIG, "a field that is not known");
	shmlimit_rule_remove(l, "~backend");
	stage_rule(l, "~backend", 1, 1, 1);
	is(shmlimit_global_open(l, server.url, NULL, &g), -EBUSY, "somebody else's rule in the breaker's place");
	shmlimit_rule_remove(l, "~backend");
	ok(g == NULL, "none of them made a handle");
	is(shmlimit_global_take(NULL, rule, "key", 3, 1, NULL), -EINVAL, "no handle");
	shmlimit_global_close(NULL);
}

static void not_counted(void)
{
	is(shmlimit_global_failures(NULL, 0), 0, "no limiter has counted no failures");
	is(shmlimit_global_failures(l, -1), 0, "a rule that is none has counted no failures");
	is(shmlimit_global_failures(l, 4095), 0, "a rule above those that are counted has no failures");
}

int main(void)
{
	if (server_missing())
		return tap_skip_all("no redis-server");
	stage_begin("global.failures");
	server_begin(&server, NULL);
	l = stage_create(1024, 0, 0);
	rule = lease_rule(l, RULE, CAPACITY, 1, 86400000000000);
	arguments();
	impostors();
	scheme();
	unreachable();
	permissions();
	keys();
	mixed();
	inexact();
	recovery();
	failover();
	forked();
	not_counted();
	return tap_done();
}
