/*
 * proxy: see proxy.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "proxy.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"
#include "rng.h"

#define CONNECTIONS_MAX 64
#define PIECE_MAX 65536

/* Bytes on their way. */
struct piece {
	struct piece *next;
	uint64_t due_ns;
	size_t len, sent;
	char bytes[];
};

/* One direction of a connection. */
struct way {
	int from, to;
	struct piece *first, *last;
};

static struct way ways[2 * CONNECTIONS_MAX]; /* there, and back, of each connection */
static unsigned count;

static int open_socket(const char *path, struct sockaddr_un *address)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	*address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (fd < 0 ||
	    (size_t)snprintf(address->sun_path, sizeof(address->sun_path), "%s", path) >= sizeof(address->sun_path))
		bench_fail(path, "no socket");
	return fd;
}

static void begin_connection(int listener, const char *to)
{
	struct sockaddr_un address;
	int client = accept(listener, NULL, NULL), server = open_socket(to, &address);

	if (client < 0 || count + 2 > 2 * CONNECTIONS_MAX ||
	    connect(server, (struct sockaddr *)&address, sizeof(address)) != 0) {
		close(client);
		close(server);
		return;
	}
	ways[count++] = (struct way){ .from = client, .to = server };
	ways[count++] = (struct way){ .from = server, .to = client };
}

/* The connection of ways[i] and ways[i + 1]. What is on its way is lost. */
static void end_connection(unsigned i)
{
	close(ways[i].from);
	close(ways[i].to);
	for (unsigned k = i; k < i + 2; k++)
		while (ways[k].first != NULL) {
			struct piece *gone = ways[k].first;

			ways[k].first = gone->next;
			free(gone);
		}
	count -= 2;
	ways[i] = ways[count];
	ways[i + 1] = ways[count + 1];
}

/* Take what has come. Returns false if the connection has ended. */
static int receive(struct way *way, uint64_t delay_ns)
{
	static char bytes[PIECE_MAX];
	ssize_t got = read(way->from, bytes, sizeof(bytes));
	struct piece *piece;

	if (got <= 0)
		return 0;
	piece = malloc(sizeof(*piece) + (size_t)got);
	if (piece == NULL)
		bench_fail("proxy", "no memory");
	*piece = (struct piece){ .due_ns = bench_ns() + delay_ns, .len = (size_t)got };
	memcpy(piece->bytes, bytes, (size_t)got);
	if (way->first == NULL) {
		way->first = piece;
	} else {
		way->last->next = piece;
		if (piece->due_ns < way->last->due_ns)
			piece->due_ns = way->last->due_ns;
	}
	way->last = piece;
	return 1;
}

/* Pass on what is due. Returns false if the connection has ended. */
static int pass_on(struct way *way)
{
	while (way->first != NULL && way->first->due_ns <= bench_ns()) {
		struct piece *piece = way->first;
		ssize_t sent = send(way->to, piece->bytes + piece->sent, piece->len - piece->sent, MSG_NOSIGNAL);

		if (sent < 0)
			return 0;
		piece->sent += (size_t)sent;
		if (piece->sent < piece->len)
			continue;
		way->first = piece->next;
		free(piece);
	}
	return 1;
}

/* BOUND: the benchmark's life. */
static _Noreturn void run(int listener, const char *to, const volatile struct proxy_terms *terms)
{
	struct pollfd fds[1 + 2 * CONNECTIONS_MAX];
	struct rng rng = { 1 };

	for (;;) {
		uint64_t now_ns = bench_ns(), next_ns = now_ns + 999999999;
		struct timespec pause;

		fds[0] = (struct pollfd){ .fd = listener, .events = POLLIN };
		for (unsigned i = 0; i < count; i++) {
			fds[1 + i] = (struct pollfd){ .fd = ways[i].from, .events = POLLIN };
			if (ways[i].first != NULL && ways[i].first->due_ns < next_ns)
				next_ns = ways[i].first->due_ns;
		}
		pause = (struct timespec){ 0, next_ns > now_ns ? (long)(next_ns - now_ns) : 0 };
		if (ppoll(fds, 1 + (nfds_t)count, &pause, NULL) < 0)
			continue;
		for (unsigned i = count; i-- > 0;) {
			uint64_t delay_ns = terms->delay_ns;
			int goes_on = 1;

			if (i % 2 != 0 && fds[1 + i].revents != 0 && rng_below(&rng, 1000) < terms->late_milli)
				delay_ns += terms->late_ns;
			if (fds[1 + i].revents != 0)
				goes_on = receive(&ways[i], delay_ns);
			if (goes_on && pass_on(&ways[i]))
				continue;
			end_connection(i & ~1u);
			break;
		}
		if (fds[0].revents != 0)
			begin_connection(listener, to);
	}
}

struct proxy proxy_start(const char *from, const char *to)
{
	struct proxy proxy = { .terms = mmap(NULL, sizeof(*proxy.terms), PROT_READ | PROT_WRITE,
		                             MAP_SHARED | MAP_ANONYMOUS, -1, 0) };
	struct sockaddr_un address;
	int listener = open_socket(from, &address);

	if (proxy.terms == MAP_FAILED || bind(listener, (struct sockaddr *)&address, sizeof(address)) != 0 ||
	    listen(listener, CONNECTIONS_MAX) != 0)
		bench_fail(from, "cannot be listened to");
	proxy.pid = fork();
	if (proxy.pid < 0)
		bench_fail("proxy", "fork");
	if (proxy.pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_TIMERSLACK, 1UL);
		run(listener, to, proxy.terms);
	}
	close(listener);
	return proxy;
}

void proxy_end(struct proxy *proxy)
{
	kill(proxy->pid, SIGKILL);
	waitpid(proxy->pid, NULL, 0);
	munmap(proxy->terms, sizeof(*proxy->terms));
}
