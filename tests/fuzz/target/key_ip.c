/*
 * key_ip: any text is an address as inet_pton(3) has it, or none; two keys are
 * the same if, and only if, family, prefix and net are.
 *
 *	input  [ prefix of IPv4, 1 ] [ of IPv6, 1 ] [ text ... ]
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <arpa/inet.h>

#include "fuzz.h"
#include "shmlimit.h"

#define PREFIX_MAX_4 32
#define PREFIX_MAX_6 128

/* As the manual says: without the zone; a zone has a name, and only IPv6 has one. Returns the address's length, or 0.
 */
static size_t read_address(const char *text, unsigned char *address)
{
	static const unsigned char mapped[12] = { [10] = 0xff, [11] = 0xff };
	const char *zone = strchr(text, '%');
	char *bare = strndup(text, zone != NULL ? (size_t)(zone - text) : strlen(text));
	size_t len = 0;

	if ((zone == NULL || zone[1] != '\0') && inet_pton(AF_INET6, bare, address) == 1)
		len = 16;
	else if (zone == NULL && inet_pton(AF_INET, bare, address) == 1)
		len = 4;
	free(bare);
	if (len != 16 || memcmp(address, mapped, sizeof(mapped)) != 0)
		return len;
	memmove(address, address + sizeof(mapped), 4);
	return 4;
}

static void check_key(const unsigned char *key, const unsigned char *address, size_t len, unsigned prefix)
{
	law(key[0] == (len == 4 ? 4 : 6) && key[1] == prefix, "family %u, prefix %u", key[0], key[1]);
	for (unsigned bit = 0; bit < 8 * len; bit++) {
		int is = key[2 + bit / 8] >> (7 - bit % 8) & 1, was = address[bit / 8] >> (7 - bit % 8) & 1;

		law(is == (bit < prefix ? was : 0), "bit %u", bit);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, size };
	unsigned prefix_v4 = (unsigned)input_number(&in, 1), prefix_v6 = (unsigned)input_number(&in, 1);
	unsigned char key[SHMLIMIT_KEY_IP_MAX], address[16];
	char *text = strndup((const char *)in.at, in.left);
	int in_range = prefix_v4 <= PREFIX_MAX_4 && prefix_v6 <= PREFIX_MAX_6;
	int len = shmlimit_key_ip_text(text, prefix_v4, prefix_v6, key, sizeof(key));
	size_t want = read_address(text, address);

	law(len == (want != 0 && in_range ? (int)want + 2 : -EINVAL), "\"%s\": %d", text, len);
	if (len > 0) {
		unsigned char *exact = malloc((size_t)len);

		check_key(key, address, want, want == 4 ? prefix_v4 : prefix_v6);
		law(shmlimit_key_ip(address, want, prefix_v4, prefix_v6, exact, (size_t)len) == len &&
		            memcmp(exact, key, (size_t)len) == 0,
		    "the same address makes another key");
		law(shmlimit_key_ip(address, want, prefix_v4, prefix_v6, exact, (size_t)len - 1) == -ENOBUFS,
		    "a key that does not fit");
		free(exact);
	}
	free(text);
	return 0;
}
