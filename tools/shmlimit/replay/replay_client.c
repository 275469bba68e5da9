/*
 * replay_client.c: the client of each request, and whether it looks as if that was a proxy.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "address.h"
#include "fail.h"
#include "replay.h"

#define LIST_MAX 16    /* addresses of a list that are looked at */
#define LOOKED_AT 1000 /* requests whose address is public */
#define ONE_PRIVATE 10 /* This number of requests, all of one address, looks like a proxy's. */
#define ONE_PUBLIC 100

static void copy_text(char to[TEXT_LEN], struct span text)
{
	snprintf(to, TEXT_LEN, "%.*s", (int)(text.len < TEXT_LEN ? text.len : TEXT_LEN - 1), text.at);
}

static int is_one(struct span text, const struct address *address)
{
	struct address other;

	return address_read(text.at, text.len, &other) && other.len == address->len &&
	       memcmp(other.bytes, address->bytes, other.len) == 0;
}

/* Did a proxy that is configured already put the client from the list into the address? */
static int is_in_list(struct span addr, struct span list)
{
	struct address address;
	struct span element;

	if (!address_read(addr.at, addr.len, &address))
		return 0;
	for (int nth = 1; nth <= LIST_MAX && log_element(list, nth, &element); nth++)
		if (is_one(element, &address))
			return 1;
	return 0;
}

/* The first requests tell whether the log is one of a proxy that is not private. */
static void note_unused(struct replay_clients *c, const struct log_line *line)
{
	char name[LOG_NAME_MAX];
	struct span forwarded;

	if (c->looked_at == LOOKED_AT)
		return;
	c->looked_at++;
	forwarded = log_forwarded(line, name);
	if (!log_is_public(forwarded) || is_in_list(line->addr, forwarded) || c->unused++ > 0)
		return;
	memcpy(c->unused_name, name, sizeof(name));
	copy_text(c->unused_by, line->addr);
}

static void note_first(struct replay_clients *c, struct span client)
{
	struct address first;

	if (c->requests++ == 0) {
		copy_text(c->first, client);
		c->first_is_proxy = log_is_proxy(client);
		return;
	}
	if (c->differ)
		return;
	c->differ = !address_read(c->first, strlen(c->first), &first) || !is_one(client, &first);
}

struct span client_of(struct replay_clients *c, const struct log_line *line)
{
	struct span client = line->addr;

	if (c->field == NULL)
		client = log_client(line);
	else if (strcmp(c->field, "addr") != 0)
		client = log_field(line, c->field);
	c->found += client.len > 0;
	if (client.at != line->addr.at && client.len > 0)
		c->forwarded++;
	else if (c->field == NULL)
		note_unused(c, line);
	if (client.len == 0)
		client = line->addr;
	note_first(c, client);
	return client;
}

int client_check(const struct replay_clients *c)
{
	if (c->field != NULL && c->found == 0 && c->requests > 0)
		return fail(
			"--client %s: no line has it (the name of a member of JSON; or the number of a field of text, -1 is the last)",
			c->field);
	if (c->unused > c->looked_at / 2)
		fail("warning: %u of %u requests have an address that was forwarded, which was not used, since %s is not "
		     "private: if that is a proxy, use --client %s",
		     c->unused, c->looked_at, c->unused_by, c->unused_name);
	else if (!c->differ && c->requests >= (c->first_is_proxy ? ONE_PRIVATE : ONE_PUBLIC))
		fail("warning: one address made all %" PRIu64
		     " requests: %s: if that is a proxy, these limits take all clients for "
		     "one (if the log has them: --client FIELD)",
		     c->requests, c->first);
	return STATUS_OK;
}
