/*
 * resolver: finds the addresses of a host name while the caller does other things. The C library
 * looks them up in a thread of its own. Only an agent uses this.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef GLOBAL_RESOLVER_H
#define GLOBAL_RESOLVER_H

#include "url.h"

struct addrinfo;
struct resolver;

/* Does the URL have a host name? A path and a numeric address need no lookup. */
int resolver_is_needed(const struct url *url);

/*
 * Begin a lookup (*lookup is NULL), or check on it. Returns 0 with *found, which the caller frees;
 * -EINPROGRESS while it runs; or the error that connection_connect() returns without an address.
 * *lookup is NULL again when it has ended.
 */
int resolver_poll(struct resolver **lookup, const struct url *url, struct addrinfo **found);

/* Abandon the lookup. */
void resolver_end(struct resolver **lookup);

#endif
