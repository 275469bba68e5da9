/*
 * key: see key.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
/*
 * WHY NOT SHA512() or EVP: they allocate, may fail, and bring a library's every algorithm into a
 * static link.
 */
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>
#include <string.h>

#include "address.h"
#include "key.h"

_Static_assert(SHMLIMIT_KEY_IP_MAX <= KEY_DIGEST_BYTES && KEY_DIGEST_BYTES == SHA512_DIGEST_LENGTH,
               "either fits a key");

void key_digest(const void *text, size_t length, uint8_t made[SHA512_DIGEST_LENGTH])
{
	SHA512_CTX context;

	SHA512_Init(&context);
	SHA512_Update(&context, text, length);
	SHA512_Final(made, &context);
}

/* Make the key of an address's net. Returns its length; 0 or less if there is no address. */
static int make_net(const struct spec_limit *limit, const void *text, size_t length, struct key *key)
{
	struct address address;
	const char *element;

	if (!address_nth(text, length, limit->nth != 0 ? limit->nth : -1, &element, &length) ||
	    !address_read(element, length, &address))
		return 0;
	return shmlimit_key_ip(address.bytes, address.len, limit->prefix_v4, limit->prefix_v6, key->made,
	                       sizeof(key->made));
}

void key_make(const struct spec_limit *limit, const void *text, size_t length, struct key *key)
{
	int net_length = limit->by_net ? make_net(limit, text, length, key) : 0;

	key->bytes = key->made;
	if (net_length > 0) {
		key->length = (size_t)net_length;
	} else if (length > SHMLIMIT_KEY_MAX) {
		key_digest(text, length, key->made);
		key->length = sizeof(key->made);
	} else {
		key->bytes = text;
		key->length = length;
	}
}
