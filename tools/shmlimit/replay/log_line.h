/*
 * log_line.h: a line of a web server's log, in the common, combined or vhost_combined format, or a JSON object.
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
	int64_t unix_s;
	struct span addr, user, path; /* of the line's bytes, or of its JSON's; the path without its query */
	int64_t bytes;                /* of the response's body; -1: not known */
	void *json;                   /* keeps those of JSON; else NULL */
};

/* Takes `len` bytes apart, without their newline. Returns 1: log_line_free() must follow; or 0: not such a line. */
int log_line_parse(const char *text, size_t len, struct log_line *out);
void log_line_free(struct log_line *line);

/* json_line.c: the same of a line that begins with a brace. */
int json_line_parse(const char *text, size_t len, struct log_line *out);

/* What both kinds have: a time of LOG_TIME_LEN bytes; the path of a request line; a path without its query. */
#define LOG_TIME_LEN (sizeof("21/Nov/2026:09:22:45 +0100") - 1)
#define LOG_TIME_MAX INT64_C(16725225600) /* the year 2500: its nanoseconds still fit into 64 bits */
#define LOG_BYTES_MAX (INT64_C(1) << 48)
int log_time_parse(const char *text, int64_t *unix_s);
struct span log_path_of(struct span request);
struct span log_path_cut(struct span path);

#endif
