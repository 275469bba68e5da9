/*
 * log_client.c: the client of a request. Behind a proxy a line has the proxy's address where a
 * client's would be, and the client in another place.
 *
 * WHY NOT what was forwarded, always: a client that asks without a proxy chooses it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <stdio.h>
#include <string.h>

#include "address.h"
#include "log_line.h"

int log_is_proxy(struct span addr)
{
	struct address address;

	if (addr.len == 0 || *addr.at == '@' || (addr.len >= 5 && memcmp(addr.at, "unix:", 5) == 0))
		return 1;
	return address_read(addr.at, addr.len, &address) && address_is_private(&address);
}

struct span log_forwarded(const struct log_line *line, char name[LOG_NAME_MAX])
{
	struct span text;

	*name = '\0';
	if (line->text.len == 0)
		return json_line_forwarded(line->json, name, LOG_NAME_MAX);
	snprintf(name, LOG_NAME_MAX, "%ld", log_text_forwarded(line->text, &text));
	return text;
}

struct span log_client(const struct log_line *line)
{
	char name[LOG_NAME_MAX];
	struct span client = log_is_proxy(line->addr) ? log_forwarded(line, name) : line->addr;

	return client.len > 0 ? client : line->addr;
}
