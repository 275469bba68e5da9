/*
 * tls: a backend behind TLS. Its certificate is checked, and everything else is as without TLS, for each process and for
 * an agent.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <openssl/err.h>

#include "agent.h"
#include "certificates.h"

#define DAY UINT64_C(86400000000000)
#define KEYS 600

static struct server server;
static int port;
static struct shmlimit *l;
static struct reports reports;

static void configure(const char *format, ...)
{
	char command[256];
	va_list ap;

	va_start(ap, format);
	vsnprintf(command, sizeof(command), format, ap);
	va_end(ap);
	server_tell(&server, command);
}

/* `more`: what follows cacert=FILE. */
static void url_of(char url[512], const char *host, const char *more)
{
	snprintf(url, 512, "rediss://%s:%d?cacert=%s/authority.pem%s", host, port, server.folder, more);
}

static struct shmlimit_global *handle(const char *url)
{
	return patient_open(l, url, NULL, &reports);
}

static void pinged(const char *url, int error, const char *said, const char *title)
{
	struct shmlimit_global *g = handle(url);

	is(shmlimit_global_ping(g, NULL), error, "%s", title);
	ok(strstr(reports.last, said) != NULL, "%s: the report has \"%s\": %s", title, said, reports.last);
	shmlimit_global_close(g);
}

/* The application uses OpenSSL too: its errors are not the connection's, and it finds none that is not its own. */
static void errors_of_others(int rule)
{
	struct shmlimit_global *g;
	char url[512];
	int wrong = 0;

	url_of(url, "localhost", "");
	g = handle(url);
	for (int i = 0; i < 10; i++) {
		ERR_raise(ERR_LIB_SSL, ERR_R_INTERNAL_ERROR);
		wrong += shmlimit_global_take(g, rule, &i, sizeof(i), 1, NULL) != SHMLIMIT_ALLOWED;
	}
	is(wrong, 0, "errors in the thread's queue of OpenSSL are not taken for the connection's: %s", reports.last);
	shmlimit_global_close(g);
	snprintf(url, sizeof(url), "rediss://localhost:%d?cacert=%s/here.key", port, server.folder);
	g = handle(url);
	wrong = 0;
	for (int i = 0; i < 10; i++) {
		wrong += shmlimit_global_ping(g, NULL) != -EKEYREJECTED || ERR_peek_error() != 0;
		ERR_clear_error();
	}
	is(wrong, 0, "a file without a certificate leaves no error in the thread's queue of OpenSSL");
	shmlimit_global_close(g);
	/* The default authorities do not know this one. */
	snprintf(url, sizeof(url), "rediss://localhost:%d", port);
	g = handle(url);
	wrong = 0;
	for (int i = 0; i < 10; i++) {
		wrong += shmlimit_global_ping(g, NULL) != -EKEYREJECTED || ERR_peek_error() != 0;
		ERR_clear_error();
	}
	is(wrong, 0, "a certificate that is refused leaves no error in the thread's queue of OpenSSL");
	shmlimit_global_close(g);
}

static void certificates(void)
{
	char url[512], more[256];
	struct shmlimit_global *g;

	url_of(url, "127.0.0.1", "");
	pinged(url, 0, "", "a server whose certificate has its address is asked");
	url_of(url, "localhost", "");
	pinged(url, 0, "", "a server whose certificate has its name is asked");
	snprintf(url, sizeof(url), "rediss://localhost:%d", port);
	pinged(url, -EKEYREJECTED, "TLS failed (self-signed certificate in certificate chain)",
	       "a certificate of an unknown authority is refused");
	snprintf(url, sizeof(url), "rediss://localhost:%d?cacert=/nowhere.pem", port);
	pinged(url, -EKEYREJECTED, "TLS failed (/nowhere.pem: No such file or directory)",
	       "a file that is missing is an error");
	configure("CONFIG SET tls-cert-file %s/elsewhere.pem tls-key-file %s/elsewhere.key", server.folder,
	          server.folder);
	url_of(url, "localhost", "");
	pinged(url, -EKEYREJECTED, "TLS failed (hostname mismatch)", "a certificate for another name is refused");
	url_of(url, "127.0.0.1", "");
	pinged(url, -EKEYREJECTED, "TLS failed (IP address mismatch)", "a certificate for another address is refused");
	configure("CONFIG SET tls-cert-file %s/here.pem tls-key-file %s/here.key", server.folder, server.folder);
	configure("CONFIG SET tls-auth-clients yes");
	g = handle(url);
	ok(shmlimit_global_ping(g, NULL) < 0, "a server that wants a client's certificate refuses a client without: %s",
	   reports.last);
	shmlimit_global_close(g);
	snprintf(more, sizeof(more), "&cert=%s/client.pem&key=%s/client.key", server.folder, server.folder);
	url_of(url, "127.0.0.1", more);
	pinged(url, 0, "", "a client's certificate is shown");
	configure("CONFIG SET tls-auth-clients no");
}

