/*
 * trouble: errors of a backend, or of a key there, and their texts. Pure.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef GLOBAL_TROUBLE_H
#define GLOBAL_TROUBLE_H

#include <stddef.h>

enum trouble_kind {
	TROUBLE_NONE,
	TROUBLE_LOST,      /* no connection, or it broke: `error` says why */
	TROUBLE_LATE,      /* no answer by the deadline */
	TROUBLE_CONNECTED, /* connecting left less of the deadline than an answer takes: nothing was asked */
	TROUBLE_REFUSED,   /* user, password or permission */
	TROUBLE_OLD,       /* neither Redis 6 nor Valkey */
	TROUBLE_DATABASE,  /* SELECT */
	TROUBLE_BUSY,      /* there, but it does not write now: loading, no memory, no disk */
	TROUBLE_REPLICA,   /* a replica, perhaps since a failover: the connection is shut */
	TROUBLE_UNKNOWN,   /* a sentinel does not know the primary's name */
	TROUBLE_SENTINEL,  /* a sentinel where a server should be */
	TROUBLE_TLS,       /* no agreement, or a certificate was refused: `said` has the reason */
	TROUBLE_REPLY,     /* an invalid answer */
	TROUBLE_KEY,       /* the key has another type there */
	TROUBLE_MIXED,     /* the key's funnel has a newer rule's parameters; the question was served all the same */
	TROUBLE_EXACT,     /* the rule's numbers are too large for the backend: the question is not sent */
	TROUBLE_MOVED,     /* the key is on another node of the cluster: `said` names it */
	TROUBLE_SCRIPT,    /* the server does not have the script */
	TROUBLE_WAITED,    /* another process asked, and had no answer by the deadline */
	TROUBLE_AGENT,     /* there is no agent, and a handle that does not wait cannot ask without one */
	TROUBLE_KINDS,
};

struct trouble {
	enum trouble_kind kind;
	int error;      /* LOST: a negative errno value */
	char said[160]; /* the backend's text, printable, or "" */
};

/* Is it an error of one key, while the backend works? */
int trouble_is_of_key(const struct trouble *trouble);

/* Copy a backend's text, as far as it fits, with unprintable characters replaced. */
void trouble_copy(char *to, size_t size, const char *from, size_t len);

/* The trouble that an error reply of the backend means. */
struct trouble trouble_of_reply(const char *text, size_t len);

/* Returns the -errno that shmlimit_global_ping() returns for it. */
int trouble_errno(const struct trouble *trouble);

/* Returns the text of a positive errno value that trouble_errno() returns. */
const char *trouble_strerror(int error);

/* Write one line: what is wrong, and how to correct it. Returns `text`. */
#define TROUBLE_TEXT_MAX 512
const char *trouble_text(const struct trouble *trouble, char text[TROUBLE_TEXT_MAX]);

#endif
