/*
 * hostile: a backend that speaks the protocol and means no good. Whatever it answers, a call comes back with
 * one of its errors, decides as configured, and shows nothing that would act on a terminal. And an address that
 * answers nothing, before one that is the backend's. And a rule's record that a process writes over.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "connection.h"
#include "limiter.h"
#include "server.h"

#define OPEN_NS 1000000                 /* the least that there is */
#define PATIENT_NS UINT64_C(5000000000) /* a server that answers has all the time that it needs */
#define SHORT_NS UINT64_C(20000000)     /* one that does not has little */

static struct shmlimit *l;
static struct reports reports;
static int rule;

/* ---- Names: TWICE has another address before its own ---- */

#define TWICE "twice.test"

static struct sockaddr_in first, own;

int getaddrinfo(const char *host, const char *port, const struct addrinfo *hints, struct addrinfo **found)
{
	static struct addrinfo list[2];

	(void)hints;
	own = (struct sockaddr_in){ .sin_family = AF_INET,
		                    .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		                    .sin_port = htons((in_port_t)atoi(port)) };
	list[0] = (struct addrinfo){ .ai_family = AF_INET,
		                     .ai_addr = (struct sockaddr *)&first,
		                     .ai_addrlen = sizeof(first),
		                     .ai_next = &list[1] };
	list[1] = (struct addrinfo){ .ai_family = AF_INET,
		                     .ai_addr = (struct sockaddr *)&own,
		                     .ai_addrlen = sizeof(own) };
	*found = strcmp(host, TWICE) == 0 ? &list[0] : &list[1];
	return 0;
}

void freeaddrinfo(struct addrinfo *list)
{
	(void)list;
}

/* ---- The backend: one answer to everything ---- */

struct backend {
	pid_t pid;
	char url[64];
};

/* All answers at once, whatever is asked; then it keeps the connection until the other shuts it. */
static void serve(int fd, const char *words)
{
	size_t len = strlen(words);
	char asked[4096];

	if (read(fd, asked, sizeof(asked)) <= 0)
		return;
	while (len > 0) {
		ssize_t n = send(fd, words, len, MSG_NOSIGNAL);

		if (n <= 0)
			return;
		words += n;
		len -= (size_t)n;
	}
	while (read(fd, asked, sizeof(asked)) > 0)
		;
}

/* A socket that listens, on a port of its own. */
static int listen_at(struct sockaddr_in *address, int backlog)
{
	socklen_t len = sizeof(*address);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	*address = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	if (bind(listener, (struct sockaddr *)address, len) != 0 || listen(listener, backlog) != 0 ||
	    getsockname(listener, (struct sockaddr *)address, &len) != 0)
		bail("listen: %s", strerror(errno));
	return listener;
}

static struct backend backend_of(const char *words)
{
	struct sockaddr_in address;
	int listener = listen_at(&address, 64);
	struct backend backend;

	snprintf(backend.url, sizeof(backend.url), "redis://127.0.0.1:%d", ntohs(address.sin_port));
	backend.pid = fork_bound();
	while (backend.pid == 0) {
		int fd = accept(listener, NULL, NULL);

		if (fd < 0)
			_exit(1);
		serve(fd, words);
		close(fd);
	}
	close(listener);
	return backend;
}

static void backend_end(struct backend *backend)
{
	kill(backend->pid, SIGKILL);
	waitpid(backend->pid, NULL, 0);
}

static struct shmlimit_global *handle(const struct backend *backend, uint64_t deadline_ns)
{
	struct shmlimit_global *g = global_open(
		l, backend->url,
		(struct shmlimit_global_options){
			.deadline_ns = deadline_ns, .open_ns = OPEN_NS, .report = reports_take, .arg = &reports });

	reports = (struct reports){ 0 };
	return g;
}

static int is_printable(const char *text)
{
	while (*text != '\0' && isprint((unsigned char)*text))
		text++;
	return *text == '\0';
}

