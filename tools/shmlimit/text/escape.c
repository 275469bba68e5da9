/*
 * escape.c: bytes of any origin as text. Names, keys, paths and what files hold
 * are bytes of other users. A terminal acts on control characters: those of
 * ASCII, and U+0080 to U+009F, of which U+009B begins what ESC [ begins.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <string.h>
#include <wchar.h>

#include "command.h"
#include "escape.h"

size_t utf8_read(const void *from, size_t len, uint32_t *c)
{
	const unsigned char *p = from;
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t n = *p < 0x80 ? 1 : *p >> 5 == 6 ? 2 : *p >> 4 == 14 ? 3 : *p >> 3 == 30 ? 4 : 0;

	if (n == 0 || n > len)
		return 0;
	*c = n == 1 ? *p : *p & (0x7fu >> n);
	for (size_t i = 1; i < n; i++) {
		if (p[i] >> 6 != 2)
			return 0;
		*c = *c << 6 | (p[i] & 0x3f);
	}
	return *c >= least[n] && *c <= 0x10ffff && (*c < 0xd800 || *c > 0xdfff) ? n : 0;
}

/*
 * Does it print as it is? A terminal must know the character (main() lets nothing but UTF-8 be
 * known), and show it in a place of its own: what moves or joins its neighbours changes what they
 * seem to say. A file is read elsewhere.
 */
static int is_printable(uint32_t c, unsigned how)
{
	if (c < 0x80)
		return c >= ' ' && c <= '~';
	return how & ESCAPE_EXPORT ? c >= 0xa0 : wcwidth((wchar_t)c) > 0;
}

size_t escape_one(char to[ESCAPE_ONE_LEN], const void *from, size_t len, unsigned how)
{
	const unsigned char *p = from;
	uint32_t c;
	size_t n = utf8_read(p, len, &c);

	if (n == 0 || !is_printable(c, how)) {
		sprintf(to, "\\x%02x", *p);
		return 1;
	}
	memcpy(to, p, n);
	to[n] = '\0';
	if (c == '\\' && (how & ESCAPE_BACKSLASH))
		strcpy(to, "\\\\");
	return n;
}

char *escape(char *to, const void *from, size_t len, unsigned how)
{
	const char *p = from;

	*to = '\0';
	for (size_t n; len > 0; p += n, len -= n) {
		n = escape_one(to, p, len, how);
		to += strlen(to);
	}
	return to;
}

void print_clean(FILE *to, const char *text)
{
	char one[ESCAPE_ONE_LEN];

	for (size_t n, len = strlen(text); len > 0; text += n, len -= n) {
		n = escape_one(one, text, len, 0);
		fputs(one, to);
	}
}
