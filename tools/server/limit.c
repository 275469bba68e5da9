/*
 * limit: see limit.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <netinet/in.h>
#include <openssl/sha.h>
#include <string.h>

#include "limit.h"
#include "number.h"

_Static_assert(SHMLIMIT_KEY_IP_MAX <= LIMIT_DIGEST_BYTES && LIMIT_DIGEST_BYTES == SHA512_DIGEST_LENGTH,
               "either fits a key");

const char *limit_option(struct limit *limit, const char *option)
{
	const char *at;
	uint64_t n, v6;

	if (strcmp(option, "dry_run") == 0) {
		limit->dry_run = 1;
		return NULL;
	}
	at = number_after(option, "cost=");
	if (at != NULL) {
		if (number(at, 1, UINT64_MAX, '\0', &n) == NULL)
			return "must be cost=N, 1 or more";
		limit->cost = n;
		return NULL;
	}
	at = number_after(option, "status=");
	if (at != NULL) {
		if (number(at, 400, 599, '\0', &n) == NULL)
			return "must be status=N, 400 to 599";
		limit->status = (int)n;
		return NULL;
	}
	at = number_after(option, "prefix=");
	if (at != NULL) {
		at = number(at, 0, 32, ',', &n);
		if (at == NULL || number(at, 0, 128, '\0', &v6) == NULL)
			return "must be prefix=V4,V6, at most prefix=32,128";
		limit->by_net = 1;
		limit->prefix_v4 = (unsigned)n;
		limit->prefix_v6 = (unsigned)v6;
		return NULL;
	}
	at = number_after(option, "fields=");
	if (at != NULL) {
		if (strcmp(at, "always") != 0 && strcmp(at, "denied") != 0)
			return "must be fields=always or fields=denied";
		limit->quiet = strcmp(at, "denied") == 0;
		return NULL;
	}
	return "must be cost=N, prefix=V4,V6, status=N, fields=... or dry_run";
}

const char *limit_rule_name(const char *name)
{
	return shmlimit_check_names(NULL, name) == 0 ? NULL : "must be a rule's name: 1 to 63 letters, digits and . _ : @ + -";
}

/* The length of the key of the net that an address lies in; 0 or less if it is none. */
static int net_of(const struct limit *limit, const char *text, size_t length, struct limit_key *key)
{
	char address[INET6_ADDRSTRLEN];

	if (length >= sizeof(address))
		return 0;
	memcpy(address, text, length);
	address[length] = '\0';
	return shmlimit_key_ip_text(address, limit->prefix_v4, limit->prefix_v6, key->made, sizeof(key->made));
}

int limit_key(const struct limit *limit, const char *text, size_t length, struct limit_key *key)
{
	int net_length = limit->by_net ? net_of(limit, text, length, key) : 0;

	key->bytes = key->made;
	if (net_length > 0) {
		key->length = (size_t)net_length;
	} else if (length > SHMLIMIT_KEY_MAX) {
		SHA512((const unsigned char *)text, length, key->made);
		key->length = sizeof(key->made);
	} else {
		key->bytes = text;
		key->length = length;
	}
	return key->length > 0;
}