/* ---- What it answers ---- */

#define OK "+OK\r\n"
#define VERSION(len, text) "*2\r\n$7\r\nversion\r\n$" #len "\r\n" text "\r\n"
#define SHA "$40\r\n0123456789012345678901234567890123456789\r\n-NOPERM\r\n" /* and may not read INFO */
#define WELCOME VERSION(1, "7") OK OK SHA
#define UNNAMED VERSION(1, "7") "-ERR unknown subcommand\r\n" OK SHA

#define NO_INFO "-NOPERM\r\n-NOPERM\r\n"

#define TEN(text) text text text text text text text text text text

/* While it is greeted: ping has an error then, and so has a take. */
static void greetings(void)
{
	static const struct {
		const char *what, *words;
		uint64_t deadline_ns;
		int ping;
	} cases[] = {
		{ "an old version that clears the screen", VERSION(6, "5\33[2J\n") OK SHA, PATIENT_NS, -EPROTO },
		{ "an error that clears the screen", "-NOAUTH \33[2J\r\n", PATIENT_NS, -EACCES },
		{ "no version", "*2\r\n:1\r\n:2\r\n", PATIENT_NS, -EPROTO },
		{ "half of a pair", "*1\r\n$7\r\nversion\r\n", PATIENT_NS, -EPROTO },
		{ "nothing at all", "*-1\r\n", PATIENT_NS, -EPROTO },
		{ "a version that is a list", "*2\r\n$7\r\nversion\r\n*1\r\n:7\r\n", PATIENT_NS, -EPROTO },
		{ "a script's name that is a number", VERSION(1, "7") OK OK ":40\r\n", PATIENT_NS, -EBADMSG },
		{ "a script's name that is too short", VERSION(1, "7") OK OK "$2\r\nab\r\n", PATIENT_NS, -EBADMSG },
		/* hiredis 1 reads any depth, and waits for the rest. */
		{ "lists in lists", TEN(TEN("*1\r\n")), SHORT_NS, HIREDIS_MAJOR < 1 ? -EBADMSG : -ETIMEDOUT },
		{ "a list of more than there can be", "*9223372036854775807\r\n", PATIENT_NS, -EBADMSG },
		{ "a text of less than nothing", "$-9223372036854775808\r\n", PATIENT_NS, -EBADMSG },
		{ "a number that is none", ":12x\r\n", PATIENT_NS, -EBADMSG },
		{ "a text longer than any", "$500000000\r\n", PATIENT_NS, -EBADMSG },
		{ "a text longer than any in a list", "*2\r\n$7\r\nversion\r\n$65537\r\n", PATIENT_NS, -EBADMSG },
		{ "a list longer than any", "*100000000\r\n", PATIENT_NS, -EBADMSG },
		{ "a text that does not come", "$5000\r\n", SHORT_NS, -ETIMEDOUT },
		{ "a line that does not end", TEN(TEN("+OK OK OK OK")), SHORT_NS, -ETIMEDOUT },
		{ "half a greeting", VERSION(1, "7") OK OK, SHORT_NS, -ETIMEDOUT },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct backend backend = backend_of(cases[i].words);
		struct shmlimit_global *g = handle(&backend, cases[i].deadline_ns);

		is(shmlimit_global_ping(g, NULL), cases[i].ping, "%s: ping says so", cases[i].what);
		is(shmlimit_global_take(g, rule, "key", 3, 1, NULL), SHMLIMIT_DENIED, "%s: all is denied",
		   cases[i].what);
		ok(reports.n >= 1 && is_printable(reports.last), "%s: it is said in printable words", cases[i].what);
		shmlimit_global_close(g);
		backend_end(&backend);
	}
}

