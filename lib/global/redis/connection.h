/*
 * connection: sends bytes to a backend server and receives replies, each by a deadline. hiredis
 * parses the protocol; the socket is opened here. WHY NOT hiredis's own: it has a timeout per read
 * but no deadline, and writing to a closed connection raises SIGPIPE in the program.
 *
 * A deadline, until_ns, is a time of CLOCK_MONOTONIC. Functions return 0 or a negative errno value:
 * -ETIMEDOUT at the deadline, -EPIPE if the server has shut the connection, -EKEYREJECTED if TLS
 * fails, -EBADMSG if it does not speak the protocol, or announces or sends more than any real reply
 * has.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef GLOBAL_CONNECTION_H
#define GLOBAL_CONNECTION_H

#include <hiredis/hiredis.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "tls.h"
#include "url.h"

struct addrinfo;

/*
 * If an address does not answer within this time the next one is tried. It is two round trips
 * around the world.
 */
#define CONNECTION_PATIENCE_NS UINT64_C(500000000)

/* The largest real reply lists the keys of one step of SCAN, some 512 of up to 1,200 bytes. */
#define CONNECTION_ITEM_MAX 65536u      /* bytes of one text or line, elements of one list */
#define CONNECTION_REPLY_MAX (8u << 20) /* bytes of one reply */

/* How far the bytes received have been checked. */
struct connection_check {
	char type; /* type of the line being received: '+', '-', ':', '$', '*'; 0: no line has begun */
	int is_negative;
	uint64_t number; /* the number it announces, as far as received */
	uint64_t line;   /* bytes of the line so far */
	uint64_t skip;   /* bytes of a text that are still to come, including its end of line */
	uint64_t reply;  /* bytes since a complete reply */
};

struct connection {
	int fd; /* -1: shut */
	int connected;
	uint64_t since_ns; /* when the present address was first tried */
	redisReader *reader;
	struct connection_check check;
	struct tls *tls;               /* NULL: without TLS */
	int secured;                   /* its handshake is over */
	char why[TLS_WHY_MAX];         /* -EKEYREJECTED: the reason */
	struct addrinfo *found, *next; /* while it connects: a host's addresses, and those not tried yet */
};

#define CONNECTION_SHUT \
	{ \
		.fd = -1 \
	}

uint64_t monotonic_now_ns(void);

/*
 * Begin to connect. connection_connected() waits for it, and may be called again after -ETIMEDOUT.
 * A host name is looked up here, for as long as the system's resolver takes. Its addresses are
 * tried in order: the next one if one refuses or does not answer. If `found` is not NULL, those
 * addresses are used instead, and freed. TLS begins when one has answered. The connection must not
 * be moved in memory.
 */
int connection_connect(struct connection *connection, const struct url *url, struct addrinfo *found);
int connection_connected(struct connection *connection, uint64_t until_ns);

/* Returns an error of getaddrinfo() as -errno. */
int connection_resolver_error(int error);

/* Send as much as the socket takes now. Returns the bytes sent, 0 if it takes none, or -errno. */
ssize_t connection_write(struct connection *connection, const char *bytes, size_t len);

int connection_send(struct connection *connection, const char *bytes, size_t len, uint64_t until_ns);

/* Check the next bytes received. Returns 0 or -EBADMSG. */
int connection_check(struct connection_check *check, const char *bytes, size_t len);

/* Receive a reply, which the caller frees. May be called again after -ETIMEDOUT. */
int connection_receive(struct connection *connection, redisReply **reply, uint64_t until_ns);

/* Shut the connection, if it is open. In a forked child the parent's connection stays open. */
void connection_shut(struct connection *connection);

#endif
