/*
 * log_record.c: see log_record.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <string.h>

#include "log_record.h"

#define BETWEEN " \t\r,[]" /* what may be before, between and behind the objects of a line */

/* The first byte from `n` on that is none of these. */
static size_t skip_any(const char *at, size_t n, size_t len, const char *these)
{
	while (n < len && at[n] != '\0' && strchr(these, at[n]) != NULL)
		n++;
	return n;
}

/*
 * Behind the brace that closes the object; *closed is 0 where the line or the bytes end before it.
 * BOUND: a byte is looked at once.
 */
static size_t object_end(const char *at, size_t n, size_t len, int *closed)
{
	size_t depth = 0;
	int quoted = 0;

	*closed = 0;
	for (; n < len && at[n] != '\n' && !*closed; n++) {
		if (quoted && at[n] == '\\') {
			if (n + 1 < len && at[n + 1] != '\n')
				n++;
		} else if (at[n] == '"') {
			quoted = !quoted;
		} else if (!quoted && (at[n] == '{' || at[n] == '}')) {
			depth += at[n] == '{' ? 1 : (size_t)-1;
			*closed = depth == 0;
		}
	}
	return n;
}

/* All up to the line's end. */
static int find_line(const char *at, size_t len, size_t begin, int whole, struct log_record *out)
{
	const char *newline = memchr(at + begin, '\n', len - begin);
	size_t end = newline != NULL ? (size_t)(newline - at) : len;

	*out = (struct log_record){ .begin = begin, .end = end, .next = end + (newline != NULL), .found = 1 };
	return newline != NULL || (whole && len > begin);
}

/* Behind an object the line ends, or another one begins; else the line is not of objects. */
static int find_object(const char *at, size_t len, size_t begin, int whole, struct log_record *out)
{
	int closed;
	size_t end = object_end(at, begin, len, &closed), next = skip_any(at, end, len, BETWEEN);

	if (next == len && !whole)
		return 0;
	if (!closed || (next < len && at[next] != '\n' && at[next] != '{'))
		return find_line(at, len, begin, whole, out);
	*out = (struct log_record){ .begin = begin, .end = end, .next = next, .found = 1 };
	out->inside = next < len && at[next] == '{';
	out->next += next < len && !out->inside;
	return 1;
}

int log_record_find(const char *at, size_t len, int inside, int whole, struct log_record *out)
{
	size_t mark = !inside && len >= 3 && memcmp(at, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
	size_t begin = inside ? 0 : skip_any(at, mark, len, BETWEEN);
	int is_end = begin == len || at[begin] == '\n';

	if (begin == len && !whole)
		return 0;
	if (!is_end && at[begin] == '{')
		return find_object(at, len, begin, whole, out);
	/* A line that opens or closes an array is none. */
	if (is_end && (memchr(at, '[', begin) != NULL || memchr(at, ']', begin) != NULL)) {
		*out = (struct log_record){ .next = begin + (begin < len) };
		return 1;
	}
	return find_line(at, len, 0, whole, out);
}
