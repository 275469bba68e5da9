/*
 * key_ip: an address and the net it lies in as a key. Pure.
 *
 *	byte      0        1        2 ...
 *	      [ family ][ prefix ][ 4 or 16 bytes, those bits beyond the prefix 0 ]
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <string.h>

#include "address.h"
#include "export.h"
#include "shmlimit.h"

#define V4_BYTES 4u
#define V6_BYTES 16u
#define HEAD_BYTES 2u

/*
 * The families' own numbers: AF_INET and AF_INET6 are the system's, and a key may outlive it in a
 * test or a log.
 */
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

EXPORT int shmlimit_key_ip_text(const char *text, int nth, unsigned prefix_v4, unsigned prefix_v6, void *key,
                                size_t key_size)
{
	struct address address;
	const char *element = text;
	size_t len;

	if (text == NULL)
		return -EINVAL;
	len = strlen(text);
	if (nth != 0 && !address_nth(text, len, nth, &element, &len))
		return -EINVAL;
	if (!address_read(element, len, &address))
		return -EINVAL;
	return shmlimit_key_ip(address.bytes, address.len, prefix_v4, prefix_v6, key, key_size);
}
