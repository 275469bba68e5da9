/*
 * key: see key.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <netinet/in.h>
#include <openssl/sha.h>
#include <string.h>

#include "key.h"

_Static_assert(SHMLIMIT_KEY_IP_MAX <= KEY_DIGEST_BYTES && KEY_DIGEST_BYTES == SHA512_DIGEST_LENGTH,
               "either fits a key");

/* Make the key of an address's net. Returns its length; 0 or less if the text is not an address. */
static int make_net(const struct spec_limit *limit, const void *text, size_t length, struct key *key)
{
	char address[INET6_ADDRSTRLEN + 16]; /* with room for a zone */

	if (length >= sizeof(address))
		return 0;
	memcpy(address, text, length);
	address[length] = '\0';
	return shmlimit_key_ip_text(address, limit->prefix_v4, limit->prefix_v6, key->made, sizeof(key->made));
}

void key_make(const struct spec_limit *limit, const void *text, size_t length, struct key *key)
{
	int net_length = limit->by_net ? make_net(limit, text, length, key) : 0;

	key->bytes = key->made;
	if (net_length > 0) {
		key->length = (size_t)net_length;
	} else if (length > SHMLIMIT_KEY_MAX) {
		SHA512(text, length, key->made);
		key->length = sizeof(key->made);
	} else {
		key->bytes = text;
		key->length = length;
	}
}
