/*
 * worker: one process that serves.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <err.h>
#include <errno.h>
#include <limits.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "reply.h"
#include "worker.h"

#define IDLE_S 30u           /* a connection that is silent for longer is closed */
#define CONNECTIONS_MAX 512u /* of one worker: well below the usual limit of 1024 descriptors */

/*
 * Take one connection, no more: what else waits is for the other workers. That
 * is why accepting is not left to libmicrohttpd, which takes what it can get.
 */
static int accept_one(int listener, struct MHD_Daemon *http)
{
	struct sockaddr_in peer;
	socklen_t size = sizeof(peer);
	int connection = accept4(listener, (struct sockaddr *)&peer, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);

	/* Another worker was faster, or the client has left. */
	if (connection < 0)
		return errno == EAGAIN || errno == ECONNABORTED || errno == EINTR ? 0 : -1;
	/* libmicrohttpd closes what it doesn't take. */
	MHD_add_connection(http, connection, (const struct sockaddr *)&peer, size);
	return 0;
}

/* Milliseconds until libmicrohttpd has something to do even if nothing arrives; -1 = never. */
static int patience_ms(struct MHD_Daemon *http)
{
	MHD_UNSIGNED_LONG_LONG ms;

	if (MHD_get_timeout(http, &ms) != MHD_YES)
		return -1;
	return ms > INT_MAX ? INT_MAX : (int)ms;
}

int worker_run(int listener, struct gate *gate)
{
	enum { LISTENER, HTTP };
	struct pollfd ready[] = { [LISTENER] = { .fd = listener, .events = POLLIN }, [HTTP] = { .events = POLLIN } };
	struct MHD_Daemon *http;

	signal(SIGPIPE, SIG_IGN);
	if (gate->separate && gate_separate(gate) < 0)
		return EXIT_FAILURE;
	http = MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET, 0, NULL, NULL, reply_to_request, gate,
	                        MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, MHD_OPTION_CONNECTION_TIMEOUT, IDLE_S,
	                        MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS_MAX, MHD_OPTION_END);
	if (http == NULL) {
		warnx("worker: libmicrohttpd doesn't start");
		return EXIT_FAILURE;
	}
	ready[HTTP].fd = MHD_get_daemon_info(http, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
	for (;;) {
		if (poll(ready, 2, patience_ms(http)) < 0) {
			if (errno == EINTR)
				continue;
			warn("worker: poll");
			break;
		}
		if (ready[LISTENER].revents != 0 && accept_one(listener, http) < 0) {
			warn("worker: accept");
			break;
		}
		if (MHD_run(http) != MHD_YES) {
			warnx("worker: libmicrohttpd stopped");
			break;
		}
	}
	MHD_stop_daemon(http);
	return EXIT_FAILURE;
}
