/*
 * wire: bytes to an engine and replies from it, each by a deadline. hiredis has
 * the protocol; the socket is ours. WHY NOT hiredis's own: its calls know
 * time-outs of single reads and no deadline, and a peer that is gone is SIGPIPE
 * to the program.
 *
 * A deadline, until_ns, is a time of CLOCK_MONOTONIC. Functions return 0 or a
 * negative errno value: -ETIMEDOUT at the deadline, -EPIPE when the engine has
 * shut the connection, -EBADMSG when it does not speak the protocol, or announces
 * or sends more than any real reply has.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef GLOBAL_WIRE_H
#define GLOBAL_WIRE_H

#include <hiredis/hiredis.h>
#include <stddef.h>
#include <stdint.h>

#include "url.h"

struct addrinfo;

/* Who does not get through to an address in this time tries another: two round trips around the world. */
#define WIRE_PATIENCE_NS UINT64_C(500000000)

/* The largest real reply lists the keys of one step of SCAN, some 512 of up to 1,200 bytes. */
#define WIRE_ITEM_MAX 65536u           /* bytes of one text or line, elements of one list */
#define WIRE_REPLY_MAX (8u << 20)      /* bytes of one reply */

/* How far the bytes received have been checked. */
struct wire_check {
	char type;             /* of the line that is being received: '+', '-', ':', '$', '*'; 0: none has begun */
	int is_negative;
	uint64_t number;       /* what it announces so far */
	uint64_t line;         /* its bytes so far */
	uint64_t skip;         /* bytes of a text still to come, with its end of line */
	uint64_t reply;        /* bytes since a complete reply */
};

struct wire {
	int fd;                /* -1: shut */
	int connected;
	uint64_t since_ns;     /* when the address was first tried that it is now */
	redisReader *reader;
	struct wire_check check;
	struct addrinfo *found, *next; /* while it connects: a host's addresses, and those not tried yet */
};

#define WIRE_SHUT { .fd = -1 }

uint64_t wire_now_ns(void);

/*
 * Begin to connect; wire_connected() waits for it, and may be called again after
 * -ETIMEDOUT. A host's name is looked up here, for as long as the system's
 * resolver takes; its addresses are tried in their order, the next when one refuses
 * or says nothing.
 */
int wire_connect(struct wire *wire, const struct url *url);
int wire_connected(struct wire *wire, uint64_t until_ns);

int wire_send(struct wire *wire, const char *bytes, size_t len, uint64_t until_ns);

/* Check the next bytes received. Returns 0 or -EBADMSG. */
int wire_check(struct wire_check *check, const char *bytes, size_t len);

/* After -ETIMEDOUT it may be called again. *reply is the caller's to free. */
int wire_receive(struct wire *wire, redisReply **reply, uint64_t until_ns);

/* Shut it, if it isn't. A child that was forked may: its parent's connection stays. */
void wire_shut(struct wire *wire);

#endif
