/*
 * key: whose tokens a request takes, as the library wants it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_GATE_KEY_H
#define SHMLIMIT_GATE_KEY_H

#include "spec.h"

#define KEY_DIGEST_BYTES 64

struct key {
	const void *bytes; /* the caller's, or `made` */
	size_t length;
	unsigned char made[KEY_DIGEST_BYTES]; /* a net, or a digest */
};

/*
 * Fill *key from the server's text for the limit. `text`, of 1 byte or more, must outlive *key.
 * With prefix= an address becomes its net, and any other text stays as it is. A key longer than
 * SHMLIMIT_KEY_MAX is replaced by its SHA-512, so it is one key in all servers, and differs from
 * others with the same beginning.
 */
void key_make(const struct spec_limit *limit, const void *text, size_t length, struct key *key);

/* SHA-512. */
void key_digest(const void *text, size_t length, uint8_t made[KEY_DIGEST_BYTES]);

#endif
