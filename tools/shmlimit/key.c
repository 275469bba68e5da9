/*
 * key.c: keys as people can read them. A key is any bytes, chosen by whoever
 * asks: a terminal gets none of them that it would act on.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <arpa/inet.h>
#include <string.h>

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

const char *key_show(char text[KEY_TEXT_LEN], const void *key, size_t len, size_t key_len)
{
	char *to;

	if (len == key_len && net_text(text, key, len))
		return text;
	to = escape(text, key, len, ESCAPE_BACKSLASH);
	/* No key's text has a lone backslash before dots: this one is not the key's. */
	if (len < key_len)
		sprintf(to, "\\...[%zu]", key_len);
	return text;
}
