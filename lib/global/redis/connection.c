/*
 * connection: see connection.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "connection.h"

uint64_t monotonic_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/*
 * Wait until the socket is ready for `events` or has failed. The next call on the socket returns
 * the failure.
 */
static int await(const struct connection *connection, short events, uint64_t until_ns)
{
	for (;;) {
		struct pollfd pollfd = { .fd = connection->fd, .events = events };
		uint64_t now_ns = monotonic_now_ns(), left_ns = until_ns > now_ns ? until_ns - now_ns : 0;
		struct timespec left = { (time_t)(left_ns / 1000000000u), (long)(left_ns % 1000000000u) };
		int n = ppoll(&pollfd, 1, &left, NULL);

		if (n > 0)
			return 0;
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n == 0 && left_ns == 0)
			return -ETIMEDOUT;
	}
}

/*
 * An idle connection is tested after a minute, and is shut after another one without an answer. So
 * a peer that is gone is noticed before a request needs it, and a firewall does not forget the
 * connection.
 */
static void keep_alive(int fd)
{
	static const struct {
		int level, name, value;
	} options[] = {
		{ SOL_SOCKET, SO_KEEPALIVE, 1 },
		{ IPPROTO_TCP, TCP_KEEPIDLE, 60 },
		{ IPPROTO_TCP, TCP_KEEPINTVL, 15 },
		{ IPPROTO_TCP, TCP_KEEPCNT, 4 },
	};

	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		setsockopt(fd, options[i].level, options[i].name, &options[i].value, sizeof(int));
}

