/*
 * limit: options are read or refused, and a key is what the server made of it,
 * cut, or the net of an address.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "../tap.h"
#include "limit.h"

static void options(void)
{
	static const char *const bad[] = { "", "cost", "cost=", "cost=0", "cost=-1", "cost=1x", "cost= 1", "cost=0x10",
		"cost=18446744073709551616", "cost=99999999999999999999999", "prefix=", "prefix=32", "prefix=32,",
		"prefix=,64", "prefix=33,64", "prefix=32,129", "prefix=32,64,", "prefix=32 64", "status=399", "status=600",
		"status=", "dry_run=1", "dry_run ", "Dry_run", "burst=5", "fields=",
		"fields=never", "fields=denied " };
	struct limit limit = LIMIT_DEFAULT, before;

	ok(limit.cost == 1 && limit.status == 429 && !limit.by_net && !limit.dry_run && !limit.quiet,
	   "a limit has a cost of 1 and 429, and all are told of it");
	before = limit;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ok(limit_option(&limit, bad[i]) != NULL, "\"%s\" is no option", bad[i]);
	ok(memcmp(&limit, &before, sizeof(limit)) == 0, "and none of these changes anything");
	ok(limit_option(&limit, "cost=18446744073709551615") == NULL && limit.cost == UINT64_MAX, "a cost has 64 bits");
	ok(limit_option(&limit, "status=503") == NULL && limit.status == 503, "a status is an error's");
	ok(limit_option(&limit, "dry_run") == NULL && limit.dry_run, "dry_run is an option");
	ok(limit_option(&limit, "fields=denied") == NULL && limit.quiet, "who is allowed need not be told");
	ok(limit_option(&limit, "fields=always") == NULL && !limit.quiet, "or is");
	ok(limit_option(&limit, "prefix=0,128") == NULL && limit.by_net && limit.prefix_v4 == 0 && limit.prefix_v6 == 128,
	   "a prefix is one of IPv4 and one of IPv6");
}

static int key_is(const struct limit *limit, const char *text, size_t length, const void *bytes, size_t key_length)
{
	struct limit_key key;

	return limit_key(limit, text, length, &key) && key.length == key_length &&
	       memcmp(key.bytes, bytes, key_length) == 0;
}

static void keys(void)
{
	struct limit limit = LIMIT_DEFAULT;
	struct limit_key key;
	char longest[SHMLIMIT_KEY_MAX + 100];
	unsigned char net[SHMLIMIT_KEY_IP_MAX];
	/* python3 -c 'import hashlib; print(hashlib.sha512(b"x" * 1124).hexdigest())' */
	static const unsigned char digest[] = {
		0xc5, 0xd5, 0xa7, 0x17, 0x4f, 0x45, 0x78, 0xa8, 0x61, 0x73, 0x34, 0x0d, 0xd8, 0x8a, 0xdb, 0x32,
		0x9f, 0x04, 0x46, 0x7f, 0xdc, 0x0f, 0x2c, 0xae, 0x92, 0xd4, 0x73, 0x08, 0x96, 0x0f, 0x7c, 0xb8,
		0x7d, 0x1e, 0x41, 0xc7, 0xb4, 0x5c, 0x6c, 0x49, 0xd9, 0xc3, 0xc3, 0xac, 0x11, 0x1b, 0x09, 0x10,
		0x0a, 0x9c, 0x88, 0xde, 0xda, 0x09, 0x5a, 0x76, 0x7b, 0x93, 0x48, 0xb1, 0x0c, 0x07, 0xd2, 0xe5,
	};
	int length;

	memset(longest, 'x', sizeof(longest));
	is(limit_key(&limit, "", 0, &key), 0, "no key is no limit");
	ok(key_is(&limit, "a\0b", 3, "a\0b", 3), "a key is bytes");
	ok(key_is(&limit, longest, SHMLIMIT_KEY_MAX, longest, SHMLIMIT_KEY_MAX), "the longest key is a key");
	ok(key_is(&limit, longest, sizeof(longest), digest, sizeof(digest)), "a longer one is replaced by its SHA-512");
	ok(!key_is(&limit, longest, sizeof(longest) - 1, digest, sizeof(digest)), "and differs from others that begin alike");
	ok(key_is(&limit, "10.0.0.7", 8, "10.0.0.7", 8), "an address is text");
	limit_option(&limit, "prefix=24,64");
	length = shmlimit_key_ip_text("10.0.0.1", 24, 64, net, sizeof(net));
	ok(key_is(&limit, "10.0.0.7", 8, net, (size_t)length), "unless its net counts");
	ok(key_is(&limit, "10.0.0.7, and more", 8, net, (size_t)length), "as far as it is the key");
	ok(key_is(&limit, "::ffff:10.0.0.9", 15, net, (size_t)length), "however it is written");
	ok(key_is(&limit, "unix:", 5, "unix:", 5), "what is no address is taken as it is");
	ok(key_is(&limit, longest, sizeof(longest), digest, sizeof(digest)), "or replaced by its SHA-512");
	is(limit_key(&limit, "", 0, &key), 0, "and nothing is nothing");
}

int main(void)
{
	options();
	keys();
	return tap_done();
}
