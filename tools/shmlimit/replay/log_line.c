/*
 * log_line.c: a line of a log, of text or of JSON.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <stdlib.h>
#include <string.h>

#include "log_line.h"

static struct span from(struct span line, size_t n)
{
	return (struct span){ line.at + n, line.len - n };
}

/*
 * Without what is no part of it: NULs of a file that was cut while it was open, a byte order mark,
 * the line's end.
 */
static struct span bare(struct span line)
{
	while (line.len > 0 && *line.at == '\0')
		line = from(line, 1);
	if (line.len >= 3 && memcmp(line.at, "\xef\xbb\xbf", 3) == 0)
		line = from(line, 3);
	while (line.len > 0 && (line.at[line.len - 1] == '\r' || line.at[line.len - 1] == '\n'))
		line.len--;
	return line;
}

int log_line_parse(const char *text, size_t len, struct log_line *out)
{
	struct span line = bare((struct span){ text, len }), inner = log_prefix_skip(line);
	const char *brace;

	*out = (struct log_line){ .bytes = -1 };
	if (inner.len > 0 && *inner.at == '{')
		return json_line_parse(inner, out);
	if (log_text_parse(inner, out))
		return 1;
	/* Compose, and others, put words of their own before an object. */
	brace = memmem(inner.at, inner.len, " {", 2);
	return brace != NULL && json_line_parse(from(inner, (size_t)(brace + 1 - inner.at)), out);
}

struct span log_field(const struct log_line *line, const char *name)
{
	struct span none = { "", 0 }, text = none;
	char *end;
	long n = strtol(name, &end, 10);

	if (line->json != NULL)
		text = json_line_field(line->json, name);
	if (text.len == 0 && strcmp(name, "user") == 0)
		text = line->user;
	else if (text.len == 0 && strcmp(name, "path") == 0)
		text = line->path;
	else if (text.len == 0 && strcmp(name, "addr") == 0)
		text = line->addr;
	else if (text.len == 0 && n != 0 && *end == '\0' && line->text.len > 0)
		text = log_text_field(line->text, n);
	return text.len == 1 && *text.at == '-' ? none : text;
}

struct span log_method(const struct log_line *line)
{
	return line->text.len > 0 ? line->method : json_line_method(line->json);
}

int log_status(const struct log_line *line)
{
	return line->text.len > 0 ? line->status : json_line_status(line->json);
}