/* Each place of a pair in the answer to HELLO may be of any type: what is no text is passed over. */
static void hello(void)
{
	static const char *const types[] = { "$7\r\nversion\r\n", "$4\r\nmode\r\n", "+version\r\n", ":7\r\n",
		                             "$-1\r\n",           "*-1\r\n",        "*0\r\n",       "*1\r\n:7\r\n",
		                             "-ERR\r\n",          "$0\r\n\r\n" };
	enum { TYPES = sizeof(types) / sizeof(types[0]) };
	int wrong = 0;

	for (int i = 0; i < TYPES * TYPES; i++) {
		struct shmlimit_global_info info = { .struct_size = sizeof(info) };
		struct shmlimit_global *g;
		struct backend backend;
		char words[512];

		snprintf(words, sizeof(words), "*4\r\n%s%s$7\r\nversion\r\n$1\r\n7\r\n" OK OK SHA "+PONG\r\n" NO_INFO,
		         types[i / TYPES], types[i % TYPES]);
		backend = backend_of(words);
		g = handle(&backend, PATIENT_NS);
		if (shmlimit_global_ping(g, &info) != 0 || strcmp(info.version, "7") != 0) {
			diag("%s, version %s: %s", types[i / TYPES], info.version, reports.last);
			wrong++;
		}
		shmlimit_global_close(g);
		backend_end(&backend);
	}
	is(wrong, 0, "a server is greeted whatever types its answer to HELLO has before the version");
}

