/*
 * replay_key.c: which part of a line is its key. One field is a key as servers
 * make it: an address's net by shmlimit_key_ip(), a name as it stands.
 * Several are joined by NUL, which no log has.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "address.h"
#include "fail.h"
#include "key_option.h"
#include "print.h"
#include "replay.h"

static int fail_key(const char *text)
{
	return fail("--key %s: must be addr, addr/24 or addr/24,64, user, path, or several of them joined by +", text);
}

int key_spec_parse(const char *text, struct key_spec *out)
{
	const char *word = text, *end;

	*out = (struct key_spec){ .prefix_v4 = KEY_PREFIX_V4, .prefix_v6 = KEY_PREFIX_V6, .forwarded = 1 };
	do {
		size_t name = strcspn(word, "/+");

		end = word + strcspn(word, "+");
		if (out->fields == KEY_FIELDS_MAX)
			return fail_key(text);
		if (name == 4 && memcmp(word, "addr", name) == 0)
			out->field[out->fields++] = KEY_ADDR;
		else if (name == 4 && memcmp(word, "user", name) == 0 && word + name == end)
			out->field[out->fields++] = KEY_USER;
		else if (name == 4 && memcmp(word, "path", name) == 0 && word + name == end)
			out->field[out->fields++] = KEY_PATH;
		else
			return fail_key(text);
		if (word + name != end &&
		    (word[name] != '/' || !prefixes_parse(word + name + 1, end, &out->prefix_v4, &out->prefix_v6)))
			return fail_key(text);
		word = end + 1;
	} while (*end != '\0');
	return STATUS_OK;
}

int key_has_address(const struct key_spec *spec)
{
	for (size_t i = 0; i < spec->fields; i++)
		if (spec->field[i] == KEY_ADDR)
			return 1;
	return 0;
}

static size_t put(unsigned char *key, size_t room, const void *from, size_t len)
{
	if (len > room)
		len = room;
	memcpy(key, from, len);
	return len;
}

/*
 * Returns the length of an address's key, or 0: it is none. A log that leaves out a part of its
 * addresses has nets.
 */
static size_t net_make(const struct key_spec *spec, struct span text, unsigned char net[SHMLIMIT_KEY_IP_MAX])
{
	unsigned v4 = spec->prefix_v4, v6 = spec->prefix_v6;
	struct address address;
	int bits, len;

	if (!log_element(text, spec->forwarded, &text))
		return 0;
	text = log_net_address(text, &bits);
	if (!address_read(text.at, text.len, &address) || bits > 8 * (int)address.len)
		return 0;
	if (bits >= 0 && (unsigned)bits < v4)
		v4 = (unsigned)bits;
	if (bits >= 0 && (unsigned)bits < v6)
		v6 = (unsigned)bits;
	len = shmlimit_key_ip(address.bytes, address.len, v4, v6, net, SHMLIMIT_KEY_IP_MAX);
	return len > 0 ? (size_t)len : 0;
}

/* A host that was looked up by name is its name. */
static size_t put_addr(const struct key_spec *spec, struct span addr, unsigned char *key, size_t room, int *is_address)
{
	unsigned char net[SHMLIMIT_KEY_IP_MAX];
	size_t len = net_make(spec, addr, net);

	*is_address = len > 0;
	return len > 0 ? put(key, room, net, len) : put(key, room, addr.at, addr.len);
}

size_t key_make(const struct key_spec *spec, const struct log_line *line, unsigned char key[SHMLIMIT_KEY_MAX],
                int *is_address)
{
	size_t len = 0;

	*is_address = 1;
	for (size_t i = 0; i < spec->fields; i++) {
		unsigned char *to = key + len;
		size_t room = SHMLIMIT_KEY_MAX - len;

		switch (spec->field[i]) {
		case KEY_ADDR:
			len += put_addr(spec, line->addr, to, room, is_address);
			break;
		case KEY_USER:
			if (line->user.len == 0 || (line->user.len == 1 && *line->user.at == '-'))
				return 0;
			len += put(to, room, line->user.at, line->user.len);
			break;
		case KEY_PATH:
			len += put(to, room, line->path.at, line->path.len);
			break;
		}
		if (i + 1 < spec->fields && len < SHMLIMIT_KEY_MAX)
			key[len++] = '\0';
	}
	return len;
}

/* What stands in a key that shmlimit_key_ip() made. Returns its length, or 0: it is no such key. */
static size_t print_net(FILE *to, const unsigned char *key, size_t len)
{
	char text[INET6_ADDRSTRLEN];
	int is_v4 = len >= 6 && key[0] == 4, is_v6 = len >= 18 && key[0] == 6;

	if (!is_v4 && !is_v6)
		return 0;
	inet_ntop(is_v4 ? AF_INET : AF_INET6, key + 2, text, sizeof(text));
	fputs(text, to);
	if (key[1] != (is_v4 ? 32 : 128))
		fprintf(to, "/%u", key[1]);
	return is_v4 ? 6 : 18;
}

char *key_text(const struct key_spec *spec, const unsigned char *key, size_t len)
{
	char *text = NULL;
	size_t size;
	FILE *to = open_memstream(&text, &size);

	if (to == NULL)
		return NULL;
	for (size_t i = 0, at = 0; i < spec->fields; i++) {
		size_t n = spec->field[i] == KEY_ADDR ? print_net(to, key + at, len - at) : 0;

		if (n == 0) {
			n = strnlen((const char *)key + at, len - at);
			fwrite(key + at, 1, n, to);
		}
		at += n;
		if (at < len && i + 1 < spec->fields) {
			putc(' ', to);
			at++;
		}
	}
	return fclose(to) == 0 ? text : NULL;
}
