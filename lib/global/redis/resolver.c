/*
 * resolver: see resolver.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#include "resolver.h"
#include "connection.h"

#if !defined(__GLIBC__) || (__GLIBC__ == 2 && __GLIBC_MINOR__ < 32)
#error "the library for many hosts needs glibc 2.32 or later (getaddrinfo_a, strerrordesc_np); the one for one host does not"
#endif

struct resolver {
	struct gaicb request;
	struct addrinfo hints;
	char host[URL_HOST_SIZE], port[URL_PORT_SIZE];
};

int resolver_is_needed(const struct url *url)
{
	unsigned char address[sizeof(struct in6_addr)];

	return url->path[0] == '\0' && inet_pton(AF_INET, url->host, address) != 1 &&
	       inet_pton(AF_INET6, url->host, address) != 1;
}

static int begin_lookup(struct resolver **lookup, const struct url *url)
{
	struct resolver *l = calloc(1, sizeof(*l));
	struct gaicb *list[1];

	if (l == NULL)
		return -ENOMEM;
	strcpy(l->host, url->host);
	strcpy(l->port, url->port);
	l->hints = (struct addrinfo){ .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
	l->request = (struct gaicb){ .ar_name = l->host, .ar_service = l->port, .ar_request = &l->hints };
	list[0] = &l->request;
	if (getaddrinfo_a(GAI_NOWAIT, list, 1, NULL) != 0) {
		free(l);
		return -EAGAIN;
	}
	*lookup = l;
	return 0;
}

int resolver_poll(struct resolver **lookup, const struct url *url, struct addrinfo **found)
{
	int error = 0;

	if (*lookup == NULL)
		error = begin_lookup(lookup, url);
	if (error != 0)
		return error;
	error = gai_error(&(*lookup)->request);
	if (error == EAI_INPROGRESS)
		return -EINPROGRESS;
	*found = (*lookup)->request.ar_result;
	free(*lookup);
	*lookup = NULL;
	return error == 0 ? 0 : connection_resolver_error(error);
}

/* A lookup that a thread is working on cannot be cancelled. Its memory is left to that thread. */
void resolver_end(struct resolver **lookup)
{
	struct resolver *l = *lookup;

	*lookup = NULL;
	if (l == NULL || gai_cancel(&l->request) == EAI_NOTCANCELED)
		return;
	if (l->request.ar_result != NULL)
		freeaddrinfo(l->request.ar_result);
	free(l);
}