/* When it is asked for tokens. None are there that it did not give as it should. */
static void leases(void)
{
	static const struct {
		const char *what, *words;
	} cases[] = {
		{ "fewer numbers", "*4\r\n:1\r\n:0\r\n:0\r\n:0\r\n" },
		{ "more numbers", "*6\r\n:1\r\n:0\r\n:0\r\n:0\r\n:0\r\n:0\r\n" },
		{ "texts", "*5\r\n$1\r\n1\r\n$1\r\n0\r\n$1\r\n0\r\n$1\r\n0\r\n$1\r\n0\r\n" },
		{ "lists", "*5\r\n*0\r\n*0\r\n*0\r\n*0\r\n*0\r\n" },
		{ "a number", ":1\r\n" },
		{ "nothing", "$-1\r\n" },
		{ "fewer than no tokens", "*5\r\n:-1\r\n:0\r\n:0\r\n:0\r\n:0\r\n" },
		{ "more tokens than were asked for", "*5\r\n:9223372036854775807\r\n:0\r\n:0\r\n:0\r\n:0\r\n" },
		{ "neither tokens nor a time", "*5\r\n:0\r\n:0\r\n:0\r\n:0\r\n:0\r\n" },
		{ "a denial that never ends", "*5\r\n:0\r\n:9223372036854775807\r\n:-1\r\n:-1\r\n:0\r\n" },
		{ "an unknown error", "-HELP \33]0;title\7\r\n" },
		{ "another node, which is none", "-MOVED 99999 127.0.0.1:1\r\n" },
		{ "another node without a port", "-MOVED 1 127.0.0.1\r\n" },
		{ "a script that is gone, and gone again", "-NOSCRIPT\r\n-NOSCRIPT\r\n" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char words[512];
		struct shmlimit_result r;
		struct backend backend;
		struct shmlimit_global *g;

		snprintf(words, sizeof(words), "%s%s", WELCOME, cases[i].words);
		backend = backend_of(words);
		g = handle(&backend, PATIENT_NS);
		shmlimit_reset(l, SHMLIMIT_ALL_RULES, NULL, 0);
		is(shmlimit_global_take(g, rule, "key", 3, 1, &r), SHMLIMIT_DENIED, "%s: denied", cases[i].what);
		is(r.remaining, 0, "%s: nothing is here", cases[i].what);
		ok(is_printable(reports.last), "%s: what is said is printable: %s", cases[i].what, reports.last);
		shmlimit_global_close(g);
		backend_end(&backend);
	}
}

/* When it lists keys. */
static void walks(void)
{
	static const char *const walks[] = {
		":0\r\n",
		"*1\r\n$1\r\n0\r\n",
		"*2\r\n:0\r\n*0\r\n",
		"*2\r\n$30\r\n012345678901234567890123456789\r\n*0\r\n",
		"*2\r\n$1\r\n0\r\n:7\r\n",
		"*2\r\n$1\r\n0\r\n*2\r\n:5\r\n*0\r\n:1\r\n:1\r\n",
		"*2\r\n$1\r\n0\r\n*1\r\n$-1\r\n:1\r\n",
	};

	for (size_t i = 0; i < sizeof(walks) / sizeof(walks[0]); i++) {
		char words[512];
		struct backend backend;
		struct shmlimit_global *g;

		snprintf(words, sizeof(words), "%s%s", WELCOME, walks[i]);
		backend = backend_of(words);
		g = handle(&backend, PATIENT_NS);
		is(shmlimit_global_reset(g, rule, NULL, 0), -EBADMSG, "keys that are listed as nobody should, %zu", i);
		shmlimit_global_close(g);
		backend_end(&backend);
	}
}

/* What it says of itself is shown. */
static void boast(void)
{
	struct shmlimit_global_info info = { .struct_size = sizeof(info) };
	struct backend backend = backend_of("*6\r\n$7\r\nversion\r\n$50\r\n7\33[2J" TEN(
		"\n\n\n\n") "aaaaa\r\n$4\r\nmode\r\n"
	                    "$3\r\n\1\2\3\r\n$4\r\nrole\r\n$4\r\n\377\376\33\b\r\n" OK OK SHA "+PONG\r\n" NO_INFO);
	struct shmlimit_global *g = handle(&backend, PATIENT_NS);

	is(shmlimit_global_ping(g, &info), 0, "one that answers as it should is pinged");
	ok(is_printable(info.version) && is_printable(info.mode) && is_printable(info.role),
	   "what a server says of itself is printable");
	is(info.version[0], '7', "a server's version is reported as it said");
	shmlimit_global_close(g);
	backend_end(&backend);
}

/* What it does not say of itself is not known. */
static void silence(void)
{
	struct shmlimit_global_info info = { .struct_size = sizeof(info) };
	struct backend backend =
		backend_of(WELCOME "+PONG\r\n$29\r\nmaxmemory_policy:noeviction\r\n\r\n$7\r\nnone:\r\n\r\n");
	struct shmlimit_global *g = handle(&backend, PATIENT_NS);

	is(shmlimit_global_ping(g, &info), 0, "a server that says little of itself is pinged %s", reports.last);
	is_str(info.eviction, "noeviction", "what it says of its memory is reported");
	ok(info.memory_max == 0 && info.clients == 0 && info.clients_max == 0,
	   "what a server does not say of itself is reported as not known");
	shmlimit_global_close(g);
	backend_end(&backend);
}

/* ---- Connections ---- */

static void unnamed(void)
{
	struct backend backend = backend_of(UNNAMED "+PONG\r\n" NO_INFO);
	struct shmlimit_global *g = handle(&backend, PATIENT_NS);

	is(shmlimit_global_ping(g, NULL), 0, "a server that refuses a connection's name is used");
	is(reports.n, 0, "a name that is refused is not reported");
	shmlimit_global_close(g);
	backend_end(&backend);
}

static int option(const struct connection *connection, int level, int name)
{
	int value = 0;
	socklen_t len = sizeof(value);

	return getsockopt(connection->fd, level, name, &value, &len) == 0 ? value : -1;
}

static void kept_alive(void)
{
	struct sockaddr_in address;
	int listener = listen_at(&address, 1);
	struct connection connection = CONNECTION_SHUT;
	struct url url = { .host = "localhost" };

	snprintf(url.port, sizeof(url.port), "%d", ntohs(address.sin_port));
	is(connection_connect(&connection, &url, NULL), 0, "a server that listens is connected to");
	is(option(&connection, SOL_SOCKET, SO_KEEPALIVE), 1, "an idle connection is kept alive");
	is(option(&connection, IPPROTO_TCP, TCP_KEEPIDLE), 60, "an idle connection is tested after a minute");
	is(option(&connection, IPPROTO_TCP, TCP_KEEPINTVL) * option(&connection, IPPROTO_TCP, TCP_KEEPCNT), 60,
	   "a connection is shut after a minute of tests without an answer");
	connection_shut(&connection);
	close(listener);
}

/* ---- Sentinels ---- */

#define NO_PASSWORD "-ERR AUTH <password> called without any password configured for the default user\r\n"

static int port_of(const char *url)
{
	return atoi(strrchr(url, ':') + 1);
}

/* What a sentinel answers, and what ping returns then. */
static void sentinels(void)
{
	static const struct {
		const char *what, *words;
		int ping;
	} cases[] = {
		{ "a sentinel that does not know the name", "*-1\r\n", -EDESTADDRREQ },
		{ "a sentinel that wants a password", "-NOAUTH\r\n", -EACCES },
		{ "one that is no sentinel", "-ERR unknown command 'SENTINEL'\r\n", -ENOTUNIQ },
		{ "a number for an address", ":1\r\n", -EBADMSG },
		{ "an address without a port", "*1\r\n$9\r\n127.0.0.1\r\n", -EBADMSG },
		{ "an address of numbers", "*2\r\n:1\r\n:1\r\n", -EBADMSG },
		{ "an empty address", "*2\r\n$0\r\n\r\n$1\r\n1\r\n", -EBADMSG },
		{ "port 0", "*2\r\n$9\r\n127.0.0.1\r\n$1\r\n0\r\n", -EBADMSG },
		{ "a port out of range", "*2\r\n$9\r\n127.0.0.1\r\n$5\r\n65536\r\n", -EBADMSG },
		{ "a port with leading zeros", "*2\r\n$9\r\n127.0.0.1\r\n$8\r\n00000001\r\n", -EBADMSG },
		{ "a primary that refuses", "*2\r\n$9\r\n127.0.0.1\r\n$1\r\n1\r\n", -ECONNREFUSED },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct backend backend = backend_of(cases[i].words);
		struct shmlimit_global *g;

		snprintf(backend.url, sizeof(backend.url), "redis+sentinel://127.0.0.1:%d/mymaster",
		         port_of(backend.url));
		g = handle(&backend, PATIENT_NS);
		is(shmlimit_global_ping(g, NULL), cases[i].ping, "%s: ping says so: %s", cases[i].what, reports.last);
		is(shmlimit_global_take(g, rule, "key", 3, 1, NULL), SHMLIMIT_DENIED, "%s: all is denied",
		   cases[i].what);
		shmlimit_global_close(g);
		backend_end(&backend);
	}
}

/* A sentinel without a password, which leads to a server with one. */
static void roles(void)
{
	static const char *const role[2] = { "$6\r\nmaster\r\n", "$7\r\nreplica\r\n" };

	for (int replica = 0; replica < 2; replica++) {
		struct backend sentinel, primary;
		struct shmlimit_global *g;
		char words[512];
		int port;

		snprintf(words, sizeof(words),
		         OK "*4\r\n$7\r\nversion\r\n$1\r\n7\r\n$4\r\nrole\r\n%s" OK OK SHA "+PONG\r\n" NO_INFO,
		         role[replica]);
		primary = backend_of(words);
		port = port_of(primary.url);
		snprintf(words, sizeof(words), NO_PASSWORD "*2\r\n$9\r\n127.0.0.1\r\n$%d\r\n%d\r\n",
		         snprintf(NULL, 0, "%d", port), port);
		sentinel = backend_of(words);
		snprintf(sentinel.url, sizeof(sentinel.url), "redis+sentinel://:p@127.0.0.1:%d/m",
		         port_of(sentinel.url));
		g = handle(&sentinel, PATIENT_NS);
		is(shmlimit_global_ping(g, NULL), replica ? -EBUSY : 0, "a %s that a sentinel names is %s",
		   replica ? "replica" : "primary", replica ? "refused" : "asked");
		shmlimit_global_close(g);
		backend_end(&sentinel);
		backend_end(&primary);
	}
}

/* ---- Sizes ---- */

/* Feed `text` to a check, `step` bytes at a time. */
static int checked(struct connection_check *check, const char *text, size_t step)
{
	size_t len = strlen(text);
	int error = 0;

	for (size_t i = 0; i < len && error == 0; i += step)
		error = connection_check(check, text + i, len - i < step ? len - i : step);
	return error;
}

static void sizes(void)
{
	static const char good[] =
		WELCOME "*4\r\n:1\r\n:-1\r\n$-1\r\n*-1\r\n-ERR *99999999\r\n$9\r\n$99999999\r\n+OK\r\n";
	struct connection_check check = { 0 };
	char line[1024];
	int error = 0, refused = 0;

	for (size_t step = 1; step < sizeof(good); step++) {
		check = (struct connection_check){ 0 };
		error |= checked(&check, good, step);
		refused += checked(&check, "$70000\r\n", step) == -EBADMSG;
	}
	is(error, 0, "real replies are accepted, wherever they are cut");
	is(refused, (int)sizeof(good) - 1, "a text that is too long is refused, wherever it is cut");
	memset(line, 'x', sizeof(line) - 1);
	line[sizeof(line) - 1] = '\0';
	check = (struct connection_check){ 0 };
	error = checked(&check, "+", 1);
	for (int i = 0; i < 60 && error == 0; i++)
		error = checked(&check, line, sizeof(line));
	is(error, 0, "a line of 61,380 bytes is accepted");
	for (int i = 0; i < 10 && error == 0; i++)
		error = checked(&check, line, sizeof(line));
	is(error, -EBADMSG, "a line without an end is refused");
	check = (struct connection_check){ 0 };
	error = checked(&check, "*65536\r\n", 99);
	for (int i = 0; i < 65536 && error == 0; i++) {
		error = checked(&check, "$1023\r\n", 99);
		if (error == 0)
			error = checked(&check, line, sizeof(line));
		if (error == 0)
			error = checked(&check, "\r\n", 99);
	}
	is(error, -EBADMSG, "a list of many long texts is refused");
}

/* ---- Distance ---- */

#define FAR_NS UINT64_C(120000000) /* the deadline */
#define FAR_US 70000               /* an answer's way: two of them are more than the deadline */

/* Answers each message as well as it can, but from afar. */
static void serve_far(int fd)
{
	const char *words = WELCOME;
	char asked[8192];

	while (read(fd, asked, sizeof(asked)) > 0) {
		usleep(FAR_US);
		if (send(fd, words, strlen(words), MSG_NOSIGNAL) <= 0)
			break;
		words = "*5\r\n:1\r\n:0\r\n:7\r\n:1000000\r\n:0\r\n";
	}
}

static void distance(void)
{
	struct sockaddr_in address;
	int listener = listen_at(&address, 64), answer = SHMLIMIT_DENIED;
	struct shmlimit_global *g;
	struct backend backend;

	snprintf(backend.url, sizeof(backend.url), "redis://127.0.0.1:%d", ntohs(address.sin_port));
	backend.pid = fork_bound();
	while (backend.pid == 0) {
		int fd = accept(listener, NULL, NULL);

		if (fd >= 0 && fork_bound() == 0) {
			serve_far(fd);
			_exit(0);
		}
		close(fd);
	}
	close(listener);
	g = handle(&backend, FAR_NS);
	shmlimit_reset(l, SHMLIMIT_ALL_RULES, NULL, 0);
	for (int i = 0; answer != SHMLIMIT_ALLOWED && i < 50; i++) {
		answer = shmlimit_global_take(g, rule, "far", 3, 1, NULL);
		usleep(OPEN_NS / 1000);
	}
	is(answer, SHMLIMIT_ALLOWED,
	   "a backend that is reached and asked in more than a deadline, but answers in less, "
	   "is asked by a later call: %s",
	   reports.last);
	shmlimit_global_close(g);
	backend_end(&backend);
}

/* ---- Addresses ---- */

static int connect_to(const struct sockaddr_in *address, int flags)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);

	if (connect(fd, (const struct sockaddr *)address, sizeof(*address)) != 0 && errno != EINPROGRESS)
		bail("connect: %s", strerror(errno));
	return fd;
}

