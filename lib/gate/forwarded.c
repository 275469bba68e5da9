/*
 * forwarded: is a key the address of a proxy that is not configured in the server? All its clients
 * are one then.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "address.h"
#include "export.h"
#include "gate_request.h"

#define PEER_SHOWN 64 /* bytes: an address with a port and a zone */

static int reported; /* by a gate of this process */

/* A peer without an address connected through a Unix socket. */
static int is_proxy(const char *peer, size_t length)
{
	struct address address;

	if (length >= 5 && memcmp(peer, "unix:", 5) == 0)
		return 1;
	return address_read(peer, length, &address) && address_is_private(&address);
}

static int is_key(const struct shmlimit_gate_key *keys, size_t n, const char *peer, size_t length)
{
	for (size_t i = 0; i < n; i++)
		if (keys[i].length == length && keys[i].bytes != NULL && memcmp(keys[i].bytes, peer, length) == 0)
			return 1;
	return 0;
}

EXPORT int shmlimit_gate_forwarded(struct shmlimit_gate *gate, const struct shmlimit_gate_key *keys, size_t n,
                                   const char *peer, size_t length, const char *field, const char *advice)
{
	char text[512];

	if (gate == NULL || (keys == NULL && n > 0) || peer == NULL || (field != NULL && advice == NULL))
		return -EINVAL;
	if (gate->spec.proxy_quiet || __atomic_load_n(&reported, __ATOMIC_RELAXED) || !is_key(keys, n, peer, length) ||
	    !is_proxy(peer, length))
		return 0;
	if (field == NULL)
		return 1;
	if (__atomic_exchange_n(&reported, 1, __ATOMIC_RELAXED))
		return 0;
	snprintf(
		text, sizeof(text),
		"a request from %.*s has a field %s: behind a proxy all clients are one, since its address is the key (%s; "
		"if it is no proxy: proxy_warning=no)",
		(int)(length < PEER_SHOWN ? length : PEER_SHOWN), peer, field, advice);
	segment_ref_report(&gate->segment_ref, text);
	return 1;
}
