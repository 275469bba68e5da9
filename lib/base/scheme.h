/*
 * scheme: what the URL of a backend begins with. libshmlimit-global reads URLs, and the gate
 * rejects unknown schemes.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BASE_SCHEME_H
#define BASE_SCHEME_H

#include <stddef.h>
#include <string.h>

struct scheme {
	const char *name;
	enum { TCP, SENTINEL, UNIX } transport;
	int tls;
};

/* The list, for messages and for readers of URLs; a test compares them. */
#define SCHEME_NAMES "redis://, rediss://, redis+sentinel://, rediss+sentinel://, unix:// or redis+unix://"

static const struct scheme schemes[] = {
	{ "redis://", TCP, 0 },
	{ "rediss://", TCP, 1 },
	{ "redis+sentinel://", SENTINEL, 0 },
	{ "rediss+sentinel://", SENTINEL, 1 },
	{ "unix://", UNIX, 0 },
	{ "redis+unix://", UNIX, 0 },
};

/* The scheme that the text begins with, or NULL. */
static inline const struct scheme *scheme_of(const char *text)
{
	for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++)
		if (strncmp(text, schemes[i].name, strlen(schemes[i].name)) == 0)
			return &schemes[i];
	return NULL;
}

#endif
