/*
 * log_line.h: a line of a web server's log, in the common, combined or vhost_combined format.
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
	struct span addr, user, path;          /* of the line's bytes; the path without its query */
};

/* Takes `len` bytes apart, without their newline. Returns 1, or 0: not such a line. */
int log_line_parse(const char *text, size_t len, struct log_line *out);

#endif
