/*
 * key_ip: an address and the net it lies in as a key. Pure.
 *
 *	byte      0        1        2 ...
 *	      [ family ][ prefix ][ 4 or 16 bytes, those bits beyond the prefix 0 ]
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "export.h"
#include "shmlimit.h"

#define V4_BYTES 4u
#define V6_BYTES 16u
#define HEAD_BYTES 2u

/* The families' own numbers: AF_INET and AF_INET6 are the system's, and a key may outlive it in a test or a log. */
#define V4 4u
#define V6 6u

static const unsigned char *mapped_v4(const unsigned char *v6)
{
	static const unsigned char mapped[V6_BYTES - V4_BYTES] = { [10] = 0xff, [11] = 0xff };

	return memcmp(v6, mapped, sizeof(mapped)) == 0 ? v6 + sizeof(mapped) : NULL;
}

static int write_key(unsigned char family, const unsigned char *address, size_t bytes, unsigned prefix,
                     unsigned char *key, size_t key_size)
{
	size_t whole = prefix / 8;

	if (key_size < HEAD_BYTES + bytes)
		return -ENOBUFS;
	key[0] = family;
	key[1] = (unsigned char)prefix;
	memset(key + HEAD_BYTES, 0, bytes);
	memcpy(key + HEAD_BYTES, address, whole);
	if (whole < bytes)
		key[HEAD_BYTES + whole] = (unsigned char)(address[whole] & 0xff00u >> prefix % 8);
	return (int)(HEAD_BYTES + bytes);
}

EXPORT int shmlimit_key_ip(const void *address, size_t address_len, unsigned prefix_v4, unsigned prefix_v6, void *key,
                           size_t key_size)
{
	const unsigned char *v4;

	if (address == NULL || key == NULL || prefix_v4 > V4_BYTES * 8 || prefix_v6 > V6_BYTES * 8)
		return -EINVAL;
	if (address_len != V4_BYTES && address_len != V6_BYTES)
		return -EINVAL;
	v4 = address_len == V4_BYTES ? address : mapped_v4(address);
	if (v4 != NULL)
		return write_key(V4, v4, V4_BYTES, prefix_v4, key, key_size);
	return write_key(V6, address, V6_BYTES, prefix_v6, key, key_size);
}

EXPORT int shmlimit_key_ip_text(const char *text, unsigned prefix_v4, unsigned prefix_v6, void *key, size_t key_size)
{
	char bare[INET6_ADDRSTRLEN];
	struct in6_addr v6;
	struct in_addr v4;
	size_t length;

	if (text == NULL)
		return -EINVAL;
	/* BOUND: no address is longer than `bare`; where its NUL does not fit, inet_pton() is not asked. */
	for (length = 0; length < sizeof(bare) && text[length] != '\0' && text[length] != '%'; length++)
		bare[length] = text[length];
	if (length == sizeof(bare))
		return -EINVAL;
	bare[length] = '\0';
	if (text[length] == '%' && text[length + 1] == '\0')
		return -EINVAL;
	if (inet_pton(AF_INET6, bare, &v6) == 1)
		return shmlimit_key_ip(&v6, sizeof(v6), prefix_v4, prefix_v6, key, key_size);
	/* Only IPv6 has zones. */
	if (text[length] == '\0' && inet_pton(AF_INET, bare, &v4) == 1)
		return shmlimit_key_ip(&v4, sizeof(v4), prefix_v4, prefix_v6, key, key_size);
	return -EINVAL;
}