static int start_connecting(struct connection *connection, int family, const struct sockaddr *address, socklen_t len)
{
	int on = 1;

	connection->since_ns = monotonic_now_ns();
	connection->fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (connection->fd < 0)
		return -errno;
	if (family != AF_UNIX) {
		setsockopt(connection->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		keep_alive(connection->fd);
	}
	/* A Unix socket returns EAGAIN while its queue of connections is full. */
	if (connect(connection->fd, address, len) == 0)
		connection->connected = 1;
	else if (errno != EINPROGRESS)
		return errno == EAGAIN ? -ETIMEDOUT : -errno;
	return 0;
}

static int start_unix(struct connection *connection, const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	_Static_assert(sizeof(address.sun_path) == sizeof(((struct url *)0)->path), "url.h has sun_path's length");
	strcpy(address.sun_path, path);
	return start_connecting(connection, AF_UNIX, (const struct sockaddr *)&address, sizeof(address));
}

int connection_resolver_error(int error)
{
	if (error == EAI_SYSTEM)
		return -errno;
	return error == EAI_AGAIN ? -EAGAIN : error == EAI_MEMORY ? -ENOMEM : -EADDRNOTAVAIL;
}

/* Start with the first remaining address that does not fail at once. */
static int start_next(struct connection *connection)
{
	int error = -EADDRNOTAVAIL;

	while (connection->next != NULL) {
		const struct addrinfo *a = connection->next;

		if (connection->fd >= 0)
			close(connection->fd);
		connection->next = a->ai_next;
		error = start_connecting(connection, a->ai_family, a->ai_addr, a->ai_addrlen);
		if (error == 0)
			break;
	}
	return error;
}

static int start_host(struct connection *connection, const struct url *url, struct addrinfo *found)
{
	struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
	int error = 0;

	connection->found = found;
	if (found == NULL)
		error = getaddrinfo(url->host, url->port, &hints, &connection->found);
	if (error != 0)
		return connection_resolver_error(error);
	connection->next = connection->found;
	return start_next(connection);
}

int connection_connect(struct connection *connection, const struct url *url, struct addrinfo *found)
{
	int error;

	connection_shut(connection);
	connection->reader = redisReaderCreate();
	if (connection->reader == NULL) {
		if (found != NULL)
			freeaddrinfo(found);
		return -ENOMEM;
	}
	error = url->path[0] != '\0' ? start_unix(connection, url->path) : start_host(connection, url, found);
	if (error == 0 && url->tls)
		error = tls_begin(&connection->tls, &connection->fd, url, connection->why);
	/* The reason is kept. */
	if (error != 0 && error != -EKEYREJECTED)
		connection_shut(connection);
	return error;
}

/* BOUND: the messages of a handshake, which OpenSSL limits, and the deadline. */
static int secure(struct connection *connection, uint64_t until_ns)
{
	int error = 0;

	while (error == 0) {
		short events = 0;

		error = tls_handshake(connection->tls, &events, connection->why);
		if (error == 0)
			break;
		if (error == -EAGAIN)
			error = await(connection, events, until_ns);
	}
	connection->secured = error == 0;
	return error;
}

int connection_connected(struct connection *connection, uint64_t until_ns)
{
	/* BOUND: each round but the last is another address. */
	while (!connection->connected) {
		uint64_t enough_ns = connection->since_ns + CONNECTION_PATIENCE_NS;
		socklen_t len = sizeof(int);
		int refused = 0, has_other = connection->next != NULL;
		int error = await(connection, POLLOUT, has_other && enough_ns < until_ns ? enough_ns : until_ns);

		if (error == 0 && getsockopt(connection->fd, SOL_SOCKET, SO_ERROR, &refused, &len) != 0)
			error = -errno;
		if (error == 0)
			error = -refused;
		connection->connected = error == 0;
		if (error != 0 && has_other && (error != -ETIMEDOUT || monotonic_now_ns() >= enough_ns))
			error = start_next(connection);
		if (error != 0)
			return error;
	}
	if (connection->found != NULL)
		freeaddrinfo(connection->found);
	connection->found = connection->next = NULL;
	return connection->tls != NULL && !connection->secured ? secure(connection, until_ns) : 0;
}

ssize_t connection_write(struct connection *connection, const char *bytes, size_t len)
{
	ssize_t n;

	if (connection->tls != NULL) {
		n = tls_write(connection->tls, bytes, len, connection->why);
		return n == -EAGAIN ? 0 : n;
	}
	do {
		n = send(connection->fd, bytes, len, MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	if (n >= 0)
		return n;
	return errno == EAGAIN ? 0 : errno == ECONNRESET ? -EPIPE : -errno;
}

int connection_send(struct connection *connection, const char *bytes, size_t len, uint64_t until_ns)
{
	while (len > 0) {
		ssize_t n = connection_write(connection, bytes, len);

		if (n < 0)
			return (int)n;
		bytes += n;
		len -= (size_t)n;
		if (n > 0)
			continue;
		n = await(connection, POLLOUT, until_ns);
		if (n != 0)
			return (int)n;
	}
	return 0;
}

static void begin_line(struct connection_check *c, char type)
{
	c->type = type;
	c->is_negative = 0;
	c->number = c->line = 0;
}

/* A line is complete. A length of -1 (nil) has no text or list after it. */
static void end_line(struct connection_check *c)
{
	if (c->type == '$' && !c->is_negative)
		c->skip = c->number + 2;
	c->type = 0;
}

/*
 * WHY NOT leave this to hiredis: it stores a text of any length until memory is exhausted,
 * allocates a list when its length is announced, and waits for the rest of both until the deadline.
 */
int connection_check(struct connection_check *c, const char *bytes, size_t len)
{
	c->reply += len;
	for (size_t i = 0; i < len; i++) {
		if (c->skip != 0) {
			size_t n = c->skip < len - i ? (size_t)c->skip : len - i;

			c->skip -= n;
			i += n - 1;
			continue;
		}
		c->line++;
		if (c->type == 0) {
			begin_line(c, bytes[i]);
		} else if (bytes[i] == '\n') {
			end_line(c);
		} else if ((c->type == '$' || c->type == '*') && bytes[i] >= '0' && bytes[i] <= '9') {
			c->number = 10 * c->number + (uint64_t)(bytes[i] - '0');
		} else if (bytes[i] == '-') {
			c->is_negative = 1;
		}
		if (c->number > CONNECTION_ITEM_MAX || c->line > CONNECTION_ITEM_MAX)
			return -EBADMSG;
	}
	return c->reply > CONNECTION_REPLY_MAX ? -EBADMSG : 0;
}

/* Returns the bytes read, 0 if there are none now, or -errno. */
static ssize_t read_bytes(struct connection *connection, char *bytes, size_t size)
{
	ssize_t n;

	if (connection->tls != NULL) {
		n = tls_read(connection->tls, bytes, size, connection->why);
		return n == -EAGAIN ? 0 : n;
	}
	n = recv(connection->fd, bytes, size, 0);
	if (n == 0 || (n < 0 && errno == ECONNRESET))
		return -EPIPE;
	if (n < 0)
		return errno == EINTR || errno == EAGAIN ? 0 : -errno;
	return n;
}

/* Feed the bytes that have arrived to the reader. */
static int feed(struct connection *connection)
{
	char buffer[4096];
	ssize_t n = read_bytes(connection, buffer, sizeof(buffer));

	if (n <= 0)
		return (int)n;
	if (connection_check(&connection->check, buffer, (size_t)n) != 0)
		return -EBADMSG;
	return redisReaderFeed(connection->reader, buffer, (size_t)n) == REDIS_OK ? 0 : -ENOMEM;
}

int connection_receive(struct connection *connection, redisReply **reply, uint64_t until_ns)
{
	void *got = NULL;
	int error = 0;

	while (error == 0) {
		if (redisReaderGetReply(connection->reader, &got) != REDIS_OK)
			return -EBADMSG;
		if (got != NULL) {
			connection->check.reply = 0;
			break;
		}
		if (!tls_is_pending(connection->tls))
			error = await(connection, POLLIN, until_ns);
		if (error == 0)
			error = feed(connection);
	}
	*reply = got;
	return error;
}

void connection_shut(struct connection *connection)
{
	tls_end(connection->tls);
	if (connection->fd >= 0)
		close(connection->fd);
	if (connection->reader != NULL)
		redisReaderFree(connection->reader);
	if (connection->found != NULL)
		freeaddrinfo(connection->found);
	*connection = (struct connection)CONNECTION_SHUT;
}
