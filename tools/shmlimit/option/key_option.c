/*
 * key_option.c: a key, in each of the ways in which it can be given: its bytes
 * as text or in hexadecimal, an address of which servers make a key, or the
 * fingerprint that listings show.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <arpa/inet.h>
#include <string.h>

#include "address.h"
#include "command.h"
#include "decimal.h"
#include "fail.h"
#include "key_option.h"

int key_text_parse(const char *text, struct key *key)
{
	*key = (struct key){ .text = text };
	key->len = strlen(text);
	if (key->len < 1 || key->len > SHMLIMIT_KEY_MAX)
		return fail("key of %zu bytes: must be 1 to %d", key->len, SHMLIMIT_KEY_MAX);
	memcpy(key->bytes, text, key->len);
	return STATUS_OK;
}

/* The value of a hexadecimal digit, or -1. */
static int digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 'a' - 'A';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int hex_parse(const char *text, struct key *key)
{
	size_t len = strlen(text);

	if (len == 0 || len > 2 * SHMLIMIT_KEY_MAX)
		return fail("--key-hex %.40s%s: key of %zu bytes: must be 1 to %d", text, len > 40 ? "..." : "",
		            len / 2, SHMLIMIT_KEY_MAX);
	for (key->len = 0; key->len < len / 2; key->len++) {
		int high = digit_of(text[2 * key->len]), low = digit_of(text[2 * key->len + 1]);

		if (high < 0 || low < 0)
			break;
		key->bytes[key->len] = (unsigned char)(high << 4 | low);
	}
	if (2 * key->len != len)
		return fail("--key-hex %.40s%s: must be two hexadecimal digits for each byte", text,
		            len > 40 ? "..." : "");
	return STATUS_OK;
}

int prefixes_parse(const char *text, const char *end, unsigned *v4, unsigned *v6)
{
	uint64_t bits;

	if (digits_scan(&text, &bits) != 0 || bits > 32)
		return 0;
	*v4 = (unsigned)bits;
	if (*text == ',') {
		text++;
		if (digits_scan(&text, &bits) != 0 || bits > 128)
			return 0;
		*v6 = (unsigned)bits;
	}
	return text == end;
}

/* "/N": of an address of either family. */
static int slash_parse(const char *whole, const char *text, unsigned *v4, unsigned *v6)
{
	int most = strchr(whole, ':') != NULL && strchr(whole, '.') == NULL ? 128 : 32;
	uint64_t bits;

	if (digits_scan(&text, &bits) != 0 || *text != '\0' || bits > (uint64_t)most)
		return fail("--key-ip %s: prefix: must be /0 to /%d", whole, most);
	*v4 = bits <= 32 ? (unsigned)bits : 32;
	*v6 = (unsigned)bits;
	return STATUS_OK;
}

static int fail_prefix(const char *prefix)
{
	return fail("--prefix %s: must be N or N,M: 0 to 32 bits of IPv4, 0 to 128 of IPv6", prefix);
}

/* Or a net. */
static int is_address(const char *text)
{
	struct address address;

	return address_read(text, strcspn(text, "/"), &address);
}

int key_ip_parse(const char *text, const char *prefix, struct key *key)
{
	unsigned v4 = KEY_PREFIX_V4, v6 = KEY_PREFIX_V6;
	char address[INET6_ADDRSTRLEN + sizeof("/128")];
	const char *slash = strchr(text, '/');
	size_t address_len = slash != NULL ? (size_t)(slash - text) : strlen(text);
	int len = -1, status = STATUS_OK;

	*key = (struct key){ .text = NULL };
	if (prefix != NULL && slash != NULL)
		return fail("--key-ip %s --prefix %s: two prefixes: give only one", text, prefix);
	if (prefix != NULL && !prefixes_parse(prefix, prefix + strlen(prefix), &v4, &v6))
		return fail_prefix(prefix);
	if (address_len < sizeof(address)) {
		memcpy(address, text, address_len);
		address[address_len] = '\0';
		if (slash != NULL)
			status = slash_parse(text, slash + 1, &v4, &v6);
		if (status != STATUS_OK)
			return status;
		len = shmlimit_key_ip_text(address, 0, v4, v6, key->bytes, sizeof(key->bytes));
	}
	if (len < 0)
		return fail("--key-ip %s: not an address (for example 203.0.113.9 or 2001:db8::1)", text);
	key->len = (size_t)len;
	return STATUS_OK;
}

/* As inspect shows it, or top, after a '#'. */
static int fingerprint_parse(const char *text, struct key *key)
{
	const char *t = text + (*text == '#');
	size_t len = strlen(t);

	key->fingerprint = 0;
	for (; len == 12 && digit_of(*t) >= 0; t++)
		key->fingerprint = key->fingerprint << 4 | (uint64_t)digit_of(*t);
	if (len != 12 || *t != '\0' || key->fingerprint == 0)
		return fail("--fingerprint %s: must be the 12 hexadecimal digits that inspect shows", text);
	return STATUS_OK;
}

int key_parse(const struct call *call, const char *text, struct key *key)
{
	const char *ip = call_option(call, "key-ip"), *hex = call_option(call, "key-hex");
	const char *exact = call_option(call, "key-text");
	const char *fingerprint = call_option(call, "fingerprint"), *prefix = call_option(call, "prefix");
	unsigned v4, v6;

	*key = (struct key){ .text = text };
	if ((text != NULL) + (ip != NULL) + (exact != NULL) + (hex != NULL) + (fingerprint != NULL) > 1)
		return fail("--key, --key-ip, --key-text, --key-hex and --fingerprint: give only one");
	/* Where many hosts share a limit --prefix is another option. */
	if (strncmp(call->command->name, "global ", strlen("global ")) == 0)
		prefix = NULL;
	if (prefix != NULL && ip == NULL && text == NULL)
		return fail("--prefix %s: missing address (usage: --key-ip ADDR --prefix N,M)", prefix);
	/* Programs such as PAM hand on a host's address or its name. */
	if (prefix != NULL && text != NULL && is_address(text))
		ip = text;
	if (prefix != NULL && ip == NULL && !prefixes_parse(prefix, prefix + strlen(prefix), &v4, &v6))
		return fail_prefix(prefix);
	if (ip != NULL)
		return key_ip_parse(ip, prefix, key);
	if (hex != NULL)
		return hex_parse(hex, key);
	if (exact != NULL) {
		int status = key_text_parse(exact, key);

		key->text = NULL;
		return status;
	}
	return fingerprint != NULL ? fingerprint_parse(fingerprint, key) : key_text_parse(text, key);
}
