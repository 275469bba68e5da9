/*
 * engine: one connection to a Redis or Valkey server. Each call has a deadline. It connects when it is first used,
 * authenticates, reads the server's version, mode and role, and loads the script. A forked child opens a connection
 * of its own.
 *
 * Threads: one at a time. Calls that can fail return 0, or 1 with *trouble filled.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef GLOBAL_ENGINE_H
#define GLOBAL_ENGINE_H

#include <sys/types.h>

#include "script.h"
#include "trouble.h"
#include "wire.h"

#define ENGINE_SHA_MAX 41

struct engine {
	struct url url;
	struct wire wire;
	pid_t pid;             /* the process that opened the connection */
	int greeting;          /* GREETING_...: the next reply of the greeting */
	int ready;             /* greeted: commands may be sent */
	uint64_t greeted_ns;   /* when the greeting was sent */
	int used;              /* it has answered a command since */
	char version[24], mode[16], role[16];
	char sha[ENGINE_SHA_MAX];
	uint64_t commands;     /* scripts that were asked for */
	struct addrinfo *found; /* the next connection's addresses; NULL: they are looked up when it begins */
};

/* Commands that are still to be sent. The owner frees `bytes`. */
struct outbox {
	char *bytes;
	size_t len;
	int failed;            /* out of memory */
};

/* A lease from one key's funnel, and its outcome. */
struct engine_question {
	const struct script_params *params;
	const void *key;       /* its name on the backend */
	size_t key_len;
	uint64_t need, want;   /* as the script has them */
	int ask_first;         /* send ASKING first: the cluster is moving the key */
	struct trouble trouble; /* the outcome begins here; if it is not NONE, the members below are not set */
	uint64_t leased, left, full_us;
	int older;             /* this host's rule is older than the one in force */
	uint64_t retry_us;     /* 0: leased; UINT64_MAX: it never fits */
};

void engine_begin(struct engine *engine, const struct url *url);
void engine_end(struct engine *engine);

/* Connect, unless it is connected. */
int engine_ready(struct engine *engine, uint64_t until_ns, struct trouble *trouble);

/*
 * Send n questions in one go. If the connection fails, each question without an answer gets a trouble that is not of
 * a key. The server may have carried such a question out: its tokens are lost.
 */
void engine_lease(struct engine *engine, struct engine_question *questions, size_t n, uint64_t until_ns);

/* Shut the connection, if there is one. */
void engine_shut(struct engine *engine);

/* The trouble for an -errno of the connection. */
struct trouble engine_trouble(int error);

/*
 * The two halves of engine_lease(). engine_put() appends a question to what is to be sent, with the script's hash or
 * its text. engine_answer() fills it from the reply. If ask_first is set, the reply to ASKING comes before that
 * reply.
 */
void engine_put(const struct engine *engine, struct outbox *out, const struct engine_question *question, int with_text);
void engine_answer(const redisReply *reply, struct engine_question *question);

/* Send any command. The caller frees *reply. An error reply fills *trouble. */
int engine_command(struct engine *engine, int n, const char **words, const size_t *lens, uint64_t until_ns,
                   redisReply **reply, struct trouble *trouble);

#endif