/* No process accepts, and one connection may wait: the next one gets no answer. */
static int is_silent(const struct sockaddr_in *address)
{
	struct pollfd next;

	(void)connect_to(address, 0);
	next = (struct pollfd){ .fd = connect_to(address, SOCK_NONBLOCK), .events = POLLOUT };
	return poll(&next, 1, 100) == 0;
}

static void addresses(void)
{
	struct backend backend = backend_of(WELCOME "+PONG\r\n" NO_INFO);
	int listener = listen_at(&first, 0), error = -1;
	struct shmlimit_global *g;
	struct backend twice = backend;

	snprintf(twice.url, sizeof(twice.url), "redis://" TWICE "%s", strrchr(backend.url, ':'));
	if (is_silent(&first)) {
		g = handle(&twice, SHORT_NS);
		for (int i = 0; error != 0 && i < 1000; i++)
			error = shmlimit_global_ping(g, NULL);
		is(error, 0, "where the first address of a name says nothing the next is tried");
		shmlimit_global_close(g);
		g = handle(&twice, PATIENT_NS);
		is(shmlimit_global_ping(g, NULL), 0, "within one call, if that has the time");
		shmlimit_global_close(g);
		snprintf(twice.url, sizeof(twice.url), "redis://127.0.0.1:%d,127.0.0.1%s", ntohs(first.sin_port),
		         strrchr(backend.url, ':'));
		g = handle(&twice, PATIENT_NS);
		is(shmlimit_global_ping(g, NULL), 0, "where the first host of a URL says nothing the next is tried");
		shmlimit_global_close(g);
		snprintf(twice.url, sizeof(twice.url), "redis://" TWICE "%s", strrchr(backend.url, ':'));
	} else {
		tap_skip("an address that says nothing", "this system's answer all");
	}
	close(listener);
	g = handle(&twice, PATIENT_NS);
	is(shmlimit_global_ping(g, NULL), 0, "where it refuses, too");
	shmlimit_global_close(g);
	backend_end(&backend);
}

