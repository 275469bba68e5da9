/*
 * replay_filter.c: --path, --method and --status: which requests are looked at.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "fail.h"
#include "replay.h"

/* The next element of a list. Returns 0 at its end. */
static int next_of(const char **list, struct span *out)
{
	if (*list == NULL)
		return 0;
	*out = (struct span){ *list, strcspn(*list, ",") };
	*list = (*list)[out->len] == ',' ? *list + out->len + 1 : NULL;
	return 1;
}

/* BOUND: what a later * takes need not be given back to an earlier one. */
static int path_fits(struct span pattern, struct span path)
{
	size_t p = 0, n = 0, star = SIZE_MAX, from = 0;

	while (n < path.len) {
		if (p < pattern.len && pattern.at[p] == '*') {
			star = p++;
			from = n;
		} else if (p < pattern.len && pattern.at[p] == path.at[n]) {
			p++;
			n++;
		} else if (star != SIZE_MAX) {
			p = star + 1;
			n = ++from;
		} else {
			return 0;
		}
	}
	while (p < pattern.len && pattern.at[p] == '*')
		p++;
	return p == pattern.len;
}

static int path_passes(const char *list, struct span path)
{
	struct span pattern;

	while (next_of(&list, &pattern))
		if (path_fits(pattern, path))
			return 1;
	return 0;
}

static int method_passes(const char *list, struct span method)
{
	struct span word;

	while (next_of(&list, &word))
		if (word.len == method.len && strncasecmp(word.at, method.at, word.len) == 0)
			return 1;
	return 0;
}

/* "401", "4xx", "400-499". Returns 0 if it is none of these. */
static int status_read(struct span word, int *from, int *to)
{
	char text[8];
	char *end;

	if (word.len != 3 && word.len != 7)
		return 0;
	memcpy(text, word.at, word.len);
	text[word.len] = '\0';
	if (strspn(text, "0123456789") < 1 || text[0] < '1')
		return 0;
	*from = *to = (int)strtol(text, &end, 10);
	if (end == text + 1 && strcasecmp(end, "xx") == 0) {
		*from *= 100;
		*to = *from + 99;
	} else if (end == text + 3 && *end == '-' && strspn(end + 1, "0123456789") == 3) {
		*to = (int)strtol(end + 1, NULL, 10);
	} else if (end != text + 3 || *end != '\0') {
		return 0;
	}
	return *from <= *to;
}

static int status_passes(const char *list, int status)
{
	struct span word;
	int from, to;

	while (next_of(&list, &word))
		if (status_read(word, &from, &to) && status >= from && status <= to)
			return 1;
	return 0;
}

int filter_passes(const struct replay_filter *f, const struct log_line *line)
{
	return (f->path == NULL || path_passes(f->path, line->path)) &&
	       (f->method == NULL || method_passes(f->method, log_method(line))) &&
	       (f->status == NULL || status_passes(f->status, log_status(line)));
}

int filter_check(const struct replay_filter *f)
{
	const char *path = f->path, *method = f->method, *status = f->status;
	struct span word;
	int from, to;

	while (next_of(&path, &word)) {
		if (word.len == 0 || (*word.at != '/' && *word.at != '*'))
			return fail("--path %.*s: must begin with / or *", (int)word.len, word.at);
		if (memchr(word.at, '?', word.len) != NULL)
			return fail("--path %.*s: must be without a query: paths are compared without theirs",
			            (int)word.len, word.at);
	}
	while (next_of(&method, &word))
		if (word.len == 0)
			return fail("--method %s: must be a method such as POST, or several joined by commas",
			            f->method);
	while (next_of(&status, &word))
		if (!status_read(word, &from, &to))
			return fail(
				"--status %.*s: must be a status such as 401, 4xx or 400-499, or several joined by commas",
				(int)word.len, word.at);
	return STATUS_OK;
}
