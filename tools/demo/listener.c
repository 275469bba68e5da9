/*
 * listener: the one socket that all workers accept on.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <arpa/inet.h>
#include <err.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "listener.h"

int listener_open(unsigned *port)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (listener < 0) {
		warn("listening socket");
		return -1;
	}
	if (bind(listener, (const struct sockaddr *)&address, size) < 0 || listen(listener, SOMAXCONN) < 0 ||
	    getsockname(listener, (struct sockaddr *)&address, &size) < 0) {
		warn("listening on 127.0.0.1");
		close(listener);
		return -1;
	}
	*port = ntohs(address.sin_port);
	return listener;
}

int listener_announce(unsigned port, const char *path)
{
	char temporary[PATH_MAX];
	FILE *file;
	int bad;

	if (path == NULL) {
		if (printf("http://127.0.0.1:%u/\n", port) < 0 || fflush(stdout) != 0) {
			warn("stdout");
			return -1;
		}
		return 0;
	}
	if (snprintf(temporary, sizeof(temporary), "%s.%d", path, (int)getpid()) >= (int)sizeof(temporary)) {
		warnx("port file %s: the name is too long", path);
		return -1;
	}
	file = fopen(temporary, "w");
	if (file == NULL) {
		warn("port file %s", temporary);
		return -1;
	}
	bad = fprintf(file, "%u\n", port) < 0;
	bad |= fclose(file) != 0;
	if (bad || rename(temporary, path) < 0) {
		warn("port file %s", path);
		unlink(temporary);
		return -1;
	}
	return 0;
}