/* ---- Rules that are written over ---- */

/* Ask under a rule whose record is not as it was set: no server answers, so each policy has its turn. */
static void ask_damaged(struct shmlimit_global *const g[3])
{
	struct shmlimit_request requests[2] = { { .rule = rule, .key = "a", .key_len = 1, .cost = 1 },
		                                { .rule = rule, .key = "b", .key_len = 1, .cost = 2 } };
	struct shmlimit_global_funnel funnel = { .struct_size = sizeof(funnel) };
	struct shmlimit_result r[2];
	int answers[2];

	for (int i = 0; i < 3; i++) {
		(void)shmlimit_global_take(g[i], rule, "key", 3, 1, r);
		(void)shmlimit_global_peek(g[i], rule, "key", 3, &funnel);
		(void)shmlimit_global_take_many(g[i], requests, 2, answers, r);
	}
}

static void damage_and_ask(struct shmlimit_global *const g[3])
{
	static const uint64_t values[] = { 0, 1, 2, UINT32_MAX, (uint64_t)1 << 63, UINT64_MAX };
	struct rng rng = { 1 };
	struct layout_rule *record = &l->rules[rule], sound = *record;
	uint64_t *params = (uint64_t *)(void *)&record->params[published_version(record->published) % RULE_VERSIONS];
	size_t words = sizeof(struct layout_params) / sizeof(uint64_t);

	for (size_t word = 0; word < words; word++)
		for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
			params[word] = values[i];
			ask_damaged(g);
			memcpy(record->params, sound.params, sizeof(sound.params));
		}
	for (int round = 0; round < 500; round++) {
		for (int n = 0; n < 3; n++)
			params[rng_below(&rng, words)] = rng_draw(&rng) >> rng_below(&rng, 64);
		record->name[rng_below(&rng, sizeof(record->name))] ^= (char)rng_draw(&rng);
		ask_damaged(g);
		memcpy(record->params, sound.params, sizeof(sound.params));
		memcpy(record->name, sound.name, sizeof(sound.name));
	}
}

