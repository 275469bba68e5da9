/*
 * log_line.h: a line of a web server's log, in the common, combined or vhost_combined format, or a
 * JSON object, with or without what syslog, the journal or a container's log puts before it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef LOG_LINE_H
#define LOG_LINE_H

#include <stddef.h>
#include <stdint.h>

struct span {
	const char *at;
	size_t len;
};

struct log_line {
	int64_t unix_ns;
	/* These are of the line's bytes, or of its JSON's. What the line lacks is empty, or "-". */
	struct span addr; /* who connected: an address, a list as in X-Forwarded-For, or a name */
	struct span user;
	struct span path;   /* without its query */
	struct span method; /* of a line of text: see log_method() */
	int status;         /* as method; 0: not known */
	int64_t bytes;      /* of the response's body; -1: not known */
	struct span text;   /* the line without what is put before it; of JSON empty */
	void *json;         /* keeps the bytes of JSON; else NULL */
};

/*
 * Takes `len` bytes apart, without their newline. Returns 1: log_line_free() must follow; or 0: not
 * such a line.
 */
int log_line_parse(const char *text, size_t len, struct log_line *out);
void log_line_free(struct log_line *line);
/*
 * What a line has under that name: user, path, addr, a member of its JSON, or the number of a field
 * of text, from 1 on, or from the end: -1. A field is a word, or what is in quotes or brackets.
 * Empty: it has none.
 */
struct span log_field(const struct log_line *line, const char *name);
struct span log_method(const struct log_line *line);
int log_status(const struct log_line *line); /* of the response; 0: not known */
/*
 * log_client.c: the client of a request. That is the line's address, or what was forwarded where
 * that address is a proxy's: a private one, or of a Unix socket.
 */
struct span log_client(const struct log_line *line);
int log_is_proxy(struct span addr);
/* Has it an address that is not private, and could be a client's behind a proxy? */
int log_is_public(struct span text);
/*
 * What a proxy wrote: an address, or a list of them; and its name, as log_field() takes it. Empty:
 * nothing.
 */
#define LOG_NAME_MAX 96
struct span log_forwarded(const struct log_line *line, char name[LOG_NAME_MAX]);

/* log_text.c: a line that is no JSON. Returns 0 if it is not understood. */
int log_text_parse(struct span line, struct log_line *out);
/* What is behind that which syslog and the like put before a line. */
struct span log_prefix_skip(struct span line);
/*
 * Is it an address, or a list that has one? An address may be a net, as in logs without full
 * addresses: 203.0.113.0/24.
 */
int log_is_address(struct span text);
struct span log_text_field(struct span text, long n);
/*
 * The nth element of a list; of one as in the field Forwarded, what is behind its "for=". Returns
 * 0: it has none.
 */
int log_element(struct span list, int nth, struct span *element);
long log_text_forwarded(struct span text, struct span *forwarded); /* its number; 0: none */
struct span log_net_address(struct span text, int *bits);          /* without the /24, which *bits becomes; -1: none */

/* json_line.c: the same of a line that begins with a brace. */
int json_line_parse(struct span line, struct log_line *out);
struct span json_line_field(const void *json, const char *name);
struct span json_line_method(const void *json);
int json_line_status(const void *json);
struct span json_line_forwarded(const void *json, char *name, size_t size); /* and its name */

/* What both kinds have: the path of a request line; a path without its query. */
#define LOG_BYTES_MAX (INT64_C(1) << 48)
struct span log_path_of(struct span request);
struct span log_method_of(struct span request);
struct span log_path_cut(struct span path);

#endif
