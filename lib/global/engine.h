/*
 * engine: one Redis or Valkey server, asked by a deadline. It connects when it
 * is asked, says who asks, looks at what the server is, and brings the script.
 * In a forked child it connects anew.
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
	pid_t pid;             /* whose connection it is */
	int greeting;          /* the reply that the greeting waits for: GREETING_... */
	int ready;             /* greeted: commands may be sent */
	uint64_t greeted_ns;   /* when the greeting was sent */
	int used;              /* it has answered since */
	char version[24], mode[16], role[16];
	char sha[ENGINE_SHA_MAX];
	uint64_t commands;     /* scripts that were asked for */
};

/* To lease from one key's funnel, and what became of it. */
struct engine_question {
	const struct script_terms *terms;
	const void *key;       /* as the engine has it */
	size_t key_len;
	uint64_t need, want;   /* as the script has them */
	int ask_first;         /* a cluster that is moving the key wants to be told so (ASKING) */
	struct trouble trouble; /* from here on it is filled: NONE, or nothing below is */
	uint64_t leased, left, full_us;
	int older;             /* the asker's rule is older than that in force */
	uint64_t retry_us;     /* 0: leased; UINT64_MAX: it never fits */
};

void engine_begin(struct engine *engine, const struct url *url);
void engine_end(struct engine *engine);

/* Connect, if it isn't. */
int engine_ready(struct engine *engine, uint64_t until_ns, struct trouble *trouble);

/*
 * Ask the script n questions in one go. Where no answer came the question may
 * have been carried out: its tokens are lost. All of them have then a trouble
 * that is not of their keys.
 */
void engine_lease(struct engine *engine, struct engine_question *questions, size_t n, uint64_t until_ns);

/* Any command: the caller frees *reply. An error reply is trouble. */
int engine_command(struct engine *engine, int n, const char **words, const size_t *lens, uint64_t until_ns,
                   redisReply **reply, struct trouble *trouble);

#endif