static void damaged_rules(void)
{
	static const uint32_t policies[3] = { SHMLIMIT_GLOBAL_DENY, SHMLIMIT_GLOBAL_ALLOW, SHMLIMIT_GLOBAL_LOCAL };
	struct shmlimit_global *g[3];
	struct sockaddr_in address;
	char url[64];
	pid_t pid;

	close(listen_at(&address, 1));
	snprintf(url, sizeof(url), "redis://127.0.0.1:%d", ntohs(address.sin_port));
	pid = fork_bound();
	if (pid == 0) {
		for (int i = 0; i < 3; i++) {
			struct shmlimit_global_options options = { .struct_size = sizeof(options),
				                                   .on_failure = policies[i],
				                                   .local_milli = 500,
				                                   .deadline_ns = SHORT_NS };

			worker_check(shmlimit_global_open(l, url, &options, &g[i]) == 0, "global_open");
		}
		damage_and_ask(g);
		_exit(0);
	}
	ok(wait_for(pid), "whatever stands in a rule's record, no process that decides under it crashes");
}

/* ---- A lock that another process holds ---- */

static unsigned naps;

/* A process that waits for the lock naps between its tries. */
int clock_nanosleep(clockid_t clock, int flags, const struct timespec *request, struct timespec *left)
{
	naps++;
	return syscall(SYS_clock_nanosleep, clock, flags, request, left) == 0 ? 0 : errno;
}

