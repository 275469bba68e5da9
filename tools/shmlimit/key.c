/*
 * key.c: keys as people can read them. A key is any bytes, chosen by whoever
 * asks: a terminal gets none of them that it would act on.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <arpa/inet.h>
#include <string.h>
#include <wchar.h>

#include "command.h"

/* As shmlimit_key_ip() makes it: family, bits of the prefix, address. No text begins with a byte of 4 or 6. */
static int net_text(char text[KEY_TEXT_LEN], const unsigned char *key, size_t len)
{
	unsigned char again[SHMLIMIT_KEY_IP_MAX];
	int family = len == 6 ? AF_INET : AF_INET6;
	unsigned bits = len == 6 ? 32 : 128;

	if ((len != 6 && len != SHMLIMIT_KEY_IP_MAX) || key[1] > bits)
		return 0;
	if (shmlimit_key_ip(key + 2, len - 2, key[1] % 33, key[1], again, sizeof(again)) != (int)len ||
	    memcmp(key, again, len) != 0)
		return 0;
	inet_ntop(family, key + 2, text, INET6_ADDRSTRLEN);
	if (key[1] < bits)
		sprintf(text + strlen(text), "/%u", key[1]);
	return 1;
}

/*
 * Bytes of a character that takes a place on the screen as it is, else 0. What
 * takes none is a control character, or moves and joins its neighbours.
 */
static size_t printable(const char *bytes, size_t len)
{
	mbstate_t state = { 0 };
	wchar_t c;
	size_t n;

	if (*bytes >= ' ' && *bytes <= '~')
		return *bytes != '\\';
	n = mbrtowc(&c, bytes, len, &state);
	if (n == (size_t)-1 || n == (size_t)-2 || n == 0)
		return 0;
	return wcwidth(c) > 0 ? n : 0;
}

const char *key_show(char text[KEY_TEXT_LEN], const void *key, size_t len, size_t key_len)
{
	const char *from = key;
	char *to = text;

	if (len == key_len && net_text(text, key, len))
		return text;
	for (size_t at = 0, n; at < len; at += n) {
		n = printable(from + at, len - at);
		if (n > 0) {
			memcpy(to, from + at, n);
			to += n;
			continue;
		}
		n = 1;
		to += from[at] == '\\' ? sprintf(to, "\\\\") : sprintf(to, "\\x%02x", (unsigned char)from[at]);
	}
	/* No key's text has a lone backslash before dots: this one is not the key's. */
	if (len < key_len)
		to += sprintf(to, "\\...[%zu]", key_len);
	*to = '\0';
	return text;
}
