/*
 * limit: see limit.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <netinet/in.h>
#include <string.h>

#include "limit.h"
#include "number.h"

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

/* The length of the key of the net that an address lies in; 0 or less if it is none. */
static int net_of(const struct limit *limit, const char *text, size_t length, struct limit_key *key)
{
	char address[INET6_ADDRSTRLEN];

	if (length >= sizeof(address))
		return 0;
	memcpy(address, text, length);
	address[length] = '\0';
	return shmlimit_key_ip_text(address, limit->prefix_v4, limit->prefix_v6, key->net, sizeof(key->net));
}

int limit_key(const struct limit *limit, const char *text, size_t length, struct limit_key *key)
{
	int net_length = limit->by_net ? net_of(limit, text, length, key) : 0;

	key->bytes = net_length > 0 ? (const void *)key->net : text;
	key->length = net_length > 0 ? (size_t)net_length : length < SHMLIMIT_KEY_MAX ? length : SHMLIMIT_KEY_MAX;
	return key->length > 0;
}
