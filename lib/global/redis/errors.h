/*
 * errors: what can be wrong with a backend, or with a key there, and its text. Pure.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef GLOBAL_ERRORS_H
#define GLOBAL_ERRORS_H

#include <stddef.h>

enum backend_error_kind {
	ERROR_NONE,
	ERROR_LOST,      /* no connection, or it broke: `error` says why */
	ERROR_LATE,      /* no answer by the deadline */
	ERROR_CONNECTED, /* connecting left less of the deadline than an answer takes: nothing was asked */
	ERROR_REFUSED,   /* user, password or permission */
	ERROR_OLD,       /* neither Redis 6 nor Valkey */
	ERROR_DATABASE,  /* SELECT */
	ERROR_BUSY,      /* there, but it does not write now: loading, no memory, no disk */
	ERROR_REPLICA,   /* a replica, perhaps since a failover: the connection is shut */
	ERROR_UNKNOWN,   /* a sentinel does not know the primary's name */
	ERROR_SENTINEL,  /* a sentinel where a server should be */
	ERROR_SERVER,    /* a server where a sentinel should be */
	ERROR_TLS,       /* no agreement, or a certificate was refused: `said` has the reason */
	ERROR_REPLY,     /* an invalid answer */
	ERROR_KEY,       /* the key has another type there */
	ERROR_EXACT,     /* the rule's numbers are too large for the backend: the question is not sent */
	ERROR_MOVED,     /* the key is on another node of the cluster: `said` names it */
	ERROR_SCRIPT,    /* the server does not have the script */
	ERROR_WAITED,    /* another process asked, and had no answer by the deadline */
	ERROR_AGENT,     /* there is no agent, and a handle that does not wait cannot ask without one */
	ERROR_EVICTS,    /* a warning: it may drop keys, by the maxmemory-policy that `said` names */
	ERROR_KINDS,
};

struct backend_error {
	enum backend_error_kind kind;
	int error;      /* LOST: a negative errno value */
	char said[160]; /* the backend's text, printable, or "" */
	enum {
		ERROR_OF_HOME,  /* the URL's server failed */
		ERROR_OF_NODE,  /* another node of a cluster did */
		ERROR_OF_KNOWN, /* the same, as it did before; perhaps it was not asked now */
	} at;
};

/* Is it an error of one key, while the backend works? */
int backend_error_is_of_key(const struct backend_error *failure);

/* Copy a backend's text, as far as it fits, with unprintable characters replaced. */
void backend_error_copy(char *to, size_t size, const char *from, size_t len);

/* What an error reply of the backend means. */
struct backend_error backend_error_of_reply(const char *text, size_t len);

/* Returns the -errno that shmlimit_global_ping() returns for it. */
int backend_error_errno(const struct backend_error *failure);

/* Returns the text of a positive errno value that backend_error_errno() returns. */
const char *backend_error_strerror(int error);

/* Write one line: what is wrong, and how to correct it. Returns `text`. */
#define BACKEND_ERROR_TEXT_MAX 512
const char *backend_error_text(const struct backend_error *failure, char text[BACKEND_ERROR_TEXT_MAX]);

#endif