static void without(void)
{
	struct shmlimit_global *g;
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int plain = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(address);
	char url[512];
	pid_t pid;

	/* What does not speak TLS answers with an error of Redis. */
	if (bind(plain, (struct sockaddr *)&address, len) != 0 || listen(plain, 8) != 0 ||
	    getsockname(plain, (struct sockaddr *)&address, &len) != 0)
		bail("listen");
	pid = fork_bound();
	while (pid == 0) {
		char bytes[1024];
		int fd = accept(plain, NULL, NULL);

		if (fd < 0 || read(fd, bytes, sizeof(bytes)) < 0 || write(fd, "-ERR no\r\n", 9) != 9)
			_exit(1);
		while (read(fd, bytes, sizeof(bytes)) > 0)
			;
		close(fd);
	}
	close(plain);
	snprintf(url, sizeof(url), "rediss://127.0.0.1:%d", ntohs(address.sin_port));
	pinged(url, -EKEYREJECTED, "TLS failed (", "a server that does not speak TLS is refused");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	snprintf(url, sizeof(url), "redis://127.0.0.1:%d", port);
	g = handle(url);
	ok(shmlimit_global_ping(g, NULL) < 0 && strstr(reports.last, "a port for TLS needs rediss://") != NULL,
	   "a server that speaks TLS only is not asked without: %s", reports.last);
	shmlimit_global_close(g);
}

/* As a port of Redis without TLS, which waits for the end of what it takes for a line. */
static void silent(void)
{
	struct shmlimit_global_options options = { .deadline_ns = 300000000, .report = reports_take, .arg = &reports };
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(address);
	struct shmlimit_global *g;
	char url[512];

	if (bind(fd, (struct sockaddr *)&address, len) != 0 || listen(fd, 8) != 0 ||
	    getsockname(fd, (struct sockaddr *)&address, &len) != 0)
		bail("listen");
	snprintf(url, sizeof(url), "rediss://127.0.0.1:%d", ntohs(address.sin_port));
	g = global_open(l, url, options);
	is(shmlimit_global_ping(g, NULL), -ETIMEDOUT, "a server that is silent in a handshake is late");
	ok(strstr(reports.last,
	          "no answer by the deadline (to the TLS handshake; a port without TLS needs redis://)") != NULL,
	   "the report of a silent handshake names the other scheme: %s", reports.last);
	shmlimit_global_close(g);
	close(fd);
}

static void taken(int rule)
{
	struct shmlimit_global *g;
	char url[512], key[16];
	int allowed = 0, at;
	pid_t pid;

	url_of(url, "127.0.0.1", "");
	g = handle(url);
	for (int i = 0; i < KEYS; i++)
		allowed += shmlimit_global_take(g, rule, key, (size_t)snprintf(key, sizeof(key), "%d", i), 1, NULL) ==
		           SHMLIMIT_ALLOWED;
	is(allowed, KEYS, "keys are asked for through TLS: %s", reports.last);
	pid = fork_bound();
	if (pid == 0) {
		int answer = shmlimit_global_take(g, rule, "child", 5, 1, NULL);

		shmlimit_global_close(g);
		_exit(answer != SHMLIMIT_ALLOWED);
	}
	ok(wait_for(pid), "a forked child makes a connection of its own");
	is(shmlimit_global_take(g, rule, "parent", 6, 1, NULL), SHMLIMIT_ALLOWED, "the parent's connection goes on");
	is(shmlimit_global_reset(g, rule, NULL, 0), KEYS + 2,
	   "replies that are longer than one read are received whole");
	is(reports.n, 0, "nothing is reported: %s", reports.last);
	server_kill(&server);
	at = shmlimit_global_take(g, rule, "gone", 4, 1, NULL);
	is(at, SHMLIMIT_DENIED, "a server that is killed kills no client by a signal");
	server_start(&server);
	await(shmlimit_global_take(g, rule, "back", 4, 1, NULL) == SHMLIMIT_ALLOWED);
	shmlimit_global_close(g);
}

