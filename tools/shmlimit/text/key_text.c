/*
 * key_text.c: keys as people can read them. A key is any bytes, chosen by any client that
 * asks: a terminal gets none of them that it would act on.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <arpa/inet.h>
#include <string.h>

#include "command.h"
#include "escape.h"
#include "key_text.h"
#include "print.h"

/*
 * As shmlimit_key_ip() makes it: family, bits of the prefix, address. No text begins with a byte of
 * 4 or 6.
 */
int key_ip_show(char text[KEY_TEXT_LEN], const void *bytes, size_t len)
{
	const unsigned char *key = bytes;
	unsigned char again[SHMLIMIT_KEY_IP_MAX];
	int family = len == 6 ? AF_INET : AF_INET6;
	unsigned bits = len == 6 ? 32 : 128;

	if ((len != 6 && len != SHMLIMIT_KEY_IP_MAX) || key[1] > bits)
		return 0;
	if (shmlimit_key_ip(key + 2, len - 2, key[1] % 33, key[1], again, sizeof(again)) != (int)len ||
	    memcmp(key, again, len) != 0)
		return 0;
	inet_ntop(family, key + 2, text, INET6_ADDRSTRLEN);
	if (family == AF_INET6 || key[1] < bits)
		sprintf(text + strlen(text), "/%u", key[1]);
	return 1;
}

/* Would it read as an address, with or without a prefix, or as what is in quotes? */
static int is_ambiguous(const char *key, size_t len)
{
	char address[INET6_ADDRSTRLEN];
	unsigned char bytes[SHMLIMIT_KEY_IP_MAX];
	size_t n = 0;

	while (n < len && n < sizeof(address) && key[n] != '/' && key[n] != '\0')
		n++;
	if (key[0] == '"' || n == sizeof(address))
		return key[0] == '"';
	memcpy(address, key, n);
	address[n] = '\0';
	return shmlimit_key_ip_text(address, 0, 0, 0, bytes, sizeof(bytes)) > 0;
}

const char *key_show(char text[KEY_TEXT_LEN], const void *key, size_t len, size_t key_len)
{
	int quotes = len == key_len && is_ambiguous(key, len);
	char *to = text;

	if (len == key_len && key_ip_show(text, key, len))
		return text;
	if (quotes)
		*to++ = '"';
	to = escape(to, key, len, ESCAPE_BACKSLASH);
	if (quotes)
		strcpy(to, "\"");
	/* No key's text has a lone backslash before dots: this one is not the key's. */
	if (len < key_len)
		sprintf(to, "\\...[%zu]", key_len);
	return text;
}

json_t *json_key(const void *key, size_t len, size_t key_len)
{
	char hex[2 * SHMLIMIT_KEY_MAX + 1], ip[KEY_TEXT_LEN];
	int is_ip = len == key_len && key_ip_show(ip, key, len);

	for (size_t i = 0; i < len; i++)
		sprintf(hex + 2 * i, "%02x", ((const unsigned char *)key)[i]);
	/* clang-format off */
	return json_pack("{s:o, s:s#, s:o, s:s?}",
	                 "key", json_bytes(key, len),
	                 "key_hex", hex, (int)(2 * len),
	                 "key_length", json_number(key_len),
	                 "key_ip", is_ip ? ip : NULL);
	/* clang-format on */
}
