/*
 * address: see address.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <string.h>

#include "address.h"

#define PORT_MAX 65535u

struct text {
	const char *at;
	size_t len;
};

static int is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static struct text trim(struct text t)
{
	while (t.len > 0 && is_blank(t.at[0])) {
		t.at++;
		t.len--;
	}
	while (t.len > 0 && is_blank(t.at[t.len - 1]))
		t.len--;
	return t;
}

/* Leaves out quotes around the text, unless there are others in it. */
static struct text unquote(struct text t)
{
	if (t.len < 2 || t.at[0] != '"' || t.at[t.len - 1] != '"' || memchr(t.at + 1, '"', t.len - 2) != NULL)
		return t;
	return trim((struct text){ t.at + 1, t.len - 2 });
}

static int is_port(struct text t)
{
	unsigned port = 0;

	for (size_t i = 0; i < t.len; i++) {
		if (t.at[i] < '0' || t.at[i] > '9' || i == 5)
			return 0;
		port = 10 * port + (unsigned)(t.at[i] - '0');
	}
	return t.len > 0 && port <= PORT_MAX;
}

/* A zone has a name. It ends where the address does, so what ends an address is not in it. */
static int is_zone(struct text t)
{
	for (size_t i = 0; i < t.len; i++)
		if (is_blank(t.at[i]) || strchr(",;\"[]", t.at[i]) != NULL)
			return 0;
	return t.len > 0;
}

static int read_as(int family, struct text t, struct address *out)
{
	char text[INET6_ADDRSTRLEN];

	if (t.len >= sizeof(text) || memchr(t.at, '\0', t.len) != NULL)
		return 0;
	memcpy(text, t.at, t.len);
	text[t.len] = '\0';
	out->len = family == AF_INET ? 4 : 16;
	return inet_pton(family, text, out->bytes) == 1;
}

static int read_v6(struct text t, struct address *out)
{
	const char *zone = memchr(t.at, '%', t.len);
	size_t bare = zone != NULL ? (size_t)(zone - t.at) : t.len;

	if (zone != NULL && !is_zone((struct text){ zone + 1, t.len - bare - 1 }))
		return 0;
	return read_as(AF_INET6, (struct text){ t.at, bare }, out);
}

static int read_brackets(struct text t, struct address *out)
{
	const char *end = memchr(t.at, ']', t.len);
	size_t inside = end != NULL ? (size_t)(end - t.at) - 1 : 0, behind = t.len - inside - 2;

	if (end == NULL || !read_v6((struct text){ t.at + 1, inside }, out))
		return 0;
	out->has_port = behind > 0;
	return behind == 0 || (end[1] == ':' && is_port((struct text){ end + 2, behind - 1 }));
}

static int read_v4(struct text t, struct address *out)
{
	const char *colon = memchr(t.at, ':', t.len);
	size_t bare = colon != NULL ? (size_t)(colon - t.at) : t.len;

	out->has_port = colon != NULL;
	if (colon != NULL && !is_port((struct text){ colon + 1, t.len - bare - 1 }))
		return 0;
	return read_as(AF_INET, (struct text){ t.at, bare }, out);
}

/* A colon comes before any point, which IPv4 has before its port. */
static int is_v6(struct text t)
{
	for (size_t i = 0; i < t.len && t.at[i] != '.'; i++)
		if (t.at[i] == ':')
			return 1;
	return 0;
}

int address_read(const char *text, size_t len, struct address *out)
{
	struct text t = unquote(trim((struct text){ text, len }));

	out->has_port = 0;
	if (t.len == 0)
		return 0;
	if (t.at[0] == '[')
		return read_brackets(t, out);
	return is_v6(t) ? read_v6(t, out) : read_v4(t, out);
}

static int is_private_v4(const unsigned char *a)
{
	return a[0] == 10 || a[0] == 127 || (a[0] == 172 && (a[1] & 0xf0) == 16) || (a[0] == 192 && a[1] == 168) ||
	       (a[0] == 100 && (a[1] & 0xc0) == 64) || (a[0] == 169 && a[1] == 254);
}

int address_is_private(const struct address *address)
{
	static const unsigned char mapped[12] = { [10] = 0xff, [11] = 0xff }, loopback[16] = { [15] = 1 };
	const unsigned char *a = address->bytes;

	if (address->len == 4)
		return is_private_v4(a);
	if (memcmp(a, mapped, sizeof(mapped)) == 0)
		return is_private_v4(a + sizeof(mapped));
	return (a[0] & 0xfe) == 0xfc || (a[0] == 0xfe && (a[1] & 0xc0) == 0x80) ||
	       memcmp(a, loopback, sizeof(loopback)) == 0;
}

/* The next element that is not empty; *rest becomes what follows it. Returns 0 if there is none. */
static int next_element(struct text *rest, struct text *element)
{
	do {
		const char *comma = memchr(rest->at, ',', rest->len);
		size_t len = comma != NULL ? (size_t)(comma - rest->at) : rest->len;

		*element = trim((struct text){ rest->at, len });
		rest->at += len + (comma != NULL);
		rest->len -= len + (comma != NULL);
	} while (element->len == 0 && rest->len > 0);
	return element->len > 0;
}

int address_nth(const char *text, size_t len, int nth, const char **element, size_t *element_len)
{
	struct text list = unquote(trim((struct text){ text, len })), rest = list, found;
	int64_t place = nth;

	/* Nearly every list is one address. */
	if (list.len > 0 && memchr(list.at, ',', list.len) == NULL) {
		*element = list.at;
		*element_len = list.len;
		return nth == 1 || nth == -1;
	}
	if (nth < 0)
		for (place = (int64_t)nth + 1; next_element(&rest, &found); place++)
			;
	if (place < 1)
		return 0;
	/* BOUND: each round takes an element from the list. */
	for (rest = list; place > 0; place--)
		if (!next_element(&rest, &found))
			return 0;
	*element = found.at;
	*element_len = found.len;
	return 1;
}
