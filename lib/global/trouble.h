/*
 * trouble: what can be wrong with an engine or a key there, and how it is said.
 * Pure.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef GLOBAL_TROUBLE_H
#define GLOBAL_TROUBLE_H

#include <stddef.h>

enum trouble_kind {
	TROUBLE_NONE,
	TROUBLE_LOST,          /* no connection, or it broke: `error` says why */
	TROUBLE_LATE,          /* no answer by the deadline */
	TROUBLE_CONNECTED,     /* connecting left less of the deadline than an answer takes: nothing was asked */
	TROUBLE_REFUSED,       /* user, password or permission */
	TROUBLE_OLD,           /* neither Redis 6 nor Valkey */
	TROUBLE_DATABASE,      /* SELECT */
	TROUBLE_BUSY,          /* there, but it does not write now: loading, no memory, no disk */
	TROUBLE_REPLICA,       /* a replica, perhaps since a failover: the connection is shut */
	TROUBLE_REPLY,         /* says what nobody expects */
	TROUBLE_KEY,           /* the key is something else there */
	TROUBLE_MIXED,         /* the key's funnel has a newer rule's terms; it was asked all the same */
	TROUBLE_EXACT,         /* the rule's numbers are too large for the engine: never sent */
	TROUBLE_MOVED,         /* the key is on another node of the cluster: `said` has which */
	TROUBLE_SCRIPT,        /* the script is not there */
	TROUBLE_WAITED,        /* another process was asking, and has no answer yet */
	TROUBLE_KINDS,
};

struct trouble {
	enum trouble_kind kind;
	int error;             /* LOST: a negative errno value */
	char said[160];        /* the engine's words, printable, or "" */
};

/* Is it about one key, the engine being well? */
int trouble_is_of_key(const struct trouble *trouble);

/* Copy what an engine says, as far as there is room: on a terminal it only prints. */
void trouble_copy(char *to, size_t size, const char *from, size_t len);

/* From an error reply of the engine. */
struct trouble trouble_of_reply(const char *text, size_t len);

/* As -errno: what shmlimit_global_ping() returns. */
int trouble_errno(const struct trouble *trouble);

/* One line: what is wrong, and what would be right. Returns `text`. */
#define TROUBLE_TEXT_MAX 512
const char *trouble_text(const struct trouble *trouble, char text[TROUBLE_TEXT_MAX]);

#endif