static void agent(int rule)
{
	struct agent_process agent;
	struct shmlimit_global *g;
	char url[512], key[16];
	int allowed = 0;

	url_of(url, "localhost", "");
	agent = agent_start(l, url, PATIENT_NS);
	g = handle(url);
	agent_await(l);
	for (int i = 0; i < 100; i++)
		allowed += shmlimit_global_take(g, rule, key, (size_t)snprintf(key, sizeof(key), "agent %d", i), 1,
		                                NULL) == SHMLIMIT_ALLOWED;
	is(allowed, 100, "an agent asks through TLS: %s", reports.last);
	ok(agent_status(l).answered >= 100, "the agent has asked for all");
	server_kill(&server);
	server_start(&server);
	await(shmlimit_global_take(g, rule, "again", 5, 1, NULL) == SHMLIMIT_ALLOWED);
	agent_await(l);
	ok(agent_stop(&agent), "the agent ends well after its server was restarted");
	shmlimit_global_close(g);
}

/* What OpenSSL allows by itself, so that it is the library that refuses. */
static void allow_old_versions(void)
{
	char path[96];
	FILE *file;

	snprintf(path, sizeof(path), "%.63s/openssl.cnf", server.folder);
	file = fopen(path, "w");
	if (file == NULL)
		bail("%s", path);
	fputs("openssl_conf = all\n[all]\nssl_conf = ssl\n[ssl]\nsystem_default = old\n"
	      "[old]\nMinProtocol = TLSv1\nCipherString = DEFAULT@SECLEVEL=0\n",
	      file);
	fclose(file);
	setenv("OPENSSL_CONF", path, 1);
}

/* A server that speaks no version of TLS later than 1.1. */
static void old_versions(void)
{
	static const char *const versions[][3] = {
		{ "TLSv1.1", "-tls1_1", "a server that speaks TLS 1.1 is refused" },
		{ "TLSv1", "-tls1", "a server that speaks TLS 1.0 is refused" },
	};
	char url[512], command[512];

	url_of(url, "127.0.0.1", "");
	for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
		configure("CONFIG SET tls-protocols %s", versions[i][0]);
		snprintf(
			command, sizeof(command),
			"openssl s_client %s -connect 127.0.0.1:%d -CAfile '%s/authority.pem' </dev/null >/dev/null 2>&1",
			versions[i][1], port, server.folder);
		if (system(command) != 0)
			ok(1, "# skip this OpenSSL does not have %s", versions[i][0]);
		else
			pinged(url, -EKEYREJECTED, "TLS failed (", versions[i][2]);
	}
	configure("CONFIG SET tls-protocols TLSv1.2");
	pinged(url, 0, "", "a server that speaks TLS 1.2 is asked");
}

int main(void)
{
	char text[16], paths[3][96];
	const char *words[] = { "--port", "0", "--bind", "127.0.0.1", NULL };
	struct rng rng;
	int rule;

	if (server_missing())
		return tap_skip_all("no redis-server");
	if (openssl_missing())
		return tap_skip_all("no openssl");
	stage_begin("global.tls");
	rng.state = rng_seed();
	server_begin(&server, words);
	certificates_make(server.folder);
	allow_old_versions();
	port = server_port(&rng);
	/* The same words at the next start. */
	snprintf(text, sizeof(text), "%d", port);
	snprintf(paths[0], sizeof(paths[0]), "%.63s/authority.pem", server.folder);
	snprintf(paths[1], sizeof(paths[1]), "%.63s/here.pem", server.folder);
	snprintf(paths[2], sizeof(paths[2]), "%.63s/here.key", server.folder);
	server_kill(&server);
	for (int i = 0; i < 10; i++)
		server_word(&server,
		            (const char *[]){ "--tls-port", text, "--tls-ca-cert-file", paths[0], "--tls-cert-file",
		                              paths[1], "--tls-key-file", paths[2], "--tls-auth-clients", "no" }[i]);
	server_start(&server);
	l = stage_create(2048, 0, 0);
	rule = lease_rule(l, "login", 3, 1, DAY);
	certificates();
	without();
	silent();
	taken(rule);
	agent(rule);
	errors_of_others(rule);
	old_versions();
	return tap_done();
}