static void held_lock(void)
{
	struct shmlimit_global_options options = { .struct_size = sizeof(options),
		                                   .on_failure = SHMLIMIT_GLOBAL_LOCAL,
		                                   .local_milli = 500,
		                                   .deadline_ns = SHORT_NS };
	int held = lease_rule(l, "held", 8, 1, 1000000000);
	struct shmlimit_global *g;
	struct sockaddr_in address;
	char text[SHMLIMIT_PATH_MAX];
	int lock;

	close(listen_at(&address, 1));
	snprintf(text, sizeof(text), "redis://127.0.0.1:%d", ntohs(address.sin_port));
	if (shmlimit_global_open(l, text, &options, &g) != 0)
		bail("global_open");
	(void)shmlimit_path(stage_name, text);
	lock = open(text, O_RDONLY | O_CLOEXEC);
	if (lock < 0 || flock(lock, LOCK_EX) != 0)
		bail("flock: %s", strerror(errno));
	naps = 0;
	is(shmlimit_global_take(g, held, "key", 3, 1, NULL), SHMLIMIT_DENIED,
	   "a request that needs a rule of this host's share is denied while another process holds the lock");
	is(naps, 0, "a request does not wait for the lock");
	close(lock);
	is(shmlimit_global_take(g, held, "key", 3, 1, NULL), SHMLIMIT_ALLOWED,
	   "it is decided by this host's share when the lock is free again");
	shmlimit_global_close(g);
}

int main(void)
{
	stage_begin("global.hostile");
	l = stage_create(64, 8, SHMLIMIT_FULL_EVICT);
	rule = lease_rule(l, "login", 8, 1, 1000000000);
	greetings();
	hello();
	leases();
	walks();
	boast();
	silence();
	unnamed();
	kept_alive();
	sentinels();
	roles();
	sizes();
	distance();
	addresses();
	held_lock();
	damaged_rules();
	shmlimit_close(l);
	return tap_done();
}
