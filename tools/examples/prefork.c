/*
 * prefork: the skeleton of a prefork server with one limit for all of its workers. The master makes the segment, listens
 * and replaces workers that die. Each worker answers HTTP requests: 15 at once and 30 a minute of each client.
 *
 *	cc prefork.c $(pkg-config --cflags --libs shmlimit) -o prefork && ./prefork web 8080
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <netinet/in.h>
#include <shmlimit.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORKERS 4

/* Open the segment, or create it. Another process may create or destroy it in between. */
static struct shmlimit *open_or_create(const char *name)
{
	struct shmlimit_options options = { .struct_size = sizeof(options), .slots = 65536 };
	struct shmlimit *limiter;
	int error;

	do {
		error = shmlimit_open(name, SHMLIMIT_OPEN_TRUSTED, NULL, &limiter);
		if (error == -ENOENT)
			error = shmlimit_create(name, &options, &limiter);
	} while (error == -EEXIST);
	if (error != 0)
		errx(1, "segment %s: %s", name, shmlimit_strerror(error));
	return limiter;
}

static int listen_on(const char *port)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
		                       .sin_port = htons((uint16_t)atoi(port)),
		                       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM, 0), yes = 1;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	if (bind(fd, (struct sockaddr *)&address, len) != 0 || listen(fd, 128) != 0)
		err(1, "port %s", port);
	getsockname(fd, (struct sockaddr *)&address, &len);
	printf("listening on 127.0.0.1:%d\n", ntohs(address.sin_port));
	fflush(stdout);
	return fd;
}

/* Answer one request: 200, or 429 with the time after which the same request is allowed. */
static void serve(struct shmlimit *limiter, int rule, int fd, const struct sockaddr_in *client)
{
	unsigned char key[SHMLIMIT_KEY_IP_MAX];
	struct shmlimit_result r = { 0 };
	char request[4096];
	int len = shmlimit_key_ip(&client->sin_addr, sizeof(client->sin_addr), 32, 64, key, sizeof(key));
	int answer = shmlimit_take(limiter, rule, key, (size_t)len, 1, &r);

	if (recv(fd, request, sizeof(request), 0) <= 0)
		return;
	if (answer == SHMLIMIT_ALLOWED)
		dprintf(fd, "HTTP/1.0 200 OK\r\n\r\nhello from %d, %d left\n", (int)getpid(), (int)r.remaining);
	else if (answer == SHMLIMIT_DENIED)
		dprintf(fd, "HTTP/1.0 429 Too Many Requests\r\nRetry-After: %d\r\n\r\n",
		        (int)((r.retry_after_ns + 999999999) / 1000000000));
	else
		dprintf(fd, "HTTP/1.0 503 Service Unavailable\r\n\r\n");
}

/* The handle was opened before the fork: workers inherit it, and need nothing of their own. */
static pid_t start_worker(struct shmlimit *limiter, int rule, int listener)
{
	pid_t master = getpid(), pid = fork();

	if (pid != 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	signal(SIGPIPE, SIG_IGN);
	while (getppid() == master) {
		struct sockaddr_in client;
		socklen_t len = sizeof(client);
		int fd = accept(listener, (struct sockaddr *)&client, &len);

		if (fd < 0)
			continue;
		serve(limiter, rule, fd, &client);
		shutdown(fd, SHUT_WR);
		close(fd);
	}
	_exit(0);
}

int main(int argc, char *argv[])
{
	struct shmlimit_rule params = {
		.struct_size = sizeof(params), .capacity = 15, .refill = 30, .period_ns = UINT64_C(60000000000)
	};
	struct shmlimit *limiter;
	int rule, listener;

	if (argc != 3)
		errx(2, "usage: prefork SEGMENT PORT");
	limiter = open_or_create(argv[1]);
	rule = shmlimit_rule_set(limiter, "client", &params);
	if (rule < 0)
		errx(1, "rule client: %s", shmlimit_strerror(rule));
	listener = listen_on(argv[2]);
	for (int i = 0; i < WORKERS; i++)
		start_worker(limiter, rule, listener);
	/* A worker that is killed at any instruction leaves nothing to repair: start another. */
	while (wait(NULL) > 0)
		start_worker(limiter, rule, listener);
	return 0;
}
