/*
 * backend: one connection to a Redis or Valkey server. Each call has a deadline. It connects when
 * it is first used, authenticates, reads the server's version, mode and role, and loads the script.
 * A forked child opens a connection of its own. If the URL has several hosts, the first one that
 * can be used is, and the next ones if it fails. If these are sentinels, each connection begins
 * with the question to one of them where the primary is.
 *
 * Threads: one at a time. Calls that can fail return 0, or 1 with *failure filled.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef GLOBAL_BACKEND_H
#define GLOBAL_BACKEND_H

#include <sys/types.h>

#include "script.h"
#include "errors.h"
#include "connection.h"

#define BACKEND_SHA_MAX 41

struct backend {
	struct url url;
	struct url primary; /* as a sentinel named it; host "": not asked for yet */
	struct connection connection;
	pid_t pid;           /* the process that opened the connection */
	int greeting;        /* GREETING_...: the next reply of the greeting */
	int ready;           /* greeted: commands may be sent */
	uint64_t greeted_ns; /* when the greeting was sent */
	int used;            /* it has answered a command since */
	unsigned refused;    /* hosts of the URL in a row that could not be used */
	char version[24], mode[16], role[16];
	char evicts[24]; /* its maxmemory-policy, if that drops keys; "" if not, or if it is not known */
	char sha[BACKEND_SHA_MAX];
	uint64_t commands;      /* scripts that were asked for */
	struct addrinfo *found; /* addresses to connect to; NULL: look them up */
	/* Of a cluster's node: failures in a row, the last one, and until when it is left alone. */
	unsigned failures;
	struct backend_error failure;
	uint64_t open_until_ns;
};

/* Commands that are still to be sent. The owner frees `bytes`. */
struct outbox {
	char *bytes;
	size_t len;
	int failed; /* out of memory */
};

/*
 * A lease from one key's funnel, or an addition to its count, and the outcome. An addition has no
 * `params`: `want` is added, up to `need` in all; `leased` was added, and `left` is the count,
 * which ends after full_us.
 */
struct backend_question {
	const struct script_params *params;
	const void *key; /* its name on the backend */
	size_t key_len;
	uint64_t need, want, most;    /* as the script has them */
	uint64_t ttl_ms;              /* of a count that begins */
	int saturate;                 /* of a count: add what fits */
	uint64_t host, number;        /* of an addition: two with both in common count once */
	unsigned keep;                /* how many numbers of the host are kept beside the count */
	int ask_first;                /* send ASKING first: the cluster is moving the key */
	struct backend_error failure; /* the outcome; unless it is NONE, the rest is not set */
	uint64_t leased, left, full_us;
	uint64_t lasts_us; /* how long the lease lasts; 0: as long as leases of the rule do */
	uint64_t retry_us; /* 0: leased; UINT64_MAX: it never fits */
};

void backend_begin(struct backend *backend, const struct url *url);
void backend_end(struct backend *backend);

/* Connect, unless it is connected. */
int backend_ready(struct backend *backend, uint64_t until_ns, struct backend_error *failure);

/*
 * The same in steps. BACKEND_GO_ON: the next step connects to the host of backend_url(). The caller
 * may set `found`, its addresses, before.
 */
enum backend_step {
	BACKEND_READY,
	BACKEND_FAILED, /* *failure is filled; if that is LATE the attempt goes on with the next call */
	BACKEND_GO_ON,
};
enum backend_step backend_step(struct backend *backend, uint64_t until_ns, struct backend_error *failure);

/* The URL of what it is or will be connected to: the server in use, or a sentinel. */
const struct url *backend_url(const struct backend *backend);

/* This host cannot be used. Returns BACKEND_GO_ON, or _FAILED after the last of the URL's hosts. */
enum backend_step backend_refuse(struct backend *backend);

/*
 * Send n questions in one go. If the connection fails, each question without an answer gets one
 * that is not of a key. The server may have carried such a question out: its tokens are lost.
 */
void backend_lease(struct backend *backend, struct backend_question *questions, size_t n, uint64_t until_ns);

/*
 * Shut the connection, if there is one. backend_leave() also makes the next host of the URL the one
 * in use.
 */
void backend_shut(struct backend *backend);
void backend_leave(struct backend *backend);

/* What an -errno of the connection means, before that is shut. */
struct backend_error backend_error_of(const struct backend *backend, int error);

/*
 * The two halves of backend_lease(). backend_put() appends a question to what is to be sent, with
 * the script's hash or its text. backend_answer() fills it from the reply. If ask_first is set, the
 * reply to ASKING comes before that reply.
 */
void backend_put(const struct backend *backend, struct outbox *out, const struct backend_question *question,
                 int with_text);
void backend_answer(const redisReply *reply, struct backend_question *question);

/*
 * Find a value in the text of INFO, whose lines are NAME:VALUE. Returns NULL if it is not there, or
 * the text is NULL.
 */
const char *backend_info(const char *text, const char *name);

/* The words of a command; lens NULL: they are strings. */
struct backend_words {
	int n;
	const char **words;
	const size_t *lens;
};

/* Send any command. The caller frees *reply. An error reply fills *failure. */
int backend_command(struct backend *backend, const struct backend_words *command, uint64_t until_ns, redisReply **reply,
                    struct backend_error *failure);

#endif
