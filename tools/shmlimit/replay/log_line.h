/*
 * log_line.h: a line of a web server's log, in the common, combined or vhost_combined format, or a JSON object, with or
 * without what syslog, the journal or a container's log puts before it.
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
	struct span addr; /* the client: an address, a list as in X-Forwarded-For, or a name */
	struct span user,
		path; /* the user may be empty, or "-": there is none; of the line's bytes, or of its JSON's; the path without its query */
	int64_t bytes; /* of the response's body; -1: not known */
	void *json;    /* keeps those of JSON; else NULL */
};

/* Takes `len` bytes apart, without their newline. Returns 1: log_line_free() must follow; or 0: not such a line. */
int log_line_parse(const char *text, size_t len, struct log_line *out);
void log_line_free(struct log_line *line);
/* What a line has under that name: user, path, addr, or a member of its JSON. Empty: it has none. */
struct span log_field(const struct log_line *line, const char *name);

/* log_text.c: a line that is no JSON. Returns 0 if it is not understood. */
int log_text_parse(struct span line, struct log_line *out);
/* What is behind that which syslog and the like put before a line. */
struct span log_prefix_skip(struct span line);
/* Is it an address, or a list that has one? An address may be a net, as in logs without full addresses: 203.0.113.0/24. */
int log_is_address(struct span text);
struct span log_net_address(struct span text, int *bits); /* without the /24, which *bits becomes; -1: none */

/* json_line.c: the same of a line that begins with a brace. */
int json_line_parse(struct span line, struct log_line *out);
struct span json_line_field(const void *json, const char *name);

/* What both kinds have: the path of a request line; a path without its query. */
#define LOG_BYTES_MAX (INT64_C(1) << 48)
struct span log_path_of(struct span request);
struct span log_path_cut(struct span path);

#endif
